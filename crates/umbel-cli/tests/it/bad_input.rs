//! Any bytes are valid input: lines are keys as they are. An input that cannot be read is an error
//! and leaves no file behind.

use crate::shell::{Answer, Process, Shell, UMBEL, Words, gzip, lines};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs;
use std::io::Write;
use std::thread;

/// Builds a filter from `bytes`, queries it for `keys`, and returns the output.
fn asked(build: &str, bytes: &[u8], check: &str, keys: &[u8]) -> Vec<u8> {
    let shell = Shell::new();
    // At this rate no line is a false positive.
    shell.pipe(&format!("build -n 1000 -p 1e-9 -o filter {build}"), bytes).ok();
    let answer = shell.pipe(&format!("check filter {check}"), keys);
    assert_eq!(answer.stderr, "");
    let code = i32::from(answer.stdout.is_empty());
    answer.code(code).stdout
}

#[test]
fn the_last_line_may_lack_its_newline() {
    assert_eq!(asked("", b"one\ntwo", "", b"two\none\nthree\n"), b"two\none\n");
    assert_eq!(asked("", b"one\ntwo\n", "", b"one\nthree\ntwo"), b"one\ntwo\n", "and is printed with one");
    assert_eq!(asked("-0", b"one\0two", "-0", b"two"), b"two\0");
}

#[test]
fn lines_may_contain_any_bytes() {
    let strange = b"nul\0inside\n\xff\xfe not UTF-8\n\xc3\n\x1b[31m\n  spaces  \n";
    assert_eq!(asked("", strange, "", strange), strange);
    assert_eq!(asked("", strange, "", b"nul\nnul\0\n\xff\nspaces\n\xc3\xa4\n"), b"");
    let all: Vec<u8> = (0..=255).filter(|byte| *byte != b'\n').collect();
    assert_eq!(asked("", &all, "", &all), [&all[..], b"\n"].concat());
}

#[test]
fn a_carriage_return_is_part_of_the_key_unless_trimmed() {
    assert_eq!(asked("", b"one\r\ntwo\r\n", "", b"one\ntwo\r\n"), b"two\r\n");
    assert_eq!(asked("--trim", b"one\r\ntwo\r\n", "", b"one\ntwo\r\n"), b"one\n");
    assert_eq!(asked("--trim", b"one\r\ntwo\r\n", "--trim", b"one\ntwo\r\n"), b"one\ntwo\r\n", "as it came");
}

#[test]
fn an_empty_line_is_a_key_and_an_empty_input_has_none() {
    assert_eq!(asked("", b"\n", "", b"\none\n"), b"\n");
    assert_eq!(asked("", b"one\n\ntwo\n", "", b"\n"), b"\n");
    assert_eq!(asked("", b"one\n", "", b"\n"), b"");
    assert_eq!(asked("", b"", "", b"\n"), b"", "no line is not an empty line");
    assert_eq!(asked("", b"one\n", "", b""), b"");
}

#[test]
fn an_empty_input_makes_an_empty_filter_and_a_warning() {
    let shell = Shell::new();
    let answer = shell.pipe("build -o filter", "").code(0);
    assert!(answer.stderr.starts_with("umbel: there were no lines") && answer.stderr.lines().count() == 1);
    shell.run("info --verify filter").ok();
    shell.pipe("check filter", lines(1, 0..1000)).code(1);
    assert_eq!(shell.pipe("uniq -q", "").ok().stdout, b"");
    shell.pipe("add filter", "").ok();
}

#[test]
fn empty_files_among_the_inputs_change_nothing() {
    let shell = Shell::new();
    shell.write("empty", "");
    shell.write("one", "1\n2");
    shell.write("two", "3\n4");
    shell.run("build -o plain one two").ok();
    shell.run("build -o filter empty one empty empty two empty").ok();
    assert!(shell.read("filter") == shell.read("plain"), "a line does not continue in the next file");
    let answer = shell.run("check filter empty two empty one empty").ok();
    assert_eq!(answer.text(), "3\n4\n1\n2\n");
    shell.write("header", "name\n");
    let answer = shell.run("build --header -F name -o named empty header empty");
    assert_eq!(answer.code, Some(0), "a header alone is no line, and no failure: {answer:?}");
}

#[test]
fn a_named_pipe_can_be_an_input() {
    let shell = Shell::new();
    shell.write("file", lines(1, 0..100_000));
    shell.run("build -o expected file").ok();
    let written = shell.path("pipe");
    mkfifoat(CWD, &written, Mode::from_raw_mode(0o600)).unwrap();
    let feed = |bytes: Vec<u8>| {
        let path = written.clone();
        // Opening the pipe blocks until the reader opens it too.
        thread::spawn(move || fs::OpenOptions::new().write(true).open(path)?.write_all(&bytes))
    };
    let writer = feed(shell.read("file"));
    shell.run("build -o filter pipe").ok();
    writer.join().unwrap().unwrap();
    assert!(shell.read("filter") == shell.read("expected"));

    let writer = feed(shell.read("file"));
    let answer = shell.run("check -c filter file pipe").ok();
    writer.join().unwrap().unwrap();
    assert_eq!(answer.text(), "200000\n");

    // Compressed data is recognised in a pipe, too.
    let writer = feed(gzip(shell.read("file")));
    assert_eq!(shell.run("check -c filter pipe").ok().text(), "100000\n");
    writer.join().unwrap().unwrap();
}

/// Compresses with a checksum, as the program zstd does.
fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_damaged_compressed_input_is_named_and_nothing_is_written() {
    let shell = Shell::new();
    let text = lines(1, 0..100_000);
    let (gz, zst) = (gzip(&text), zstd(&text));
    let flipped = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 20].fill(0x55);
        bytes
    };
    shell.write("text", &text);
    shell.write("good.gz", &gz);
    shell.write("good.zst", &zst);
    shell.write("cut.gz", &gz[..gz.len() / 2]);
    shell.write("end.gz", &gz[..gz.len() - 4]);
    shell.write("stub.gz", &gz[..4]);
    shell.write("bad.gz", flipped(&gz));
    shell.write("cut.zst", &zst[..zst.len() / 2]);
    shell.write("stub.zst", &zst[..5]);
    shell.write("bad.zst", flipped(&zst));
    shell.run("build -o filter text").ok();
    for good in ["good.gz", "good.zst"] {
        assert_eq!(shell.run(&format!("check -c filter text {good}")).ok().text(), "200000\n");
    }
    let before = shell.contents(".");
    for bad in ["cut.gz", "end.gz", "stub.gz", "bad.gz", "cut.zst", "stub.zst", "bad.zst"] {
        for arguments in ["build -o new", "build -n 10 -f -o filter", "add filter", "check -c filter"] {
            println!("umbel {arguments} {bad}");
            shell.run(&format!("{arguments} text {bad}")).refused(&["cannot read", bad]);
            assert!(shell.contents(".") == before, "`umbel {arguments} {bad}` has changed something");
        }
    }
}

#[test]
fn lines_before_a_damaged_input_are_printed_with_any_number_of_threads() {
    let shell = Shell::new();
    // Enough lines that blocks are still being processed when the damage is found.
    let text = lines(1, 0..300_000);
    shell.write("text", &text);
    shell.write("damaged.gz", &gzip("never read\n")[..15]);
    shell.run("build -o filter text").ok();
    for threads in [1, 2, 3, 8].repeat(5) {
        for command in ["check filter", "uniq"] {
            let answer = shell.run(&format!("{command} -j {threads} text damaged.gz text"));
            answer.failed(&["cannot read damaged.gz"]);
            assert!(answer.stdout == text, "{command}: {} of {} bytes", answer.stdout.len(), text.len());
        }
    }
}

/// Runs the program with a limited address space.
#[track_caller]
fn limited(shell: &Shell, mebibytes: u64, arguments: &str, input: &[u8]) -> Answer {
    let mut command = shell.program("sh");
    command.args(["-c", &format!("ulimit -v {}; exec \"$@\"", mebibytes << 10), "sh", UMBEL]);
    Process::start(command.args(arguments.words())).feed(|mut stdin| stdin.write_all(input))
}

#[test]
fn a_line_of_a_hundred_megabytes_takes_a_few_times_its_size() {
    let shell = Shell::new();
    let mut long = vec![b'x'; 100_000_000];
    long.extend_from_slice(b"\nshort\n");
    let strange = &long[1..];
    for options in ["", "-n 10"] {
        // The line, its copy while it grows, the digests; and two threads.
        limited(&shell, 700, &format!("build -j 2 --max-line 100MB {options} -f -o filter"), &long).ok();
        shell.run("info --verify filter").ok();
    }
    let found = limited(&shell, 700, "check -j 2 --max-line 100MB filter", &long).ok();
    assert!(found.stdout == long);
    let found = limited(&shell, 700, "check -j 2 --max-line 100MB filter", strange).ok();
    assert_eq!(found.text(), "short\n", "one byte less is another key");
}

#[test]
fn exhausted_memory_is_reported_in_one_sentence() {
    let shell = Shell::new();
    let long = vec![b'x'; 100_000_000];
    let said = "the system has no memory for a line";
    limited(&shell, 100, "build -j 1 --max-line 1GiB -n 10 -o filter", &long)
        .refused(&["standard input", said]);
    limited(&shell, 1000, "build -n 1e11 -o filter", b"line\n").refused(&["the system has no", "bytes"]);
    assert!(shell.names(".").is_empty());
}
