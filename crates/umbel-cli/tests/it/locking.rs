//! Processes that change the same filter at the same time lose nothing.

use crate::shell::{PROCESS_TIMEOUT, Process, Shell, lines};
use std::fs::File;
use std::io::Write;
use std::time::Duration;
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

#[test]
fn a_reader_with_a_lock_does_not_block_changes_for_ever() {
    let shell = Shell::new();
    shell.write("keys", "a\nb\n");
    shell.write("pairs", "a\t1\n");
    shell.write("urls.txt", "evil.example\n");
    shell.write("passphrase", "correct horse\n");
    shell.allow("passphrase", 0o600);
    fs::create_dir(shell.path("docs")).unwrap();
    shell.write("docs/text", "word\n");
    for command in [
        "build -o filter keys",
        "build -o copy keys",
        "build --kind counting -o counting keys",
        "build --shards 2 -n 10 -o shards keys",
        "build --shards 2 -n 10 -o united keys",
        "map build --mutable -o map pairs",
        "count build -o counts keys",
        "distinct -o distinct keys",
        "table put table pairs",
        "index build docs",
        "url build -o urls urls.txt",
        "password build --unsealed -o weak keys",
        "net block --state state --list keys",
    ] {
        shell.run(command);
    }
    shell.run("vault add --passphrase-file passphrase vault keys");
    for (command, locked) in [
        ("add filter keys", "filter"),
        ("add --new filter keys", "filter"),
        ("meta filter name=value", "filter"),
        ("meta filter --unset name", "filter"),
        ("build -f -o filter keys", "filter"),
        ("build --shards 3 -n 10 -f -o shards keys", "shards"),
        ("add shards keys", "shards"),
        ("union -f shards shards -o united", "united"),
        ("union -f filter filter -o copy", "copy"),
        ("intersect -f filter filter -o copy", "copy"),
        ("remove counting keys", "counting"),
        ("map set map pairs", "map"),
        ("map build -f -o map pairs", "map"),
        ("count add counts keys", "counts"),
        ("count build -f -o counts keys", "counts"),
        ("distinct -f -o distinct keys", "distinct"),
        ("table put table pairs", "table/lock"),
        ("table get table keys", "table/lock"),
        ("table delete table keys", "table/lock"),
        ("table scan table", "table/lock"),
        ("table merge table", "table/lock"),
        ("table stats table", "table/lock"),
        ("index update docs.idx", "docs.idx"),
        ("url build -f -o urls urls.txt", "urls"),
        ("url build -f -o urls urls.txt", "."),
        ("password add weak keys", "weak"),
        ("vault add --passphrase-file passphrase vault pairs", "vault/vault"),
        ("vault remove --passphrase-file passphrase vault keys", "vault/vault"),
        ("net block --state state", "state"),
    ] {
        // Reading is all that this process may do with the file.
        let reader = File::open(shell.path(locked)).unwrap_or_else(|error| panic!("{locked}: {error}"));
        let before = shell.path(locked).is_file().then(|| shell.read(locked));
        reader.lock().unwrap();
        for (wait, says) in [("0", "--wait"), ("100ms", "was not released within 100ms")] {
            let answer = shell.run(&format!("{command} --wait {wait}"));
            answer.refused(&["is locked by", says]);
            if fs::read_to_string("/proc/locks")
                .is_ok_and(|locks| locks.contains(&format!(" {} ", std::process::id())))
            {
                answer.refused(&[&format!("process {} (", std::process::id())]);
            }
        }
        assert!(before == shell.path(locked).is_file().then(|| shell.read(locked)), "{command}");
        // If the lock is released in time, the command goes on.
        let process = shell.start(&format!("{command} --wait 2m"));
        thread::sleep(Duration::from_millis(20));
        drop(reader);
        let answer = process.finish();
        assert!(matches!(answer.code, Some(0 | 1)), "{command}: {}", answer.stderr);
    }
    // The default is a limit too.
    assert!(shell.run("add --help").ok().text().contains("[default: 30s]"));
}
