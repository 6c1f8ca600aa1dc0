//! Memory is what was promised: the filter, and never more than 64 MiB beside it.
#![cfg(target_os = "linux")]

mod shell;

use shell::Shell;
use std::io::{BufWriter, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// The most memory that a process had until now; it has to be there still.
fn peak(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a process with memory");
    1024 * line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
}

/// Different lines from `numbers`, as they are needed.
fn write_lines(to: impl Write, numbers: std::ops::Range<u64>) -> std::io::Result<()> {
    let mut to = BufWriter::with_capacity(1 << 16, to);
    numbers.into_iter().try_for_each(|number| writeln!(to, "{number:x}")).and_then(|()| to.flush())
}

/// The peak of a build at the moment when the filter begins to come out, and the filter. It is longer than a pipe holds,
/// so that the process cannot end before somebody has looked.
fn build(mut command: Command, lines: u64) -> (u64, Vec<u8>) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("umbel");
    write_lines(child.stdin.take().unwrap(), 0..lines).unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut filter = vec![0];
    out.read_exact(&mut filter).unwrap();
    let peak = peak(&child);
    out.read_to_end(&mut filter).unwrap();
    assert!(child.wait().unwrap().success() && filter.len() > 64 << 10);
    (peak, filter)
}

#[test]
fn building_for_a_known_number_takes_the_filter_and_64_mib() {
    let shell = Shell::new();
    for (capacity, threads) in [("1e8", "1"), ("1e8", "2"), ("1e8", "7"), ("4e6", "7"), ("2e5", "64")] {
        let args = ["build", "-n", capacity, "-j", threads];
        let (peak, filter) = build(shell.command(&args), 3_000_000);
        let beside = peak.saturating_sub(filter.len() as u64);
        assert!(beside < 64 * MIB, "{args:?}: {} MiB beside the filter", beside / MIB);
        assert!(peak > filter.len() as u64, "{args:?}: this measures something");
    }
}

#[test]
fn digests_take_64_mib_however_many_there_are() {
    let shell = Shell::new();
    // 160 MB of digests.
    let (peak, filter) = build(shell.command(&["build"]), 20_000_000);
    let beside = peak.saturating_sub(filter.len() as u64);
    assert!(beside < (64 + 64) * MIB, "{} MiB beside the filter", beside / MIB);
}

#[test]
fn uniq_takes_what_it_is_given() {
    let shell = Shell::new();
    for (args, memory) in
        [(&[][..], 64 * MIB), (&["--max-bytes", "4MiB"], 4 * MIB), (&["-n", "1e6"], 4 * MIB)]
    {
        let mut talk = shell.talk(&[&["uniq", "-q"], args].concat());
        write_lines(talk.stdin(), 0..500_000).unwrap();
        talk.say("the end\n");
        // When the last line is answered, all were.
        while talk.hear(Duration::from_secs(60)).expect("the last line") != b"the end\n" {}
        let peak = peak(talk.child());
        assert!(peak < memory + 64 * MIB, "{args:?}: {} MiB", peak / MIB);
        talk.end();
    }
}
