//! Processes that change the same filter at the same time lose nothing.

mod common;

use common::{Folder, Process, lines};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::thread;

const PROCESSES: u64 = 8;
const ROUNDS: u64 = 5;
const LINES: u64 = 1000;
const ALL: u64 = PROCESSES * ROUNDS * LINES;

/// The lines that one process adds in one round.
fn share(round: u64, process: u64) -> String {
    let first = (round * PROCESSES + process) * LINES;
    lines(first..first + LINES)
}

/// Starts processes that wait for their input, so that all of them run before the first can end.
fn start_adding(folder: &Folder) -> Vec<Process> {
    let add = || Process::start(folder.command("add filter").stdin(Stdio::piped()));
    (0..PROCESSES).map(|_| add()).collect()
}

fn give(process: &mut Process, lines: &str) {
    process.stdin().write_all(lines.as_bytes()).expect("a pipe holds a few lines");
}

#[test]
fn processes_that_add_at_once_lose_nothing() {
    let folder = Folder::new();
    folder.write("all", lines(0..ALL));
    folder.umbel(&format!("build -n {ALL} -o expected all")).quiet();
    folder.umbel(&format!("build -n {ALL} -o filter /dev/null")).quiet();
    for round in 0..ROUNDS {
        let mut processes = start_adding(&folder);
        for (number, process) in (0..).zip(&mut processes) {
            give(process, &share(round, number));
        }
        for process in processes {
            process.finish().quiet();
        }
    }
    assert_eq!(folder.umbel("check --count filter all").quiet().text(), format!("{ALL}\n"));
    // Even the count of insertions is the one of a filter that was built at once.
    assert!(folder.read("filter") == folder.read("expected"));
    assert_eq!(folder.names(), ["all", "expected", "filter"]);
}

#[test]
fn lines_and_metadata_that_come_at_once_are_all_kept() {
    let folder = Folder::new();
    folder.write("all", lines(0..ALL));
    folder.umbel(&format!("build -n {ALL} -o filter /dev/null")).quiet();
    let mut expected = String::new();
    for round in 0..ROUNDS {
        let mut processes = start_adding(&folder);
        let mut setting = Vec::new();
        for number in 0..PROCESSES {
            let entry = format!("{round}.{number}=set");
            setting.push(Process::start(&mut folder.command(&format!("meta filter {entry}"))));
            expected += &format!("{entry}\n");
        }
        for (number, process) in (0..).zip(&mut processes) {
            give(process, &share(round, number));
        }
        for process in processes.into_iter().chain(setting) {
            process.finish().quiet();
        }
    }
    assert_eq!(folder.umbel("check --count filter all").quiet().text(), format!("{ALL}\n"));
    assert_eq!(folder.umbel("meta filter").quiet().text(), expected);
    assert_eq!(folder.names(), ["all", "filter"]);
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
fn whoever_comes_while_lines_are_being_added_waits_for_the_end() {
    for (arguments, members, meta) in [
        ("add filter second", "first\nsecond\nthird\n", ""),
        ("meta filter name=value", "first\nthird\n", "name=value\n"),
        // It replaces what is there, and is not undone by who came first.
        ("build -n 1000 --meta by=force -f -o filter second", "second\n", "by=force\n"),
    ] {
        println!("umbel {arguments}");
        let folder = Folder::new();
        folder.umbel("build -n 1000 -o filter /dev/null").quiet();
        folder.write("second", "second\n");
        let mut first = Process::start(folder.command("add --new filter").stdin(Stdio::piped()));
        let mut stdin = first.stdin();
        stdin.write_all(b"first\n").unwrap();
        let mut answers = BufReader::new(first.child().stdout.take().expect("a pipe from standard output"));
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        // By now the first has read the filter, and will replace whatever is there when it ends.
        assert_eq!(answer, "first\n");
        let mut second = Process::start(&mut folder.command(arguments));
        await_waiting(&mut second);
        stdin.write_all(b"third\n").unwrap();
        drop(stdin);
        first.finish().quiet();
        second.finish().quiet();
        assert_eq!(folder.umbel_with("check filter", "first\nsecond\nthird\n").quiet().text(), members);
        assert_eq!(folder.umbel("meta filter").quiet().text(), meta);
    }
}
