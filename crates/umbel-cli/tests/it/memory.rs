//! The memory is that of the filter, and at most 64 MiB more.

use crate::shell::{PROCESS_TIMEOUT, Process, Shell, write_lines};
use std::io::{Read, Write};
use std::thread;

const MIB: u64 = 1 << 20;

/// Returns the peak memory of a process, which must still exist.
fn peak(process: &mut Process) -> u64 {
    let path = format!("/proc/{}/status", process.child().id());
    let status = std::fs::read_to_string(path).expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a process with memory");
    1024 * line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
}

/// Returns the peak memory of a build when the filter starts to be written, and the filter. It is
/// larger than a pipe holds, so the process cannot end before its memory is read.
fn build(mut process: Process, lines: u64) -> (u64, Vec<u8>) {
    write_lines(process.stdin(), lines).unwrap();
    let mut first = [0];
    process.child().stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    let peak = peak(&mut process);
    let filter = [&first[..], &process.finish().code(0).stdout].concat();
    assert!(filter.len() > 64 << 10);
    (peak, filter)
}

#[test]
fn building_for_a_known_number_takes_64_mib_beside_the_filter() {
    let shell = Shell::new();
    for (capacity, threads) in [("1e8", "1"), ("1e8", "2"), ("1e8", "7"), ("4e6", "7"), ("2e5", "64")] {
        let args = ["build", "-n", capacity, "-j", threads];
        let (peak, filter) = build(shell.start(&args), 3_000_000);
        let beside = peak.saturating_sub(filter.len() as u64);
        assert!(beside < 64 * MIB, "{args:?}: {} MiB beside the filter", beside / MIB);
        assert!(peak > filter.len() as u64, "{args:?}: this measures something");
    }
}

#[test]
fn digests_take_64_mib_however_many_there_are() {
    let shell = Shell::new();
    // 160 MB of digests.
    let (peak, filter) = build(shell.start("build"), 20_000_000);
    let beside = peak.saturating_sub(filter.len() as u64);
    assert!(beside < (64 + 64) * MIB, "{} MiB beside the filter", beside / MIB);
}

#[test]
fn static_sets_take_eight_bytes_per_key_while_they_are_built() {
    let shell = Shell::new();
    let keys = 10_000_000;
    let (peak, filter) = build(shell.start("build --kind fuse -j 1"), keys);
    let beside = peak.saturating_sub(filter.len() as u64 + 8 * keys);
    assert!(beside < 64 * MIB, "{} MiB beside the filter and the digests", beside / MIB);
    assert!(peak > filter.len() as u64 + 8 * keys, "this measures something");
}

#[test]
fn uniq_takes_the_memory_it_is_given() {
    let shell = Shell::new();
    for (args, memory) in
        [(&[][..], 64 * MIB), (&["--max-bytes", "4MiB"], 4 * MIB), (&["-n", "1e6"], 4 * MIB)]
    {
        let mut process = shell.start(&[&["uniq", "-q"], args].concat());
        let mut stdin = process.stdin();
        let writer = thread::spawn(move || {
            write_lines(&stdin, 500_000).and_then(|()| stdin.write_all(b"the end\n")).unwrap();
            stdin
        });
        // Once the last line is printed, all lines have been processed.
        while process.next_line(PROCESS_TIMEOUT).expect("the last line") != b"the end\n" {}
        let peak = peak(&mut process);
        assert!(peak < memory + 64 * MIB, "{args:?}: {} MiB", peak / MIB);
        drop(writer.join());
        process.finish().ok();
    }
}
