//! Commands that write, while the disk is full, calls fail or are interrupted, or the process is
//! killed: the files are the old or the new ones, and the next call works.
//!
//! Each test takes every way to write a file of the table in [`crate::writers`]. `fuzz/soak` runs
//! the tests named `soak` for the time that it is given.

use crate::shell::{Process, Shell};
use crate::writers::{ELSEWHERE, Fault, READERS, Random, Soak, Trial, WRITERS, WRITING_OPTIONS, shim};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// Takes each of the first sixteen calls, and fewer of commands that write many files. All commands
/// that write one or two files make fewer calls than that.
const EVERY_CALL: f64 = 1.0 / 16.0;

/// Tries all writers, two at a time, and fails with everything that was found.
fn for_each_writer(try_one: impl Fn(usize, &Trial) -> Vec<String> + Sync) {
    let (next, findings) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let number = next.fetch_add(1, Relaxed);
            let Some(writer) = WRITERS.get(number) else { break };
            let trial = Trial::new(writer);
            let found = try_one(number, &trial);
            let found = found.into_iter().map(|finding| format!("{trial}: {finding}"));
            findings.lock().expect("no other thread panics while it pushes").extend(found);
        }
    };
    thread::scope(|scope| {
        let other = scope.spawn(work);
        work();
        other.join().expect("the other half of the writers");
    });
    let findings = findings.into_inner().expect("both threads have ended");
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}

/// Runs the command with a fault and judges the result. Returns whether a call failed.
fn attempt(trial: &Trial, folder: &Shell, shim: &Path, fault: Fault) -> Result<bool, String> {
    let (answer, call) = trial.fail(folder, shim, fault);
    let judged = match fault {
        Fault::Interrupted(_) | Fault::Short(_) => trial.judge_undisturbed(folder, &answer),
        _ => trial.judge(folder, &answer).map(drop),
    };
    let name = call.as_deref().unwrap_or("no call");
    judged.map_err(|problem| format!("{fault:?} ({name}): {problem}"))?;
    Ok(call.is_some())
}

/// Tries a fault at one call after the other, until the command ends before the fault. The numbers
/// of the calls grow by `step` of them.
fn at_calls(trial: &Trial, first: u64, step: f64, fault: fn(u64) -> Fault) -> Vec<String> {
    let Some(shim) = shim() else { return Vec::new() };
    let (mut findings, mut number) = (Vec::new(), first);
    loop {
        match attempt(trial, &trial.folder(), shim, fault(number)) {
            Ok(false) => return findings,
            Ok(true) => {}
            Err(finding) => findings.push(finding),
        }
        // Enough to see what is wrong, and no command makes so many calls.
        if findings.len() == 5 || number > 100_000 {
            return findings;
        }
        number += 1 + (number as f64 * step) as u64;
    }
}

#[test]
fn a_kill_between_any_two_calls_leaves_the_old_or_the_new_files() {
    for_each_writer(|_, trial| at_calls(trial, 1, EVERY_CALL, Fault::Kill));
}

#[test]
fn a_full_disk_is_reported_by_every_command_and_leaves_the_old_files() {
    for_each_writer(|number, trial| {
        let mut findings = at_calls(trial, 1, EVERY_CALL, Fault::NoSpace);
        let Some(shim) = shim() else { return findings };
        // Somewhere in the first file, before its last byte, and on the way.
        let bytes = trial.written_bytes();
        for room in [number as u64 % 16, bytes / 2, bytes.saturating_sub(1)] {
            findings.extend(attempt(trial, &trial.folder(), shim, Fault::Room(room)).err());
        }
        findings
    });
}

#[test]
fn a_failing_call_is_reported_by_every_command_and_leaves_the_old_files() {
    for_each_writer(|number, trial| at_calls(trial, 1 + number as u64 % 4, 0.2, Fault::Input));
}

#[test]
fn interrupted_and_short_calls_do_not_change_what_is_written() {
    let Some(shim) = shim() else { return };
    for_each_writer(|number, trial| {
        let faults = [Fault::Interrupted(1), Fault::Interrupted(3), Fault::Short(number as u64)];
        faults
            .into_iter()
            .filter_map(|fault| match attempt(trial, &trial.folder(), shim, fault) {
                Ok(true) => None,
                Ok(false) => Some(format!("{fault:?} concerns no call")),
                Err(finding) => Some(finding),
            })
            .collect()
    });
}

#[test]
fn a_limit_on_the_size_of_files_is_reported_and_leaves_the_old_files() {
    if !Command::new("prlimit").arg("--version").output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: a limit on the size of files, which needs `prlimit` of util-linux");
        return;
    }
    for_each_writer(|_, trial| {
        let folder = trial.folder();
        let mut prlimit = folder.program("prlimit");
        prlimit.arg("--fsize=16");
        let answer = Process::start(&mut trial.command_in(prlimit)).finish();
        // Some write fewer bytes.
        let refused = answer.code == Some(2) && answer.stderr.contains("File too large");
        let refused = refused || answer.code == Some(0);
        let unexpected =
            (!refused).then(|| format!("{:?} {:?}: {}", answer.code, answer.signal, answer.stderr));
        unexpected.into_iter().chain(trial.judge(&folder, &answer).err()).collect()
    });
}

#[test]
fn a_kill_at_any_moment_leaves_the_old_or_the_new_files() {
    for_each_writer(|number, trial| {
        let mut random = Random::new(number as u64);
        (0..3).filter_map(|_| kill(trial, &trial.folder(), &mut random).err()).collect()
    });
}

/// Kills the command at a random moment. Returns whether it was still running.
fn kill(trial: &Trial, folder: &Shell, random: &mut Random) -> Result<bool, String> {
    // A little beyond the end, so that the last steps are also hit in a slow run.
    let moment = trial.duration.mul_f64(1.2 * random.share());
    let mut process = trial.start(folder);
    thread::sleep(moment);
    process.child().kill().expect("a process that has not been waited for can be killed");
    let answer = process.finish();
    let killed = answer.signal == Some(9);
    trial.judge(folder, &answer).map_err(|problem| format!("killed after {moment:?}: {problem}"))?;
    Ok(killed)
}

#[test]
#[ignore = "runs for as long as `fuzz/soak` asks"]
fn soak_kills() {
    let Some(shim) = shim() else { return };
    let mut soak = Soak::start("kills");
    while let Some((trial, random)) = soak.next() {
        let folder = trial.folder();
        let killed = if random.share() < 0.5 {
            kill(trial, &folder, random)
        } else {
            let number = random.below(12) + 1;
            attempt(trial, &folder, shim, Fault::Kill(number))
        };
        soak.count(&folder, killed);
    }
    soak.finish();
}

#[test]
#[ignore = "runs for as long as `fuzz/soak` asks"]
fn soak_failing_calls() {
    let Some(shim) = shim() else { return };
    let mut soak = Soak::start("faults");
    while let Some((trial, random)) = soak.next() {
        let folder = trial.folder();
        let fault = match random.below(6) {
            0 => Fault::NoSpace(random.below(12) + 1),
            1 => Fault::Room(random.below(trial.written_bytes() + 2)),
            2 | 3 => Fault::Input(random.below(80) + 1),
            4 => Fault::Interrupted(random.below(9) + 1),
            _ => Fault::Short(random.below(1 << 20)),
        };
        let failed = attempt(trial, &folder, shim, fault);
        soak.count(&folder, failed);
    }
    soak.finish();
}

/// Returns all commands without subcommands: each has a manual page, whose name has hyphens between
/// the words of the command.
fn commands(shell: &Shell) -> BTreeSet<String> {
    shell.run("man --dir man").ok();
    let pages = shell.names("man");
    let names: Vec<&str> = pages.iter().filter_map(|page| page.strip_suffix(".1")).collect();
    let has_subcommands = |name: &str| names.iter().any(|other| other.starts_with(&format!("{name}-")));
    let leaves = names.iter().filter(|name| !has_subcommands(name));
    leaves.filter_map(|name| name.strip_prefix("umbel-")).map(str::to_string).collect()
}

#[test]
fn every_command_that_writes_is_in_the_table() {
    let shell = Shell::new();
    let writers: BTreeSet<&str> =
        WRITERS.iter().map(|writer| writer.command).chain(ELSEWHERE.iter().copied()).collect();
    let readers: BTreeSet<&str> = READERS.iter().copied().collect();
    assert!(writers.is_disjoint(&readers));
    let known: BTreeSet<String> = writers.union(&readers).map(|name| name.replace(' ', "-")).collect();
    // A new command belongs in one of the lists of `writers/table.rs`.
    assert_eq!(known, commands(&shell));
    for name in readers {
        let help = shell.run(&format!("{name} --help")).ok();
        for option in WRITING_OPTIONS {
            assert!(!help.text().contains(option), "umbel {name} has {option}: it writes files");
        }
    }
}
