//! Colours are for terminals whose owner wants them, and filters and empty waiting are for none.

mod shell;

use rustix::fs::{OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use shell::Shell;
use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

/// Runs with a terminal as standard output and standard error, and as standard input if that is `null`.
fn on_terminal(mut command: Command, stdin: Option<Stdio>) -> (String, Option<i32>) {
    let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&main).and_then(|()| unlockpt(&main)).expect("a terminal of our own");
    let name = ptsname(&main, Vec::new()).expect("a terminal with a name");
    let other = || {
        let mode = rustix::fs::Mode::empty();
        Stdio::from(open(&*name, OFlags::RDWR | OFlags::NOCTTY, mode).expect("the other end"))
    };
    command.stdin(stdin.unwrap_or_else(other)).stdout(other()).stderr(other());
    let mut child = command.spawn().expect("umbel");
    // Nothing but the child may hold the other end, or the reader would wait for ever.
    drop(command);
    let mut said = Vec::new();
    // When the last one closes its end, a terminal reports an error instead of the end.
    let _ = File::from(main).read_to_end(&mut said);
    (String::from_utf8(said).expect("text"), child.wait().expect("a process of our own").code())
}

/// The commands that tell something, and one that fails.
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
    shell.build("f", &["-n", "1000"], "a\nb\n");
    let terminal = |args: &[&str], name: &str, value: &str| {
        let mut command = shell.command(args);
        command.env("TERM", "xterm").env(name, value);
        on_terminal(command, None).0
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
        // What is piped is plain without being asked, and says the same.
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
    let (said, code) = on_terminal(shell.command(&["build", "lines"]), None);
    assert_eq!(code, Some(2));
    assert!(said.contains("a filter is not for a terminal: name a file with -o"), "{said:?}");
    // With a name, the result is summed up for whoever watches.
    let (said, code) = on_terminal(shell.command(&["build", "lines", "-o", "f"]), Some(Stdio::null()));
    assert_eq!(code, Some(0));
    assert!(said.starts_with("2 lines, standard filter of 64 B, rate "), "{said:?}");
}

#[test]
fn nobody_is_left_waiting_for_lines_to_be_typed() {
    let shell = Shell::new();
    shell.build("f", &["-n", "1000"], "a\n");
    for args in [&["check", "f"][..], &["add", "f"], &["uniq"], &["build", "-o", "g"]] {
        let (said, code) = on_terminal(shell.command(args), None);
        assert_eq!(code, Some(2), "{args:?}");
        assert!(
            said.contains("there are no lines to read: name a file, or send lines"),
            "{args:?}: {said:?}"
        );
    }
}
