//! Whoever writes a line and waits gets its answer at once, while the pipe stays open: `check`, `uniq` and `add --new`
//! work in a conversation as well as in a batch.

use crate::shell::{Process, Shell, gzip};
use std::time::Duration;

/// At once, on a machine that is busy with other things.
const SOON: Duration = Duration::from_secs(2);

/// As long as a block.
const BLOCK: usize = 256 << 10;

/// The commands that answer line by line, with a filter that holds none of the lines that should be answered.
fn talks(shell: &Shell, threads: &str, options: &[&str]) -> Vec<(&'static str, Process)> {
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
fn hears(talk: &mut Process, name: &str, line: impl AsRef<[u8]>) {
    let heard = talk.hear(SOON).unwrap_or_else(|| panic!("{name}: no answer within {SOON:?}"));
    assert_eq!(heard, [line.as_ref(), b"\n"].concat(), "{name}");
}

/// When its input is closed, it prints the rest and ends well.
#[track_caller]
fn ends(talk: Process, name: &str, rest: &[u8]) {
    let answer = talk.finish();
    assert_eq!((answer.stdout, answer.code), (rest.to_vec(), Some(0)), "{name}: {}", answer.stderr);
}

#[test]
fn a_line_is_answered_while_the_pipe_stays_open() {
    let shell = Shell::new();
    for threads in ["1", "2"] {
        // The first bytes of an input are looked at apart: lines of one byte, and one that begins like zstd.
        for first in ["first", "", "("] {
            for (name, mut talk) in talks(&shell, threads, &[]) {
                let name = &format!("{name} -j {threads}, {first:?}");
                for line in [first, "second", "a third one", "4"] {
                    talk.say(format!("{line}\n"));
                    hears(&mut talk, name, line);
                }
                // Several at once, and half of another that is answered when it is whole.
                talk.say("5\n6\n7");
                hears(&mut talk, name, "5");
                hears(&mut talk, name, "6");
                talk.say("7\n");
                hears(&mut talk, name, "77");
                talk.say("8");
                ends(talk, name, b"8\n");
            }
        }
    }
}

#[test]
fn a_burst_of_exactly_a_block_is_answered_like_any_other() {
    let shell = Shell::new();
    // Lines of 16 bytes, so that blocks end where lines do; one burst ends in the middle of a line. There are few
    // answers: many would be written when they are too many to hold.
    let known = "known line 4567\n";
    for (len, tail) in [(BLOCK, ""), (2 * BLOCK, ""), (BLOCK, "half")] {
        let burst = known.repeat(len / known.len() - 1) + "new line 456789\n" + tail;
        assert_eq!(burst.len(), len + tail.len());
        for threads in ["1", "2"] {
            // A pipe holds less than a block, but compressed the burst is in it as a whole, and comes without a pause.
            for compressed in [false, true] {
                let pack = |text: &str| if compressed { gzip(text) } else { text.into() };
                for (name, mut talk) in talks(&shell, threads, &[]) {
                    let name = &format!("{name} -j {threads}, {len} bytes and {tail:?}, {compressed}");
                    talk.say(pack(&burst));
                    if name.starts_with("uniq") {
                        hears(&mut talk, name, known.trim_end());
                    }
                    hears(&mut talk, name, "new line 456789");
                    talk.say(pack("!\n"));
                    hears(&mut talk, name, format!("{tail}!"));
                    ends(talk, name, b"");
                }
            }
        }
    }
}

#[test]
fn what_came_before_a_silent_input_is_answered() {
    let shell = Shell::new();
    shell.write("file", "from the file\n");
    for threads in ["1", "2"] {
        for options in [&["file", "-"][..], &["--line-buffered", "file", "-"]] {
            for (name, mut talk) in talks(&shell, threads, options) {
                let name = &format!("{name} -j {threads} {options:?}");
                hears(&mut talk, name, "from the file");
                talk.say("from the pipe\n");
                hears(&mut talk, name, "from the pipe");
                ends(talk, name, b"");
            }
        }
    }
}

#[test]
fn compressed_lines_are_answered_as_soon_as_they_are_whole() {
    let shell = Shell::new();
    for threads in ["1", "2"] {
        for (name, mut talk) in talks(&shell, threads, &[]) {
            for number in 0..3 {
                talk.say(gzip(format!("line {number}\n")));
                hears(&mut talk, name, format!("line {number}"));
            }
            // More than fits into a block, from few compressed bytes.
            let line = "x".repeat(BLOCK);
            talk.say(gzip(format!("{line}1\n{line}2\n")));
            hears(&mut talk, name, format!("{line}1"));
            hears(&mut talk, name, format!("{line}2"));
            ends(talk, name, b"");
        }
    }
}

#[test]
fn header_and_records_may_come_apart() {
    let shell = Shell::new();
    for (name, mut talk) in talks(&shell, "2", &["--csv", "--header", "-F", "key", "--print-field"]) {
        talk.say("id,ke");
        talk.say("y\n");
        talk.say("1,one\n");
        hears(&mut talk, name, "one");
        talk.say("2,\"two\n");
        talk.say("lines\"\n");
        hears(&mut talk, name, "two");
        hears(&mut talk, name, "lines");
        ends(talk, name, b"");
    }
}
