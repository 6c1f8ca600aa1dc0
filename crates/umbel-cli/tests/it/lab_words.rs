//! `umbel lab words`: the experiment with a list of words, with and without a terminal.

use crate::shell::{self, Process, Shell, number};
use std::io::{Read, Write};
use std::process::Stdio;

fn list(count: u64) -> String {
    (0..count).map(|number| format!("word{:x}\n", number * 7919)).collect()
}

#[test]
fn the_figures_of_the_literature_are_reproduced() {
    let shell = Shell::new();
    shell.write("words", list(58_110));
    let told = shell.run("lab words words -p 0.04").ok();
    for line in ["n, different words     58110", "m, bits                389318", "k, hash functions      5"]
    {
        assert!(told.text().contains(line), "{}", told.text());
    }
    assert!(told.text().contains("p, the rate asked for  0.04\n"));
    assert!(told.text().contains("computed rate          0.0402212\n") && !told.text().contains("better"));
    let facts = shell.run("lab words words -p 4% --json").ok().json();
    assert_eq!((number(&facts, "n"), number(&facts, "m"), number(&facts, "k")), (58_110.0, 389_318.0, 5.0));
    assert!((number(&facts, "measured") - number(&facts, "computed")).abs() < 0.0025, "{facts}");
    assert_eq!(facts["rounded"], serde_json::Value::Null);
    // The result depends only on the seed.
    assert_eq!(facts, shell.run("lab words words -p 1/25 --json -j 1").ok().json());
    let other = shell.run("lab words words -p 4% --json --seed 2").ok().json();
    assert_ne!(facts["positives"], other["positives"]);
}

#[test]
fn rounding_up_that_makes_the_rate_worse_is_reported() {
    let shell = Shell::new();
    shell.write("words", list(500));
    let told = shell.run("lab words words -p 5% --queries 1000").ok();
    let line = "better                 k = 4, rounded to the nearest: 0.0502746 computed";
    assert!(told.text().contains(line) && told.text().contains("0.0510347"), "{}", told.text());
    let facts = shell.run("lab words words -p 5% --queries 1000 --json").ok().json();
    assert_eq!(facts["rounded"]["k"], 4);
}

#[test]
fn words_are_lines_without_repetitions_blanks_and_carriage_returns() {
    let shell = Shell::new();
    shell.write("words", b"one\r\ntwo\n\none\n\r\n\xff three\n");
    shell.write("more", shell::gzip("four\ntwo"));
    let count = |args: &str| number(&shell.run(args).ok().json(), "n");
    assert_eq!(count("lab words words -p 1% --queries 10 --json"), 3.0);
    assert_eq!(count("lab words words more -p 1% --queries 10 --json"), 4.0);
    let piped = shell.pipe("lab words - -p 1% --queries 10 --json", "a\nb\n").ok().json();
    assert_eq!(number(&piped, "n"), 2.0);
}

#[test]
fn invalid_input_is_refused_in_one_sentence() {
    let shell = Shell::new();
    shell.write("words", "a\nb\n");
    shell.write("empty", "\n\r\n");
    for rate in ["0", "1", "1.5", "x", "nan", "-1", ""] {
        shell.run(&["lab", "words", "words", &format!("--fpr={rate}")]).refused(&["rate"]);
    }
    shell.run("lab words empty -p 1%").refused(&["there are no words in empty"]);
    shell.run("lab words missing -p 1%").refused(&["cannot open missing"]);
    shell.run("lab words . -p 1%").refused(&["directory"]);
    shell.run("lab words -p 1%").refused(&["<FILE>"]);
    shell.run("lab words words -p 1% --queries 0").refused(&["--queries is from 1 to"]);
    shell.run("lab words words").refused(&["give it with -p"]);
    shell.pipe("lab words words", "0.5\n").refused(&["give it with -p"]);
}

/// Answers the prompts on a terminal with these lines; returns the text on the terminal and the
/// result.
fn on_terminal(shell: &Shell, answers: &str) -> (String, shell::Answer) {
    let (mut user, program) = shell::terminal();
    let other = || Stdio::from(program.try_clone().expect("another of the same"));
    let mut command = shell.command("lab words words --queries 10 --json");
    command.stdin(other()).stderr(other());
    let process = Process::start(&mut command);
    drop((command, program));
    user.write_all(answers.as_bytes()).expect("a terminal can be typed at");
    let mut seen = Vec::new();
    // A terminal whose last writer has closed it reports an error instead of the end.
    let _ = user.read_to_end(&mut seen);
    (String::from_utf8_lossy(&seen).into_owned(), process.finish())
}

#[test]
fn on_a_terminal_the_rate_is_prompted_for_until_it_is_valid() {
    let shell = Shell::new();
    shell.write("words", "a\nb\n");
    let (seen, answer) = on_terminal(&shell, "0\nfour\n4%\n");
    assert_eq!(seen.matches("false-positive rate, between 0 and 1: ").count(), 3, "{seen}");
    assert!(seen.contains("a rate lies between 0 and 1") && seen.contains("not a rate"), "{seen}");
    assert_eq!(number(&answer.code(0).json(), "p"), 0.04);
    // Ctrl-D: the input ends without an answer.
    let (seen, answer) = on_terminal(&shell, "\u{4}");
    assert!(seen.contains("no rate was given"), "{seen}");
    assert!(answer.code(2).stdout.is_empty());
}
