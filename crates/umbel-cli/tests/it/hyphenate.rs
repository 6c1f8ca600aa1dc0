//! `umbel hyphenate`: texts come out with marks in their words and nothing else changed.

use crate::shell::{Shell, UMBEL, gzip};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::Duration;

const TEXT: &str = "The hyphenation of computer programs: a table, an associate.\r\n";
const MARKED: &str = "The hy-phen-a-tion of com-puter pro-grams: a ta-ble, an as-so-ciate.\r\n";

#[test]
fn texts_from_files_and_pipes_get_their_marks() {
    let shell = Shell::new();
    assert_eq!(shell.pipe("hyphenate", TEXT).ok().text(), MARKED);
    assert_eq!(shell.pipe("hyphenate --soft", TEXT).ok().text(), MARKED.replace('-', "\u{ad}"));
    let german = shell.pipe("hyphenate --lang de", "Die Silbentrennung findet Verbindungen.\n").ok();
    assert_eq!(german.text(), "Die Sil-ben-tren-nung fin-det Ver-bin-dun-gen.\n");
    shell.write("plain", TEXT);
    shell.write("packed.gz", gzip(TEXT));
    assert_eq!(shell.run("hyphenate plain packed.gz").ok().text(), [MARKED, MARKED].concat());
    let bytes = b"\xff\x00 programs\xfe no end of line";
    assert_eq!(shell.pipe("hyphenate", bytes).ok().stdout, bytes);
}

/// A datagram socket delivers each write on its own.
#[test]
fn lines_of_a_file_are_written_together() {
    const LINES: usize = 2000;
    let shell = Shell::new();
    shell.write("many", TEXT.repeat(LINES));
    let (output, input) = UnixDatagram::pair().unwrap();
    output.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut command = Command::new(UMBEL);
    command.arg("hyphenate").arg(shell.path("many")).stdout(OwnedFd::from(input));
    let mut child = command.spawn().unwrap();
    let (mut text, mut writes, mut buffer) = (Vec::new(), 0, vec![0; 1 << 20]);
    while text.len() < MARKED.len() * LINES {
        let length = output.recv(&mut buffer).unwrap();
        text.extend_from_slice(&buffer[..length]);
        writes += 1;
    }
    assert!(child.wait().unwrap().success());
    assert!(text == MARKED.repeat(LINES).as_bytes());
    assert!(writes <= LINES / 100, "{writes} writes");
}

#[test]
fn own_exceptions_and_statistics() {
    let shell = Shell::new();
    shell.write("own", "% broken nowhere\nprograms\nta-ble\n");
    let answer = shell.pipe("hyphenate --stats --exceptions own", TEXT).code(0);
    assert_eq!(answer.text(), MARKED.replace("pro-grams", "programs"));
    for row in
        ["words                        5", "list reads, filter said yes  4", "list reads saved             1"]
    {
        assert!(answer.stderr.contains(row), "{row}: {}", answer.stderr);
    }
}

#[test]
fn mistakes_are_explained() {
    let shell = Shell::new();
    shell.pipe("hyphenate --lang fr", TEXT).failed(&["fr", "en, de"]);
    shell.write("wrong", "ta-ble\ntwo words\n");
    shell.pipe("hyphenate -e wrong", TEXT).failed(&["wrong", "line 2", "ta-ble"]);
    shell.write("latin", b"caf\xe9\n");
    shell.pipe("hyphenate -e latin", TEXT).failed(&["latin is not UTF-8"]);
    shell.pipe("hyphenate nowhere", "").failed(&["cannot open nowhere"]);
}
