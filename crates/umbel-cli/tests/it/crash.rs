//! Whenever the process is killed, a filter on disk is the old one or the new one, and no other
//! file is left.

use crate::shell::{Process, Shell, UMBEL, Words, lines};
use crate::writers::Random;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

/// The number of kills for each of the two ways to replace a filter.
const KILLS: usize = 100;

/// A file in progress has a name only for some 30 microseconds, between its link and its rename. A
/// kill in that time is rare, about once in a thousand. Files that had a name all along would be
/// left dozens of times.
const RARE: usize = 3;

/// Returns the typical duration of the process.
fn duration(shell: &Shell, old: &[u8], arguments: &str) -> Duration {
    let mut durations = [(); 9].map(|()| {
        shell.write("filter", old);
        let start = Instant::now();
        shell.run(arguments).ok();
        start.elapsed()
    });
    durations.sort();
    durations[durations.len() / 2]
}

#[test]
fn after_a_kill_the_file_is_the_old_or_the_new_one() {
    let shell = Shell::new();
    // About 40 milliseconds, a large part of it for reading and writing a filter of 10 MB.
    shell.write("lines", lines(1, 0..1_000_000));
    shell.write("more", lines(1, 1_000_000..2_000_000));
    shell.run("build -n 8M -o filter lines").ok();
    let old = shell.read("filter");
    let mut random = Random::new(0);
    let (mut killed, mut replaced, mut left_over) = (0, 0, 0);
    for arguments in ["add filter more", "build -n 8M -f -o filter more lines"] {
        let duration = duration(&shell, &old, arguments);
        let new = shell.read("filter");
        assert_ne!(old, new);
        for _ in 0..KILLS {
            shell.write("filter", &old);
            // A little beyond the end, so that the last steps are also hit in a slow run.
            let moment = duration.mul_f64(1.2 * random.share());
            let mut process = shell.start(arguments);
            thread::sleep(moment);
            process.child().kill().expect("a process that has not been waited for can be killed");
            killed += usize::from(process.finish().signal == Some(9));

            let found = shell.read("filter");
            assert!(found == old || found == new, "{arguments}: another file after {moment:?}");
            replaced += usize::from(found == new);
            shell.run("info --verify filter").ok();
            for name in shell.names(".") {
                if !["filter", "lines", "more"].contains(&&name[..]) {
                    assert!(name.starts_with(".umbel-") && name.ends_with(".part"), "{name}");
                    std::fs::remove_file(shell.path(&name)).unwrap();
                    left_over += 1;
                }
            }
        }
        println!("{arguments} takes {duration:?}");
    }
    println!("killed {killed}, replaced {replaced}, left over {left_over} of {}", 2 * KILLS);
    assert!(left_over <= RARE, "{left_over} files were left behind");
    // Otherwise the test would prove little.
    assert!(killed >= 2 * KILLS / 3, "only {killed} of {} were still running", 2 * KILLS);
    assert!(replaced > 0, "none came as far as the new file");
}

#[test]
fn an_interrupted_build_leaves_no_files_and_changes_none() {
    for arguments in ["build -o new", "build -n 1e6 -f -o old"] {
        let shell = Shell::new();
        shell.pipe("build -o old", "an\nold\nfilter\n").ok();
        let old = shell.read("old");
        // Tests started in the background ignore this signal, and so would their child processes.
        let mut command = shell.program("env");
        let mut process =
            Process::start(command.args(["--default-signal=INT", UMBEL]).args(arguments.words()));
        let mut stdin = process.stdin();
        // More than a pipe holds: once all of it is written, the program is in the middle of its
        // work.
        stdin.write_all(&lines(1, 0..500_000)).expect("the program reads");
        let pid = Pid::from_child(process.child());
        kill_process(pid, Signal::INT).expect("a signal can be sent");
        let answer = process.finish();
        drop(stdin);
        assert_eq!(answer.signal, Some(2), "{answer:?}");
        assert_eq!(shell.names("."), ["old"]);
        assert!(shell.read("old") == old);
    }
}
