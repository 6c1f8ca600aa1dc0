//! Processes that change the same filter at the same time lose nothing.

use crate::shell::{PROCESS_TIMEOUT, Process, Shell, lines};
use std::io::Write;
use std::{fs, thread};

const PROCESSES: u64 = 8;
const ROUNDS: u64 = 5;
const LINES: u64 = 1000;
const ALL: u64 = PROCESSES * ROUNDS * LINES;

/// Returns the lines that one process adds in one round.
fn share(round: u64, process: u64) -> Vec<u8> {
    let first = (round * PROCESSES + process) * LINES;
    lines(1, first..first + LINES)
}

/// Starts processes that wait for their input, so that all of them run before the first can end.
fn start_adding(shell: &Shell) -> Vec<Process> {
    (0..PROCESSES).map(|_| shell.start("add filter")).collect()
}

#[test]
fn processes_that_add_at_once_lose_nothing() {
    let shell = Shell::new();
    shell.write("all", lines(1, 0..ALL));
    shell.run(&format!("build -n {ALL} -o expected all")).ok();
    shell.run(&format!("build -n {ALL} -o filter /dev/null")).ok();
    for round in 0..ROUNDS {
        let mut processes = start_adding(&shell);
        for (number, process) in (0..).zip(&mut processes) {
            send_last_lines(process, &share(round, number));
        }
        for process in processes {
            process.finish().ok();
        }
    }
    assert_eq!(shell.run("check --count filter all").ok().text(), format!("{ALL}\n"));
    // Even the number of insertions is that of a filter built at once.
    assert!(shell.read("filter") == shell.read("expected"));
    assert_eq!(shell.names("."), ["all", "expected", "filter"]);
}

#[test]
fn concurrent_changes_of_lines_and_metadata_are_all_kept() {
    let shell = Shell::new();
    shell.write("all", lines(1, 0..ALL));
    shell.run(&format!("build -n {ALL} -o filter /dev/null")).ok();
    let mut expected = String::new();
    for round in 0..ROUNDS {
        let mut processes = start_adding(&shell);
        let mut setting = Vec::new();
        for number in 0..PROCESSES {
            let entry = format!("{round}.{number}=set");
            setting.push(shell.start(&format!("meta filter {entry}")));
            expected += &format!("{entry}\n");
        }
        for (number, process) in (0..).zip(&mut processes) {
            send_last_lines(process, &share(round, number));
        }
        for process in processes.into_iter().chain(setting) {
            process.finish().ok();
        }
    }
    assert_eq!(shell.run("check --count filter all").ok().text(), format!("{ALL}\n"));
    assert_eq!(shell.run("meta filter").ok().text(), expected);
    assert_eq!(shell.names("."), ["all", "filter"]);
}

/// Writes the last lines of a process's input.
fn send_last_lines(process: &mut Process, lines: &[u8]) {
    process.stdin().write_all(lines).expect("a pipe holds a few lines");
}

/// Waits until a process waits for a lock.
fn await_waiting(process: &mut Process) {
    let pid = process.child().id().to_string();
    let waits = |line: &str| line.contains(" -> ") && line.split_whitespace().any(|word| word == pid);
    while !fs::read_to_string("/proc/locks").expect("Linux tells about locks").lines().any(waits) {
        let ended = process.child().try_wait().expect("it can be asked");
        assert_eq!(ended, None, "it ended instead of waiting");
        thread::yield_now();
    }
}

#[test]
fn other_changes_wait_until_lines_have_been_added() {
    for (arguments, members, meta) in [
        ("add filter second", "first\nsecond\nthird\n", ""),
        ("meta filter name=value", "first\nthird\n", "name=value\n"),
        // It replaces the file, and the first process does not undo that.
        ("build -n 1000 --meta by=force -f -o filter second", "second\n", "by=force\n"),
    ] {
        println!("umbel {arguments}");
        let shell = Shell::new();
        shell.run("build -n 1000 -o filter /dev/null").ok();
        shell.write("second", "second\n");
        let mut first = shell.start("add --new filter");
        first.send("first\n");
        // Once it prints the line, the first process has read the filter, and will replace the file
        // when it ends.
        assert_eq!(first.next_line(PROCESS_TIMEOUT).expect("an answer"), b"first\n");
        let mut second = shell.start(arguments);
        await_waiting(&mut second);
        first.send("third\n");
        first.finish().ok();
        second.finish().ok();
        assert_eq!(shell.pipe("check filter", "first\nsecond\nthird\n").ok().text(), members);
        assert_eq!(shell.run("meta filter").ok().text(), meta);
    }
}
