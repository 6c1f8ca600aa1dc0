//! A filter that another process shortens while it is in use ends the program with a sentence, not with a signal.

mod common;

use common::{Folder, Process, lines};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::thread;

#[test]
fn a_filter_that_is_shortened_while_it_is_in_use_is_named() {
    let folder = Folder::new();
    folder.write("lines", lines(0..1000));
    // So many parts that most of them have not been touched after the first line.
    folder.umbel("build -n 4M -o original lines").quiet();
    folder.umbel("build -n 4M -o other lines").quiet();
    let original = folder.read("original");
    let header = u32::from_le_bytes(original[20..24].try_into().unwrap());
    for options in ["-j 1", "-j 2", "-j 8", "--with other", "-c --with other"].repeat(4) {
        println!("umbel check filter {options}");
        folder.write("filter", &original);
        let label = if options.contains("-c") { "" } else { "--label" };
        let command = format!("check filter {label} {options}");
        let mut process = Process::start(folder.command(&command).stdin(Stdio::piped()));
        let mut stdin = process.stdin();
        if label.is_empty() {
            // More than a pipe holds: some of it has been asked for by then.
            stdin.write_all(lines(0..100_000).as_bytes()).unwrap();
        } else {
            stdin.write_all(b"7\n").unwrap();
            let mut answers = BufReader::new(process.child().stdout.take().expect("a pipe"));
            let mut answer = String::new();
            answers.read_line(&mut answer).unwrap();
            assert_eq!(answer, "7\tmaybe\n");
            process.child().stdout = Some(answers.into_inner());
        }
        let file = OpenOptions::new().write(true).open(folder.join("filter")).unwrap();
        file.set_len(header.into()).unwrap();
        // The program ends while this is being written.
        let writer = thread::spawn(move || stdin.write_all(lines(0..200_000).as_bytes()));
        let outcome = process.finish();
        assert!(writer.join().unwrap().is_err());
        outcome.failed(&["filter was shortened while it was in use", "replace it with `mv`"]);
    }
}
