//! A line that is too long is an error, and no input makes a command take much memory.

use crate::shell::{Answer, Process, Shell, gzip, lines};
use std::fmt::Write;
use std::fs;

const MIB: usize = 1 << 20;

/// The default of `--max-line`.
const LIMIT: usize = 16 * MIB;

/// The memory that a command may take, in KiB: less than a line of [`BOMB_BYTES`].
const MEMORY_KIB: usize = 256 << 10;

const BOMB_BYTES: usize = 272 * MIB;

/// Returns a zstd frame of a few bytes for each 128 KiB of `a`, without a newline.
fn bomb(bytes: usize) -> Vec<u8> {
    const BLOCK: usize = 128 << 10;
    let blocks = bytes / BLOCK;
    let mut frame = b"\x28\xb5\x2f\xfd\x00\x38".to_vec();
    for number in 1..=blocks {
        let header = (BLOCK as u32) << 3 | 1 << 1 | u32::from(number == blocks);
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.push(b'a');
    }
    frame
}

/// Runs a line of shell with a limit on the memory of each process.
#[track_caller]
fn limited(shell: &Shell, script: &str) -> Answer {
    Process::start(&mut shell.script(&format!("ulimit -d {MEMORY_KIB}; {script}"))).finish()
}

/// Makes a file of each kind, and inputs that are one long line.
fn prepare() -> Shell {
    let shell = Shell::new();
    shell.write("keys", lines(1, 0..1000));
    shell.write("bomb", bomb(BOMB_BYTES));
    shell.write("bomb.gz", gzip(vec![b'a'; 2 * LIMIT]));
    shell.write("pairs", "a\t1\nb\t2\n");
    shell.write("urls.txt", "evil.example\n");
    shell.write("words", "apple\nbanana\n");
    fs::create_dir(shell.path("docs")).unwrap();
    for command in [
        "build -o f keys",
        "build --kind counting -o counting keys",
        "map build -o map pairs",
        "map build --mutable -o mutable pairs",
        "table put table pairs",
        "count build -o counts keys",
        "url build -o urls urls.txt",
        "password build --unsealed -o weak words",
    ] {
        shell.run(command).ok();
    }
    shell
}

#[test]
fn a_line_without_end_is_an_error_in_every_command_with_lines() {
    let shell = prepare();
    let unchanged =
        ["f", "counting", "mutable", "counts", "urls", "weak"].map(|name| (name, shell.read(name)));
    for command in [
        "build -n 1000 -o new",
        "build -o new",
        "build --kind fuse -o new",
        "build --csv -F 1 -o new",
        "build -0 -o new",
        "build --header -F a -o new",
        "add f",
        "add --new f",
        "check f",
        "check -v f",
        "check --trim --lower -j 8 f",
        "uniq",
        "remove counting",
        "map build -o new",
        "map get map",
        "map set mutable",
        "table put table",
        "table get table",
        "table delete table",
        "count build -o new",
        "count add counts",
        "count get counts",
        "distinct",
        "top",
        "lab words -p 1%",
        "url build -o new",
        "password build --unsealed -o new",
        "password add weak",
        "password range -",
        "net block --list",
        "net block --check",
    ] {
        for input in ["bomb", "bomb.gz"] {
            let command = match command {
                "password range -" => format!("password range {input} 12345"),
                _ => format!("{command} {input}"),
            };
            let answer = limited(&shell, &format!("umbel {command}"));
            // A CSV file has records, and passwords are shorter.
            let says = match command.split_once(' ').expect("a command with arguments").0 {
                "password" => "line 1 is longer than 1 MiB",
                _ if command.contains("--csv") => "record 1 is longer than 16",
                _ => "line 1 is longer than 16",
            };
            let answer = answer.code(2);
            assert!(answer.stderr.contains(input) && answer.stderr.contains(says), "{}", answer.stderr);
            assert!(answer.stdout.is_empty(), "{command}");
            assert!(!shell.path("new").exists(), "{command}");
        }
    }
    for command in ["url check urls", "password check weak", "check f"] {
        limited(&shell, &format!("umbel {command} < bomb")).refused(&["line 1 is longer than 1"]);
    }
    for (name, bytes) in unchanged {
        assert!(shell.read(name) == bytes, "{name}");
    }
}

#[test]
fn texts_without_lines_take_no_memory() {
    let shell = prepare();
    let comment = vec![b'a'; BOMB_BYTES];
    let html = [b"<!doctype html><!--", &comment[..], b"--><p>some words"].concat();
    shell.write("comment.html", zstd::encode_all(&html[..], 1).unwrap());
    shell.write("docs/bomb", bomb(BOMB_BYTES));
    shell.write("docs/other", "apple\n");
    shell.write("passphrase", "correct horse\n");
    shell.allow("passphrase", 0o600);
    for (command, code, says) in [
        ("spell --lang words bomb", 1, ""),
        ("spell --lang bomb words", 2, "bomb is longer than 64.00 MiB"),
        ("hyphenate bomb | tail -c 1", 0, ""),
        ("hyphenate --exceptions bomb words", 2, "bomb is longer than 64.00 MiB"),
        ("similar bomb keys", 0, ""),
        ("similar --by chunks bomb keys", 0, ""),
        ("similar comment.html keys", 0, ""),
        ("net scan --rules bomb keys", 2, "bomb is longer than 64.00 MiB"),
        ("net scan --rules words bomb", 1, ""),
        ("map build --values @bomb -o new pairs", 2, "bomb is longer than 64.00 MiB"),
        (
            "grep --no-index apple docs",
            2,
            "docs/bomb: a line is longer than 16 MiB: give a larger --max-line",
        ),
        ("index build docs", 2, "docs/bomb: a line is longer than 16 MiB: give a larger --max-line"),
        ("grep -w apple docs", 2, "docs/bomb: a line is longer than 16 MiB: give a larger --max-line"),
        ("vault add --passphrase-file passphrase vault bomb", 0, ""),
    ] {
        let answer = limited(&shell, &format!("umbel {command}"));
        let answer = answer.code(code);
        assert!(answer.stderr.contains(says), "{command}: {}", answer.stderr);
    }
}

#[test]
fn long_lines_take_the_memory_of_a_few_for_any_number_of_threads() {
    let shell = Shell::new();
    shell.build("f", "-n 1000", "");
    let mut text = vec![b'a'; 30 * 15 * MIB];
    (14 * MIB..text.len()).step_by(15 * MIB).for_each(|at| text[at] = b'\n');
    shell.write("long", zstd::encode_all(&text[..], 1).unwrap());
    drop(text);
    for command in
        ["build -j 16 -n 1000 -o new long", "check -v --lower -j 16 f long", "uniq -j 16 -n 100 long"]
    {
        limited(&shell, &format!("umbel {command} > /dev/null")).code(0);
    }
    // Lines that are counted are held in memory.
    let mut text = vec![b'a'; 40 * 15 * MIB];
    (0..text.len()).step_by(15 * MIB).zip(b'A'..).for_each(|(at, first)| text[at] = first);
    (14 * MIB..text.len()).step_by(15 * MIB).for_each(|at| text[at] = b'\n');
    shell.write("different", zstd::encode_all(&text[..], 1).unwrap());
    let memory = 2 * MEMORY_KIB;
    let mut command = shell.script(&format!("ulimit -d {memory}; umbel top -j 16 different"));
    Process::start(&mut command).finish().refused(&["the lines that are counted take more than 256"]);
}

#[test]
fn a_line_may_be_as_long_as_the_limit() {
    let shell = Shell::new();
    for limit in [1, 7, 100, 300_000, 3_000_000] {
        let fits = [vec![b'a'; limit], b"\n".repeat(3), vec![b'b'; limit]].concat();
        let length = fits.len();
        let tooth = [&b"x\n"[..], &vec![b'a'; limit + 1], b"\nx\n"].concat();
        let last = [&b"x\n\n"[..], &vec![b'a'; limit + 1]].concat();
        shell.write("fits", &fits);
        shell.write("fits.gz", gzip(&fits));
        shell.write("long", &tooth);
        shell.write("last", &last);
        let zeros =
            |text: &[u8]| text.iter().map(|byte| if *byte == b'\n' { 0 } else { *byte }).collect::<Vec<_>>();
        shell.write("zeros", zeros(&tooth));
        let quoted = [&b"x\n\""[..], &vec![b'\n'; limit.saturating_sub(1).max(1)], b"\"\nx\n"].concat();
        shell.write("quoted", &quoted);
        let at = format!("--max-line {limit}");
        let uniq = |file: &str| shell.run(&format!("uniq -q -n 100 {at} {file}"));
        for (file, input) in [("fits", &fits), ("fits.gz", &gzip(&fits))] {
            assert_eq!(uniq(file).ok().stdout.len(), 2 * limit + 3, "{limit}: {length}");
            assert_eq!(shell.pipe(&format!("uniq -q -n 100 {at}"), input).ok().stdout.len(), 2 * limit + 3);
        }
        for (options, file, record) in [
            ("", "long", "line 2"),
            ("", "last", "line 3"),
            ("-0", "zeros", "line 2"),
            ("--csv -F1", "quoted", "record 2"),
        ] {
            let answer = uniq(&format!("{options} {file}")).code(2);
            let says = format!("{file}: {record} is longer than");
            assert!(answer.stderr.contains(&says), "{limit}: {}", answer.stderr);
            // The lines before it are answered, and no other.
            assert!(answer.stdout.len() <= 3 && answer.stdout.starts_with(b"x"), "{limit} {file}");
        }
    }
    for wrong in ["0", "3GiB", "x"] {
        shell.pipe(&["uniq", "--max-line", wrong], "").code(2);
    }
}

#[test]
fn the_line_that_is_too_long_is_counted_in_its_own_file() {
    let shell = Shell::new();
    let mut many = String::new();
    (0..200_000).for_each(|number| writeln!(many, "{number}").unwrap());
    shell.write("first", &many);
    shell.write("second", [many.as_bytes(), &vec![b'a'; LIMIT + 1], b"\n1\n"].concat());
    shell.write("header", [b"name\n1\n", &vec![b'a'; LIMIT + 1][..]].concat());
    shell.build("f", "", &many);
    for threads in ["1", "2", "7"] {
        let answer = shell.run(&["check", "-j", threads, "f", "first", "second"]).code(2);
        assert!(answer.stderr.contains("second: line 200001 is longer than 16.00 MiB"), "{}", answer.stderr);
        assert!(answer.stderr.contains("--max-line"), "{}", answer.stderr);
        // The answers before it are right.
        assert!(answer.text() == [&many[..], &many].concat());
        let answer = shell.run(&["check", "-j", threads, "--header", "f", "header"]).code(2);
        assert!(answer.stderr.contains("header: line 3 is longer than"), "{}", answer.stderr);
    }
    shell.run(&["check", "-c", "--max-line", "17MiB", "f", "first", "second"]).ok();
}

#[test]
fn binary_files_without_lines_are_searched() {
    let shell = Shell::new();
    fs::create_dir(shell.path("docs")).unwrap();
    let disk = [&vec![0; 40 * MIB], &b"apple"[..], &vec![0; MIB]].concat();
    shell.write("docs/disk", &disk);
    for options in ["--no-index", "--no-index -c", "--no-index -a -c", "--no-index -l"] {
        limited(&shell, &format!("umbel grep {options} apple docs")).code(0);
    }
    limited(&shell, "umbel index build docs").ok();
    let found = limited(&shell, "umbel grep -w apple docs").code(0);
    assert!(found.text().contains("docs/disk: binary file matches"), "{}", found.text());
}

#[test]
fn decompression_takes_no_more_memory_than_common_windows_need() {
    let shell = Shell::new();
    // A window of 2 GiB, as of `zstd --ultra --long=31`, and one of 128 MiB, as of `zstd --long`.
    for (window, code) in [(31, 2), (27, 0)] {
        let mut frame = bomb(2 * MIB);
        frame[5] = (window - 10) << 3;
        shell.write("windows", frame);
        let answer = limited(&shell, "umbel uniq -q -n 100 windows");
        let answer = answer.code(code);
        let refused = answer.stderr.contains("Frame requires too much memory for decoding");
        assert_eq!(refused, code == 2, "{}", answer.stderr);
    }
    // Frames and members without contents, and skippable ones.
    let empty = zstd::encode_all(&b""[..], 1).unwrap();
    let skippable = [&b"\x50\x2a\x4d\x18\x08\0\0\0"[..], &[0; 8]].concat();
    let text = zstd::encode_all(&b"text\n"[..], 1).unwrap();
    shell.write("frames", [empty.repeat(100_000), skippable.repeat(100_000), text].concat());
    shell.write("members", [gzip("").repeat(100_000), gzip("text\n")].concat());
    // A gzip header with a name that never ends, and one with the largest extra field.
    shell.write("name", [&b"\x1f\x8b\x08\x08\0\0\0\0\0\x03"[..], &vec![b'n'; 8 * MIB]].concat());
    let mut extra = gzip("text\n");
    extra[3] = 4;
    extra.splice(10..10, [&b"\xff\xff"[..], &[7; 0xffff]].concat());
    shell.write("extra", extra);
    for file in ["frames", "members", "extra"] {
        assert_eq!(limited(&shell, &format!("umbel uniq -q -n 100 {file}")).ok().text(), "text\n", "{file}");
    }
    limited(&shell, "umbel uniq -q -n 100 name").refused(&["name"]);
}
