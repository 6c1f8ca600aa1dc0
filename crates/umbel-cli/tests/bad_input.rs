//! Whatever bytes come in: lines are keys as they are, and what cannot be read is said and leaves nothing.

mod common;

use common::{Folder, lines, run, umbel};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

/// Builds a filter from these bytes and asks it for those: what comes back.
fn asked(build: &str, bytes: &[u8], check: &str, keys: &[u8]) -> Vec<u8> {
    let folder = Folder::new();
    // A rate at which no line is found by chance.
    folder.umbel_with(&format!("build -n 1000 -p 1e-9 -o filter {build}"), bytes).quiet();
    let outcome = folder.umbel_with(&format!("check filter {check}"), keys);
    assert_eq!(outcome.stderr, "");
    assert_eq!(outcome.code(), Some(i32::from(outcome.stdout.is_empty())));
    outcome.stdout
}

#[test]
fn a_last_line_without_its_end_is_a_key_like_any_other() {
    assert_eq!(asked("", b"one\ntwo", "", b"two\none\nthree\n"), b"two\none\n");
    assert_eq!(asked("", b"one\ntwo\n", "", b"one\nthree\ntwo"), b"one\ntwo\n", "and is printed with one");
    assert_eq!(asked("-0", b"one\0two", "-0", b"two"), b"two\0");
}

#[test]
fn lines_are_bytes_whatever_they_are() {
    let strange = b"nul\0inside\n\xff\xfe not UTF-8\n\xc3\n\x1b[31m\n  spaces  \n";
    assert_eq!(asked("", strange, "", strange), strange);
    assert_eq!(asked("", strange, "", b"nul\nnul\0\n\xff\nspaces\n\xc3\xa4\n"), b"");
    let all: Vec<u8> = (0..=255).filter(|byte| *byte != b'\n').collect();
    assert_eq!(asked("", &all, "", &all), [&all[..], b"\n"].concat());
}

#[test]
fn a_carriage_return_is_data_unless_it_is_trimmed() {
    assert_eq!(asked("", b"one\r\ntwo\r\n", "", b"one\ntwo\r\n"), b"two\r\n");
    assert_eq!(asked("--trim", b"one\r\ntwo\r\n", "", b"one\ntwo\r\n"), b"one\n");
    assert_eq!(asked("--trim", b"one\r\ntwo\r\n", "--trim", b"one\ntwo\r\n"), b"one\ntwo\r\n", "as it came");
}

#[test]
fn an_empty_line_is_a_key_and_no_line_is_none() {
    assert_eq!(asked("", b"\n", "", b"\none\n"), b"\n");
    assert_eq!(asked("", b"one\n\ntwo\n", "", b"\n"), b"\n");
    assert_eq!(asked("", b"one\n", "", b"\n"), b"");
    assert_eq!(asked("", b"", "", b"\n"), b"", "no line is not an empty line");
    assert_eq!(asked("", b"one\n", "", b""), b"");
}

#[test]
fn an_empty_input_makes_an_empty_filter_and_a_remark() {
    let folder = Folder::new();
    let outcome = folder.umbel_with("build -o filter", "");
    assert_eq!(outcome.code(), Some(0));
    assert!(outcome.stderr.starts_with("umbel: there were no lines") && outcome.stderr.lines().count() == 1);
    folder.umbel("info --verify filter").quiet();
    assert_eq!(folder.umbel_with("check filter", lines(0..1000)).code(), Some(1));
    assert_eq!(folder.umbel_with("uniq -q", "").quiet().stdout, b"");
    folder.umbel_with("add filter", "").quiet();
}

#[test]
fn files_without_lines_among_the_inputs_change_nothing() {
    let folder = Folder::new();
    folder.write("empty", "");
    folder.write("one", "1\n2");
    folder.write("two", "3\n4");
    folder.umbel("build -o plain one two").quiet();
    folder.umbel("build -o filter empty one empty empty two empty").quiet();
    assert!(folder.read("filter") == folder.read("plain"), "a line does not continue in the next file");
    let outcome = folder.umbel("check filter empty two empty one empty").quiet();
    assert_eq!(outcome.text(), "3\n4\n1\n2\n");
    folder.write("header", "name\n");
    let outcome = folder.umbel("build --header -F name -o named empty header empty");
    assert_eq!(outcome.code(), Some(0), "a header alone is no line, and no failure: {outcome:?}");
}

#[test]
fn a_pipe_with_a_name_is_an_input_like_any_other() {
    let folder = Folder::new();
    folder.write("file", lines(0..100_000));
    folder.umbel("build -o expected file").quiet();
    let written = folder.join("pipe");
    mkfifoat(CWD, &written, Mode::from_raw_mode(0o600)).unwrap();
    let feed = |bytes: Vec<u8>| {
        let path = written.clone();
        // Opening waits for the reader, and the reader for this.
        thread::spawn(move || fs::OpenOptions::new().write(true).open(path)?.write_all(&bytes))
    };
    let writer = feed(folder.read("file"));
    folder.umbel("build -o filter pipe").quiet();
    writer.join().unwrap().unwrap();
    assert!(folder.read("filter") == folder.read("expected"));

    let writer = feed(folder.read("file"));
    let outcome = folder.umbel("check -c filter file pipe").quiet();
    writer.join().unwrap().unwrap();
    assert_eq!(outcome.text(), "200000\n");

    // What is compressed is recognised in a pipe, too.
    let writer = feed(gzip(&folder.read("file")));
    assert_eq!(folder.umbel("check -c filter pipe").quiet().text(), "100000\n");
    writer.join().unwrap().unwrap();
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// With a checksum, as the program of that name writes it.
fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Lines that do not become much smaller when they are compressed.
fn noise(count: u64) -> Vec<u8> {
    let number = |i: u64| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..count).flat_map(|i| format!("{:x}\n", number(i) ^ number(i) >> 29).into_bytes()).collect()
}

#[test]
fn compressed_input_that_is_damaged_is_named_and_nothing_is_written() {
    let folder = Folder::new();
    let text = noise(100_000);
    let (gz, zst) = (gzip(&text), zstd(&text));
    let flipped = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 20].fill(0x55);
        bytes
    };
    folder.write("text", &text);
    folder.write("good.gz", &gz);
    folder.write("good.zst", &zst);
    folder.write("cut.gz", &gz[..gz.len() / 2]);
    folder.write("end.gz", &gz[..gz.len() - 4]);
    folder.write("stub.gz", &gz[..4]);
    folder.write("bad.gz", flipped(&gz));
    folder.write("cut.zst", &zst[..zst.len() / 2]);
    folder.write("stub.zst", &zst[..5]);
    folder.write("bad.zst", flipped(&zst));
    folder.umbel("build -o filter text").quiet();
    for good in ["good.gz", "good.zst"] {
        assert_eq!(folder.umbel(&format!("check -c filter text {good}")).quiet().text(), "200000\n");
    }
    let before = folder.contents();
    for bad in ["cut.gz", "end.gz", "stub.gz", "bad.gz", "cut.zst", "stub.zst", "bad.zst"] {
        for arguments in ["build -o new", "build -n 10 -f -o filter", "add filter", "check -c filter"] {
            println!("umbel {arguments} {bad}");
            folder.umbel(&format!("{arguments} text {bad}")).refused(&["cannot read", bad]);
            assert!(folder.contents() == before, "`umbel {arguments} {bad}` has changed something");
        }
    }
}

#[test]
fn what_comes_before_a_damaged_input_is_printed_whatever_the_number_of_threads() {
    let folder = Folder::new();
    // So many that blocks are still being worked on when the damage is found.
    let text = noise(300_000);
    folder.write("text", &text);
    folder.write("damaged.gz", &gzip(b"never read\n")[..15]);
    folder.umbel("build -o filter text").quiet();
    for threads in [1, 2, 3, 8].repeat(5) {
        for command in ["check filter", "uniq"] {
            let outcome = folder.umbel(&format!("{command} -j {threads} text damaged.gz text"));
            outcome.failed(&["cannot read damaged.gz"]);
            assert!(outcome.stdout == text, "{command}: {} of {} bytes", outcome.stdout.len(), text.len());
        }
    }
}

/// The program with no more address space than this.
fn limited(folder: &Folder, mebibytes: u64, arguments: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {}; exec \"$@\"", mebibytes << 10), "sh"]);
    command.arg(umbel().get_program()).args(arguments.split_whitespace()).current_dir(folder.path());
    command.env_remove("RUST_BACKTRACE").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn a_line_of_a_hundred_megabytes_is_a_key_and_takes_no_more_than_a_few_times_its_size() {
    let folder = Folder::new();
    let mut long = vec![b'x'; 100_000_000];
    long.extend_from_slice(b"\nshort\n");
    let strange = &long[1..];
    for options in ["", "-n 10"] {
        // The line, its copy while it grows, the digests; and two threads.
        let build = format!("build -j 2 {options} -f -o filter");
        run(&mut limited(&folder, 700, &build), &long[..]).quiet();
        folder.umbel("info --verify filter").quiet();
    }
    let found = run(&mut limited(&folder, 700, "check -j 2 filter"), &long[..]).quiet();
    assert!(found.stdout == long);
    let found = run(&mut limited(&folder, 700, "check -j 2 filter"), strange).quiet();
    assert_eq!(found.text(), "short\n", "one byte less is another key");
}

#[test]
fn memory_that_the_system_does_not_give_is_a_sentence() {
    let folder = Folder::new();
    let long = vec![b'x'; 100_000_000];
    let said = "the system has no memory for a line";
    run(&mut limited(&folder, 100, "build -j 1 -n 10 -o filter"), &long[..])
        .refused(&["standard input", said]);
    run(&mut limited(&folder, 1000, "build -n 1e11 -o filter"), "line\n")
        .refused(&["the system has no", "bytes"]);
    assert!(folder.names().is_empty());
}
