//! A filter that another process shortens while it is in use ends the program with a message, not
//! with a signal.

use crate::shell::{PROCESS_TIMEOUT, Shell, line, lines};
use std::fs::OpenOptions;
use std::io::Write;
use std::thread;

#[test]
fn a_filter_that_is_shortened_while_it_is_in_use_is_named() {
    let shell = Shell::new();
    shell.write("lines", lines(1, 0..1000));
    // A filter with so many parts that most are untouched after the first line.
    shell.run("build -n 4M -o original lines").ok();
    shell.run("build -n 4M -o other lines").ok();
    let original = shell.read("original");
    let header = u32::from_le_bytes(original[20..24].try_into().unwrap());
    for options in ["-j 1", "-j 2", "-j 8", "--with other", "-c --with other"].repeat(4) {
        println!("umbel check filter {options}");
        shell.write("filter", &original);
        let label = if options.contains("-c") { "" } else { "--label" };
        let mut process = shell.start(&format!("check filter {label} {options}"));
        if label.is_empty() {
            // More than a pipe holds: part of it has been queried by then.
            process.send(lines(1, 0..100_000));
        } else {
            process.send(lines(1, 7..8));
            let answer = process.next_line(PROCESS_TIMEOUT).expect("an answer");
            assert_eq!(answer, [&line(1, 7), &b"\tmaybe\n"[..]].concat());
        }
        let file = OpenOptions::new().write(true).open(shell.path("filter")).unwrap();
        file.set_len(header.into()).unwrap();
        // The program ends during this write.
        let mut stdin = process.stdin();
        let writer = thread::spawn(move || stdin.write_all(&lines(1, 0..200_000)));
        let answer = process.finish();
        assert!(writer.join().unwrap().is_err());
        answer.failed(&["filter was shortened while it was in use", "replace it with `mv`"]);
    }
}
