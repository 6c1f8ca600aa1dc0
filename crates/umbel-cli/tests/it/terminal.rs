//! Colours are used only on terminals, unless disabled; a terminal is neither an output for filters
//! nor an input to wait for.

use crate::shell::{Shell, on_terminal};
use std::process::Stdio;

/// Commands with a report, and one that fails.
const TELLING: [&[&str]; 7] = [
    &["info", "f"],
    &["plan", "-n", "1000", "-p", "1%"],
    &["plan", "--compare", "-n", "1000", "-p", "1%"],
    &["compare", "f", "f"],
    &["compare", "f", "f", "f"],
    &["why", "f", "a"],
    &["info", "missing"],
];

const ESCAPE: char = '\u{1b}';

#[test]
fn colours_are_for_terminals() {
    let shell = Shell::new();
    shell.build("f", "-n 1000", "a\nb\n");
    let terminal = |args: &[&str], name: &str, value: &str| {
        let mut command = shell.command(args);
        command.env("TERM", "xterm").env(name, value);
        on_terminal(command, None).text().to_owned()
    };
    for args in TELLING {
        let coloured = terminal(args, "LANG", "C");
        assert!(
            args[0] == "compare" && args.len() == 3 || coloured.contains(ESCAPE),
            "{args:?}: {coloured:?}"
        );
        for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
            let plain = terminal(args, name, value);
            assert!(!plain.is_empty() && !plain.contains(ESCAPE), "{args:?} {name}={value}: {plain:?}");
        }
        // Piped output is plain by default, and has the same text.
        let piped = shell.run(args);
        let piped = piped.text().to_owned() + &piped.stderr;
        assert_eq!(piped, terminal(args, "NO_COLOR", "1").replace("\r\n", "\n"), "{args:?}");
        // JSON is plain anywhere.
        if !matches!(args[1], "missing") {
            let json = terminal(&[args, &["--json"]].concat(), "LANG", "C");
            serde_json::from_str::<serde_json::Value>(&json).expect("JSON");
        }
    }
    for command in ["--help", "help"] {
        assert!(terminal(&[command], "LANG", "C").contains(ESCAPE));
        assert!(!shell.run(&[command]).ok().text().contains(ESCAPE));
    }
}

#[test]
fn a_filter_is_not_printed_on_a_terminal() {
    let shell = Shell::new();
    shell.write("lines", "a\nb\n");
    let answer = on_terminal(shell.command("build lines"), None).code(2);
    let said = "a filter is not for a terminal: name a file with -o";
    assert!(answer.text().contains(said), "{}", answer.text());
    // With an output file, a summary is printed on the terminal.
    let answer = on_terminal(shell.command("build lines -o f"), Some(Stdio::null())).code(0);
    let said = "2 lines, standard filter of 64 B, rate ";
    assert!(answer.text().starts_with(said), "{}", answer.text());
    // The summary counts lines if each one matters, and keys otherwise.
    shell.write("again", "a\tx\nb\ty\na\tx\n");
    for (args, said) in [
        ("build -n 10 again", "3 lines, standard filter of "),
        ("build --kind fuse again", "2 keys, fuse filter of "),
        ("map build again", "2 keys, bloomier map of "),
        ("map build --mutable again", "2 keys, bloomier-mutable map of "),
        ("count build again", "3 lines, multi-resolution multiset of "),
    ] {
        let answer = on_terminal(shell.command(&format!("{args} -f -o f")), Some(Stdio::null())).code(0);
        assert!(answer.text().starts_with(said), "{args}: {}", answer.text());
    }
}

#[test]
fn a_command_without_input_does_not_wait_for_the_terminal() {
    let shell = Shell::new();
    shell.build("f", "-n 1000", "a\n");
    for args in ["check f", "add f", "uniq", "build -o g"] {
        println!("umbel {args}");
        let answer = on_terminal(shell.command(args), None).code(2);
        let said = "there are no lines to read: name a file, or send lines";
        assert!(answer.text().contains(said), "{}", answer.text());
    }
}
