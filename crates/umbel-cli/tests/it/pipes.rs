//! The other end of a pipe may close, be silent, or be a terminal: the program ends properly.

use crate::shell::{PROCESS_TIMEOUT, Process, Shell, lines, terminal};
use std::io::{self, Write};
use std::thread;

fn prepared() -> Shell {
    let shell = Shell::new();
    shell.write("lines", lines(1, 0..1000));
    shell.run("build -o filter lines").ok();
    shell
}

#[test]
fn a_closed_output_is_not_an_error() {
    let shell = prepared();
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
        // The output is closed from the start.
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        Process::start(shell.command(arguments).stdout(writer)).finish().ok();
    }
}

#[test]
fn a_long_output_ends_when_it_is_closed() {
    let shell = prepared();
    for arguments in
        ["check filter", "check -v filter", "check -j 1 --line-buffered filter", "uniq", "uniq -j 1"]
    {
        println!("umbel {arguments}");
        let mut process = shell.start(arguments);
        let mut stdin = process.stdin();
        // Endless input: only the closed output ends the program.
        let writer = thread::spawn(move || {
            let mut starts = (0..).step_by(1000);
            starts.find_map(|start| stdin.write_all(&lines(1, start..start + 1000)).err())
        });
        process.next_line(PROCESS_TIMEOUT).expect("an answer");
        drop(process.child().stdout.take());
        process.finish().ok();
        assert_eq!(writer.join().unwrap().expect("no last line").kind(), io::ErrorKind::BrokenPipe);
    }
}

#[test]
fn lines_that_were_not_printed_are_new_again_next_time() {
    let shell = prepared();
    let before = shell.read("filter");
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let process = Process::start(shell.command("add --new filter").stdout(writer));
    let answer = process.feed(|mut stdin| stdin.write_all(&lines(1, 5000..6000)));
    answer.refused(&["filter stays as it was", "output was closed"]);
    assert!(shell.read("filter") == before);
}

#[test]
fn lines_are_printed_while_the_input_is_still_open() {
    let shell = prepared();
    let member = lines(1, 7..8);
    for (arguments, asked, answer) in [
        ("check filter", &member[..], &member[..]),
        ("check --label filter", b"x\n", b"x\tno\n"),
        ("uniq", b"x\n", b"x\n"),
    ] {
        let mut process = shell.start(arguments);
        process.send(asked);
        assert_eq!(process.next_line(PROCESS_TIMEOUT).expect("an answer"), answer, "{arguments}");
        process.finish().code(0);
    }
}

#[test]
fn a_quiet_check_ends_although_another_input_is_silent() {
    let shell = prepared();
    for threads in [1, 2, 8] {
        let mut process = shell.start(&format!("check -q -j {threads} filter lines -"));
        // A pipe that is open until the end, and never written to.
        let _stdin = process.stdin();
        process.finish().ok();
    }
}

#[test]
fn a_terminal_as_input_causes_a_hint_instead_of_waiting() {
    let shell = prepared();
    let before = shell.contents(".");
    for arguments in ["build -o new", "add filter", "check filter", "uniq", "build -n 1000 -F 2 -o new"] {
        println!("umbel {arguments}");
        let (_user, program) = terminal();
        let answer = Process::start(shell.command(arguments).stdin(program)).finish();
        answer.refused(&["there are no lines to read", "name a file", "| umbel"]);
        assert!(shell.contents(".") == before);
    }
    // `-` reads the terminal.
    let (mut user, program) = terminal();
    let typing = Process::start(shell.command("check filter -").stdin(program));
    // A line, and Ctrl-D.
    user.write_all(&[lines(1, 7..8), vec![4]].concat()).unwrap();
    assert_eq!(typing.finish().ok().stdout, lines(1, 7..8));
}

#[test]
fn a_filter_is_not_printed_on_a_terminal() {
    let shell = prepared();
    for arguments in ["build lines", "build -o - lines", "union filter filter", "fold filter"] {
        let (_user, program) = terminal();
        let answer = Process::start(shell.command(arguments).stdout(program)).finish();
        answer.refused(&["a filter is not for a terminal", "-o"]);
    }
}

#[test]
fn a_secret_may_come_through_a_pipe() {
    let shell = prepared();
    shell.run("key new secret").ok();
    shell.run("build -n 1000 --key-file secret -o locked lines").ok();
    // Both filters need the secret, which can be read only once.
    let arguments = "union --key-file /dev/stdin locked locked -o both";
    shell.pipe(arguments, shell.read("secret")).ok();
    assert_eq!(shell.run("check -c --key-file secret both lines").ok().text(), "1000\n");
}
