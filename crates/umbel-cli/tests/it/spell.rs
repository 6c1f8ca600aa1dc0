//! `umbel spell` lists the words that are not in a dictionary, and checks all readable texts.

use crate::shell::{self, Shell, gzip, split};
use serde_json::json;
use std::io::Write;

/// Returns a folder with a dictionary, so that no test depends on installed ones.
fn shell() -> Shell {
    let shell = Shell::new();
    shell.write("words", "the\nquick\nbrown\nfox\njumps\nover\nlazy\ndog\njazzy\nHaus\n");
    shell.write("t.txt", "The quick brwon fox jumps\nover the lazzy dog's haus.\n");
    shell
}

#[test]
fn a_new_user_checks_a_letter() {
    let shell = shell();
    let answer = shell.run("spell --lang words t.txt").code(1);
    assert_eq!(
        answer.text(),
        "t.txt:1:11: brwon: brown\nt.txt:2:10: lazzy: lazy, jazzy\nt.txt:2:22: haus: Haus\n"
    );
    assert!(answer.stderr.is_empty(), "{answer:?}");
    shell.write("mine", "brwon\nlazzy\nhaus\n");
    let fine = shell.run("spell --lang words --add mine t.txt").ok();
    assert!(fine.stdout.is_empty());
}

#[test]
fn texts_come_from_files_pipes_and_compressed_files() {
    let shell = shell();
    let text = shell.read("t.txt");
    let piped = shell.pipe("spell -l words", &text).code(1);
    assert!(piped.text().starts_with("-:1:11: brwon: brown\n"), "{piped:?}");
    shell.write("t.gz", gzip(&text));
    shell.write("words.gz", gzip(shell.read("words")));
    let packed = shell.run("spell -l words.gz t.gz t.txt").code(1);
    assert_eq!(split(&packed.stdout).len(), 6);
    assert!(packed.text().starts_with("t.gz:1:11: brwon: brown\n"));
}

#[test]
fn the_output_can_be_shortened() {
    let shell = shell();
    assert_eq!(shell.run("spell -l words --count t.txt t.txt").code(1).text(), "6\n");
    assert!(shell.run("spell -l words -q t.txt").code(1).stdout.is_empty());
    assert_eq!(
        shell.run("spell -l words --no-suggest t.txt").code(1).text().lines().next(),
        Some("t.txt:1:11: brwon")
    );
    assert_eq!(split(&shell.run("spell -l words --once t.txt t.txt").code(1).stdout).len(), 3);
    let line =
        shell.run("spell -l words --json t.txt").code(1).text().lines().next().map(String::from).unwrap();
    let fact: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        fact,
        json!({"file": "t.txt", "line": 1, "column": 11, "word": "brwon", "suggestions": ["brown"]})
    );
    let told = shell.run("spell -l words --stats t.txt").code(1);
    for fact in ["words of the list", "10", "words checked", "misspellings missed"] {
        assert!(told.stderr.contains(fact), "{fact}: {told:?}");
    }
    assert_eq!(shell.run("spell -l words -c words").ok().text(), "0\n");
}

#[test]
fn a_filter_is_a_dictionary_without_suggestions() {
    let shell = shell();
    shell.run("build words -o words.umbel").ok();
    let answer = shell.run("spell -l words.umbel t.txt").code(1);
    assert_eq!(answer.text(), "t.txt:1:11: brwon\nt.txt:2:10: lazzy\nt.txt:2:22: haus\n");
    shell.write("mine", "lazzy\nbrwon\n");
    assert_eq!(shell.run("spell -l words.umbel --add mine t.txt").code(1).text(), "t.txt:2:22: haus\n");
    shell.run("spell -l words.umbel -p 1% t.txt").refused(&["has its rate already"]);
    shell.run("build --kind fuse words -o fuse.umbel").ok();
    assert_eq!(split(&shell.run("spell -l fuse.umbel t.txt").code(1).stdout).len(), 3);
    shell.run("spell -l fuse.umbel --add mine t.txt").refused(&["cannot add words to fuse.umbel"]);
}

#[test]
fn unreadable_texts_are_reported_and_the_others_checked() {
    let shell = shell();
    shell.write("binary", b"MZ\0\x01\x02 wrod");
    shell.write("latin", b"the caf\xe9 brwon\n");
    shell.write("empty", "");
    std::fs::create_dir(shell.path("folder")).unwrap();
    let answer = shell.run("spell -l words missing binary folder latin empty t.txt").code(2);
    assert_eq!(split(&answer.stdout).len(), 4, "{answer:?}");
    for part in [
        "missing",
        "binary: it is binary",
        "folder is a directory",
        "latin: words left out because they are not UTF-8: 1",
    ] {
        assert!(answer.stderr.contains(part), "{part}: {answer:?}");
    }
    shell.run("spell -l words empty").ok();
    shell.write("cut.gz", &gzip("the quick brown fox ".repeat(1000))[..60]);
    shell.run("spell -l words cut.gz").refused(&["cannot check cut.gz"]);
}

#[test]
fn files_that_are_not_dictionaries_are_refused() {
    let shell = shell();
    shell.write("none", "\n42\n");
    shell.write("binary", b"a\0b");
    shell.run("spell -l none t.txt").refused(&["none has no words"]);
    shell.run("spell -l binary t.txt").refused(&["binary is not a list of words"]);
    shell.write("no-zero", b"\x7fELF\x02\x01 the");
    shell.run("spell -l no-zero t.txt").refused(&["no-zero is not a list of words: it is binary"]);
    shell.run("build words -o words.umbel").ok();
    shell.run("spell -l words --add words.umbel t.txt").refused(&["words.umbel is a filter", "--lang"]);
    let filter = shell.read("words.umbel");
    shell.pipe("spell -l - t.txt", &filter).refused(&["standard input is a filter", "--lang"]);
    shell
        .run("spell -l tlh t.txt")
        .refused(&["tlh is neither a file nor one of the languages en, en-gb, de"]);
    shell.run("spell -l words --add missing t.txt").refused(&["missing"]);
    shell.run("spell -l words -p 2 t.txt").refused(&["between 0 and 1"]);
    if !std::path::Path::new("/usr/share/dict/ngerman").exists() {
        shell
            .run("spell --lang de t.txt")
            .refused(&["there is no word list for de", "apt-get install wngerman"]);
    }
}

/// A line of a hundred megabytes takes no more memory than one of a thousand letters.
#[test]
fn a_line_may_be_of_any_length() {
    let shell = shell();
    let pieces = 100 << 10;
    let write = |mut stdin: std::process::ChildStdin| {
        let piece = "the quick ".repeat(100);
        (0..pieces).try_for_each(|_| stdin.write_all(piece.as_bytes()))?;
        stdin.write_all(b"brwon")
    };
    let answer = shell.start("spell -l words").feed(write).code(1);
    assert_eq!(answer.text(), format!("-:1:{}: brwon: brown\n", pieces * 1000 + 1));
}

#[test]
fn a_closed_output_is_not_an_error() {
    let shell = shell();
    shell.write("many", "brwon ".repeat(200_000));
    let mut process = shell.start("spell -l words many");
    assert_eq!(process.next_line(shell::PROCESS_TIMEOUT).as_deref(), Some(&b"many:1:1: brwon: brown\n"[..]));
    drop(process.child().stdout.take());
    let answer = process.child().wait().unwrap();
    assert_eq!(answer.code(), Some(1), "what was found is told, also when nobody reads on");
}

#[test]
fn names_of_files_cannot_take_over_a_terminal_or_make_up_lines() {
    let shell = shell();
    let strange = "t\nx:1:1: \u{1b}[2J";
    shell.write(strange, "brwon\n");
    let told = shell.run(&["spell", "-l", "words", strange][..]).code(1);
    assert_eq!(told.text(), "\"t\\nx:1:1: \\x1b[2J\":1:1: brwon: brown\n");
    let json = shell.run(&["spell", "-l", "words", "--json", strange][..]).code(1).json();
    assert_eq!(json["file"], strange);
    let missing = shell.run(&["spell", "-l", "words", "no\u{1b}[2J"][..]).code(2);
    assert!(!missing.stderr.contains('\u{1b}'), "{missing:?}");
}

#[test]
fn a_list_may_come_from_a_pipe() {
    let shell = Shell::new();
    shell.write("list", "quick\nfox\n");
    // A pipe can be read only once: recognising its format must not lose a byte.
    let mut command = shell.program("bash");
    let line = format!("echo 'quick fox' | {} spell --lang <(cat list)", shell::UMBEL);
    let answer = shell::Process::start(command.args(["-c", &line])).finish();
    assert_eq!((answer.code, answer.text()), (Some(0), ""), "{}", answer.stderr);
}
