//! The examples in the help of every command run without an error.

use crate::captures::{pcap, udp};
use crate::pages::copy_orders;
use crate::shell::{Answer, Process, Shell, gzip};
use std::fs;
use std::path::Path;
use umbel_net::capture::Link;

/// Creates the files that the examples use.
const SETUP: &str = include_str!("examples.sh");

/// Parts of examples that need a server, run for ever or take long. A unit test parses these
/// examples.
const NOT_RUN: [&str; 5] = ["redis://", "probe.example:", "umbel proxy", "umbel explore", "umbel lab run"];

/// Runs a line of shell with two lines on standard input.
fn sh(shell: &Shell, line: &str) -> Answer {
    let mut command = shell.script(line);
    Process::start(command.env("HOME", shell.path("home")))
        .feed(|mut stdin| std::io::Write::write_all(&mut stdin, b"password\nx\n"))
}

/// Returns a folder with the files that the examples use.
fn fixtures() -> Shell {
    let shell = Shell::new();
    let sentence = "GET /index.html is a sentence that is long enough to be recognised. ".repeat(8);
    let datagram = |from: u8| {
        let noise = (0..400u32).map(|byte| ((byte * byte * u32::from(from)) >> 3) as u8).collect();
        let payload = if from == 3 { sentence.clone().into_bytes() } else { noise };
        udp([192, 0, 2, from].into(), [198, 51, 100, 1].into(), (1000, 2000), &payload)
    };
    let capture = pcap(Link::ETHERNET, (1..30).map(datagram));
    for name in ["capture.pcapng.gz", "monday.pcapng.gz", "tuesday.pcapng.gz"] {
        shell.write(name, gzip(&capture));
    }
    shell.write("capture.pcap", &capture);
    shell.write("sentence.txt", &sentence[20..320]);
    copy_orders(&shell);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../umbel-parquet/tests/golden");
    for (from, to) in [("orders/2024-01.parquet", "orders.parquet"), ("nested.parquet", "people.parquet")] {
        fs::copy(golden.join(from), shell.path(to)).expect("a small file");
    }
    sh(&shell, SETUP).code(0);
    shell
}

/// Returns a copy of a folder and its files.
fn copy(shell: &Shell) -> Shell {
    let copy = Shell::new();
    Process::start(shell.program("cp").args(["-a", "."]).arg(copy.path("."))).finish().ok();
    copy
}

/// Returns a command and all commands below it, from their help.
fn leaves(shell: &Shell, command: &str) -> Vec<String> {
    let help = shell.run(&format!("{command} --help")).ok();
    let commands = help.text().lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = commands
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.split_ascii_whitespace().next())
        .filter(|name| *name != "help");
    let below = names.flat_map(|name| leaves(shell, &format!("{command} {name}")));
    std::iter::once(command.to_owned()).chain(below).collect()
}

/// Returns the examples in the help of a command.
fn examples(shell: &Shell, command: &str) -> Vec<String> {
    let help = shell.run(&format!("{command} --help")).ok();
    let lines = help.text().lines().skip_while(|line| *line != "Examples:").skip(1);
    lines.take_while(|line| line.starts_with("  ")).map(|line| line.trim().to_owned()).collect()
}

/// Replaces terminals and endless input in an example.
fn runnable(example: &str) -> String {
    let mut line = example.replace("tail -f", "cat").replace("tcpdump -w -", "cat capture.pcap");
    line = line.replace("| less", "| cat").replace("| man -l -", "| cat");
    if line.contains("umbel vault") && !line.contains("--passphrase-file") && !line.contains("vault info") {
        line += " --passphrase-file pass.txt";
    }
    if (line.contains("vault passphrase") || line.contains("vault copy"))
        && !line.contains("--new-passphrase-file")
    {
        line += " --new-passphrase-file pass.txt";
    }
    // Ids are random.
    line.replace("2c0154bf0b18071c7756416f97948276", "$(ls secrets | grep -m1 doc | cut -c1-32)")
}

/// Removes the files that the example creates.
fn remove_outputs(shell: &Shell, example: &str) {
    let words: Vec<&str> = example.split_ascii_whitespace().collect();
    for pair in words.windows(2).filter(|pair| pair[0] == "-o") {
        for end in ["", ".exact", ".key"] {
            let path = shell.path(&format!("{}{end}", pair[1]));
            // Other directories are stores, which later examples use.
            let is_sharded = path.extension().is_some_and(|end| end == "shards");
            let _ = if is_sharded { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
    }
    if example.contains("index build logs") {
        let _ = fs::remove_file(shell.path("logs.idx"));
    }
    if example.contains("vault add secrets diary.txt") {
        fs::remove_dir_all(shell.path("secrets")).expect("a vault");
    }
}

#[test]
fn the_examples_of_every_command_run() {
    let mut count = 0;
    let fixtures = fixtures();
    for command in super::manual::COMMANDS {
        let shell = copy(&fixtures);
        for command in leaves(&shell, command) {
            let examples = examples(&shell, &command);
            assert!(!examples.is_empty(), "{command} has no examples");
            // The examples of a command may use the results of the previous ones.
            let _ = fs::remove_file(shell.path("secret.key"));
            for example in examples {
                if NOT_RUN.iter().any(|part| example.contains(part)) {
                    continue;
                }
                remove_outputs(&shell, &example);
                let answer = sh(&shell, &runnable(&example));
                let lacks_dictionary = answer.stderr.contains("there is no word list");
                assert!(matches!(answer.code, Some(0 | 1)) || lacks_dictionary, "{example}: {answer:?}");
                count += 1;
            }
        }
    }
    assert!(count > 100, "only {count} examples were found");
}
