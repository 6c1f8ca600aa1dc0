//! Whoever is at the other end may go, be silent, or be a terminal: the program ends in good order.

mod common;

use common::{Folder, Process, lines, run};
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Stdio;
use std::thread;

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("lines", lines(0..1000));
    folder.umbel("build -o filter lines").quiet();
    folder
}

#[test]
fn whoever_has_seen_enough_may_go_without_a_word() {
    let folder = folder();
    for arguments in [
        "check filter lines",
        "check -c filter lines",
        "check --label filter lines",
        "uniq lines",
        "info filter",
        "info --json filter",
        "info --bits filter",
        "info --verify filter filter",
        "plan -n 1e6 -p 1%",
        "plan -n 1e6 -p 1% --compare",
        "why filter 7",
        "compare filter filter",
        "compare filter filter filter",
        "meta filter",
        "man",
        "man build",
        "completions bash",
        "--help",
        "build --help",
        "--version",
    ] {
        println!("umbel {arguments}");
        // Nobody reads, from the start.
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        Process::start(folder.command(arguments).stdout(writer)).finish().quiet();
    }
}

#[test]
fn a_long_answer_ends_when_its_reader_goes() {
    let folder = folder();
    for arguments in
        ["check filter", "check -v filter", "check -j 1 --line-buffered filter", "uniq", "uniq -j 1"]
    {
        println!("umbel {arguments}");
        let mut process = Process::start(folder.command(arguments).stdin(Stdio::piped()));
        let mut stdin = process.stdin();
        // Without an end: only the loss of its reader ends the program.
        let writer = thread::spawn(move || {
            for start in (0..).step_by(1000) {
                if let Err(error) = stdin.write_all(lines(start..start + 1000).as_bytes()) {
                    return error.kind();
                }
            }
            unreachable!("there is no last line");
        });
        let mut answers = BufReader::new(process.child().stdout.take().expect("a pipe from standard output"));
        answers.read_line(&mut String::new()).unwrap();
        drop(answers);
        process.finish().quiet();
        assert_eq!(writer.join().unwrap(), io::ErrorKind::BrokenPipe);
    }
}

#[test]
fn lines_that_nobody_has_seen_are_new_again_next_time() {
    let folder = folder();
    let before = folder.read("filter");
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let outcome = run(folder.command("add --new filter").stdout(writer), lines(5000..6000));
    outcome.refused(&["filter stays as it was", "output was closed"]);
    assert!(folder.read("filter") == before);
}

#[test]
fn answers_come_while_the_input_is_still_open() {
    let folder = folder();
    for (arguments, asked, answer) in
        [("check filter", "7\n", "7\n"), ("check --label filter", "x\n", "x\tno\n"), ("uniq", "x\n", "x\n")]
    {
        let mut process = Process::start(folder.command(arguments).stdin(Stdio::piped()));
        let mut stdin = process.stdin();
        let mut answers = BufReader::new(process.child().stdout.take().expect("a pipe from standard output"));
        stdin.write_all(asked.as_bytes()).unwrap();
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        assert_eq!(line, answer, "{arguments}");
        drop(stdin);
        assert_eq!(process.finish().code(), Some(0));
    }
}

#[test]
fn a_quiet_question_is_answered_though_another_input_is_silent() {
    let folder = folder();
    for threads in [1, 2, 8] {
        let command = format!("check -q -j {threads} filter lines -");
        let mut process = Process::start(folder.command(&command).stdin(Stdio::piped()));
        // Open until the end, and never written to.
        let _stdin = process.stdin();
        process.finish().quiet();
    }
}

/// A terminal: the end at which someone would sit, and the end for the program.
fn terminal() -> (OwnedFd, File) {
    let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&user).unwrap();
    unlockpt(&user).unwrap();
    let name = ptsname(&user, Vec::new()).unwrap();
    let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    // Not to become the terminal that controls this test.
    let flags = OFlags::NOCTTY.bits() as i32;
    (user, OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).unwrap())
}

#[test]
fn a_terminal_on_which_nobody_types_is_a_hint_and_not_a_wait() {
    let folder = folder();
    let before = folder.contents();
    for arguments in ["build -o new", "add filter", "check filter", "uniq", "build -n 1000 -F 2 -o new"] {
        println!("umbel {arguments}");
        let (_user, program) = terminal();
        let outcome = Process::start(folder.command(arguments).stdin(program)).finish();
        outcome.refused(&["there are no lines to read", "name a file", "| umbel"]);
        assert!(folder.contents() == before);
    }
    // Who wants to type says so.
    let (user, program) = terminal();
    let typing = Process::start(folder.command("check filter -").stdin(program));
    // A line, and the key that ends the input.
    File::from(user.try_clone().unwrap()).write_all(b"7\n\x04").unwrap();
    assert_eq!(typing.finish().quiet().text(), "7\n");
}

#[test]
fn a_filter_is_not_printed_on_a_terminal() {
    let folder = folder();
    for arguments in ["build lines", "build -o - lines", "union filter filter", "fold filter"] {
        let (_user, program) = terminal();
        let outcome = Process::start(folder.command(arguments).stdout(program)).finish();
        outcome.refused(&["a filter is not for a terminal", "-o"]);
    }
}

#[test]
fn a_secret_may_come_through_a_pipe() {
    let folder = folder();
    folder.umbel("key new secret").quiet();
    folder.umbel("build -n 1000 --key-file secret -o locked lines").quiet();
    // Both filters need it, and it can be read only once.
    let arguments = "union --key-file /dev/stdin locked locked -o both";
    folder.umbel_with(arguments, folder.read("secret")).quiet();
    assert_eq!(folder.umbel("check -c --key-file secret both lines").quiet().text(), "1000\n");
}
