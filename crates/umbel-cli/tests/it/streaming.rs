//! `check`, `uniq` and `add --new` print their result for a line at once, while the pipe stays
//! open.

use crate::shell::{Process, Shell, gzip};
use std::time::Duration;

/// The time limit for "at once", on a busy machine.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The size of a block.
const BLOCK: usize = 256 << 10;

/// Starts the commands that respond line by line, with a filter that contains none of the expected
/// lines.
fn start_commands(shell: &Shell, threads: &str, options: &[&str]) -> Vec<(&'static str, Process)> {
    let commands: [(&'static str, &[&str]); 3] = [
        ("check", &["check", "-v", "known"]),
        ("uniq", &["uniq", "-q"]),
        ("add", &["add", "--new", "known"]),
    ];
    shell.build("known", "-f -n 1000 -p 1e-9", "known line 4567\n");
    let talk = |args: &[&str]| shell.start(&[args, &["-j", threads], options].concat());
    commands.into_iter().map(|(name, args)| (name, talk(args))).collect()
}

#[track_caller]
fn expect_line(talk: &mut Process, name: &str, line: impl AsRef<[u8]>) {
    let line_read = talk
        .next_line(RESPONSE_TIMEOUT)
        .unwrap_or_else(|| panic!("{name}: no answer within {RESPONSE_TIMEOUT:?}"));
    assert_eq!(line_read, [line.as_ref(), b"\n"].concat(), "{name}");
}

/// Closes the input, and expects the rest of the output and success.
#[track_caller]
fn expect_end(talk: Process, name: &str, rest: &[u8]) {
    let answer = talk.finish();
    assert_eq!((answer.stdout, answer.code), (rest.to_vec(), Some(0)), "{name}: {}", answer.stderr);
}

#[test]
fn a_line_is_processed_while_the_pipe_stays_open() {
    let shell = Shell::new();
    for threads in ["1", "2"] {
        // The first bytes of an input are inspected separately: lines of one byte, and one that
        // begins like zstd.
        for first in ["first", "", "("] {
            for (name, mut talk) in start_commands(&shell, threads, &[]) {
                let name = &format!("{name} -j {threads}, {first:?}");
                for line in [first, "second", "a third one", "4"] {
                    talk.send(format!("{line}\n"));
                    expect_line(&mut talk, name, line);
                }
                // Several lines at once, and half of another, which is processed once it is
                // complete.
                talk.send("5\n6\n7");
                expect_line(&mut talk, name, "5");
                expect_line(&mut talk, name, "6");
                talk.send("7\n");
                expect_line(&mut talk, name, "77");
                talk.send("8");
                expect_end(talk, name, b"8\n");
            }
        }
    }
}

#[test]
fn a_burst_of_exactly_one_block_is_processed_at_once() {
    let shell = Shell::new();
    // Lines of 16 bytes, so that blocks end where lines do; one burst ends in the middle of a line.
    // The output is small, since a large one would be written when its buffer is full.
    let known = "known line 4567\n";
    for (len, tail) in [(BLOCK, ""), (2 * BLOCK, ""), (BLOCK, "half")] {
        let burst = known.repeat(len / known.len() - 1) + "new line 456789\n" + tail;
        assert_eq!(burst.len(), len + tail.len());
        for threads in ["1", "2"] {
            // A pipe holds less than a block, but the compressed burst fits into it and arrives
            // without a pause.
            for compressed in [false, true] {
                let pack = |text: &str| if compressed { gzip(text) } else { text.into() };
                for (name, mut talk) in start_commands(&shell, threads, &[]) {
                    let name = &format!("{name} -j {threads}, {len} bytes and {tail:?}, {compressed}");
                    talk.send(pack(&burst));
                    if name.starts_with("uniq") {
                        expect_line(&mut talk, name, known.trim_end());
                    }
                    expect_line(&mut talk, name, "new line 456789");
                    talk.send(pack("!\n"));
                    expect_line(&mut talk, name, format!("{tail}!"));
                    expect_end(talk, name, b"");
                }
            }
        }
    }
}

#[test]
fn lines_before_a_silent_input_are_processed() {
    let shell = Shell::new();
    shell.write("file", "from the file\n");
    for threads in ["1", "2"] {
        for options in [&["file", "-"][..], &["--line-buffered", "file", "-"]] {
            for (name, mut talk) in start_commands(&shell, threads, options) {
                let name = &format!("{name} -j {threads} {options:?}");
                expect_line(&mut talk, name, "from the file");
                talk.send("from the pipe\n");
                expect_line(&mut talk, name, "from the pipe");
                expect_end(talk, name, b"");
            }
        }
    }
}

#[test]
fn compressed_lines_are_processed_as_soon_as_they_are_complete() {
    let shell = Shell::new();
    for threads in ["1", "2"] {
        for (name, mut talk) in start_commands(&shell, threads, &[]) {
            for number in 0..3 {
                talk.send(gzip(format!("line {number}\n")));
                expect_line(&mut talk, name, format!("line {number}"));
            }
            // More than a block, from few compressed bytes.
            let line = "x".repeat(BLOCK);
            talk.send(gzip(format!("{line}1\n{line}2\n")));
            expect_line(&mut talk, name, format!("{line}1"));
            expect_line(&mut talk, name, format!("{line}2"));
            expect_end(talk, name, b"");
        }
    }
}

#[test]
fn header_and_records_may_arrive_separately() {
    let shell = Shell::new();
    for (name, mut talk) in start_commands(&shell, "2", &["--csv", "--header", "-F", "key", "--print-field"])
    {
        talk.send("id,ke");
        talk.send("y\n");
        talk.send("1,one\n");
        expect_line(&mut talk, name, "one");
        talk.send("2,\"two\n");
        talk.send("lines\"\n");
        expect_line(&mut talk, name, "two");
        expect_line(&mut talk, name, "lines");
        expect_end(talk, name, b"");
    }
}
