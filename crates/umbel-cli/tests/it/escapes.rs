//! Text from files and arguments cannot control a terminal, and nothing of it is lost in a pipe.

use crate::shell::{Answer, Process, Shell, on_terminal, terminal};
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;

/// Sets the title of a window, changes the colour, and reverses the text after it: with control
/// characters of one byte, of two, and with a character that is none.
const HOSTILE: &str = "va\u{1b}]0;x\u{7}lue\u{1b}[31m \u{9b}31m \u{7f}\u{8}\u{202e}txt";

/// A file with such a name.
const FILE: &str = "a\u{1b}[2J\u{9b}2J\u{202e}name";

/// Returns a line that is not text, with the control character 9b as a byte of its own.
fn line() -> Vec<u8> {
    [HOSTILE.as_bytes(), b" \x9b31m \xff\n"].concat()
}

fn shell() -> Shell {
    let shell = Shell::new();
    shell.write("lines", line());
    shell.write("pairs", [b"key\t", &line()[..]].concat());
    shell.write("keys", "key\n");
    shell.run(&["build", "lines", "--meta", &format!("name={HOSTILE}"), "-o", "f"]).ok();
    shell.run("build lines -o empty -n 10").ok();
    shell.run("map build --any pairs -o map");
    shell.write(FILE, shell.read("f"));
    shell
}

/// Asserts that nothing in what a terminal received can control it.
#[track_caller]
fn assert_harmless(shown: &[u8], command: &Command) {
    // A terminal adds carriage returns.
    let shown = String::from_utf8(shown.to_vec())
        .unwrap_or_else(|_| panic!("{command:?}: not text"))
        .replace("\r\n", "\n");
    let obeyed = shown.chars().find(|c| c.is_control() && !"\n\t".contains(*c) || *c == '\u{202e}');
    assert_eq!(obeyed, None, "{command:?}: {shown}");
}

/// Commands that print text of others, and some of it that must be there.
fn commands() -> Vec<(Vec<&'static str>, &'static str)> {
    vec![
        (vec!["meta", "f", "name"], "lue"),
        (vec!["meta", "f"], "lue"),
        (vec!["meta", "--json", "f"], "lue"),
        (vec!["info", "f"], "lue"),
        (vec!["info", "--json", "f"], "lue"),
        (vec!["info", FILE], "name"),
        (vec!["info", "--verify", FILE], "name"),
        (vec!["compare", FILE, "f"], "name"),
        (vec!["check", "f", "lines"], "lue"),
        (vec!["check", "f", "-j1", "lines"], "lue"),
        (vec!["uniq", "lines"], "lue"),
        (vec!["top", "lines"], "lue"),
        (vec!["top", "--json", "lines"], "1"),
        (vec!["why", "f", HOSTILE], "lue"),
        (vec!["grep", "lue", "lines"], "lue"),
        (vec!["hyphenate", "--", "lines"], "lue"),
        // Errors.
        (vec!["check", "missing\u{1b}[31m\u{9b}\u{202e}", "lines"], "missing"),
        (vec!["info", "missing\u{1b}[31m\u{9b}\u{202e}"], "missing"),
        (vec!["check", "lines\u{1b}[31m\numbel: all is well", "lines"], "lines"),
        (vec!["check", "f", "--no-such\u{1b}[31m\u{9b}\u{202e}"], "no-such"),
        (vec!["no-such\u{1b}[31m\u{9b}"], "no-such"),
        (vec!["build", "-n", "1\u{1b}[31m", "lines"], "not a number"),
    ]
}

#[test]
fn text_of_others_cannot_control_a_terminal() {
    let shell = shell();
    for (args, expected) in commands() {
        let mut command = shell.command(&args);
        command.env("TERM", "xterm").env("NO_COLOR", "1");
        let shown = format!("{command:?}");
        let answer = on_terminal(command, Some(Stdio::null()));
        let command = shell.command(&args);
        assert_harmless(&answer.stdout, &command);
        assert!(answer.text().contains(expected), "{shown}: {}", answer.text());
        // One error is one line.
        let errors = answer.text().lines().filter(|line| line.starts_with("umbel: ")).count();
        assert!(errors <= 1, "{}", answer.text());
    }
}

#[test]
fn styles_of_others_are_escaped_and_ours_are_not() {
    let shell = shell();
    for args in [["info", "f"], ["info", FILE], ["meta", "f"]] {
        let mut command = shell.command(&args);
        command.env("TERM", "xterm");
        let shown =
            on_terminal(command, None).code(0).text().replace("\u{1b}[2m", "").replace("\u{1b}[1m", "");
        assert!(!shown.replace("\u{1b}[0m", "").contains('\u{1b}'), "{args:?}: {shown:?}");
    }
    // Dim text is a style of ours, but not if it comes from a file.
    shell.run(&["meta", "f", "name=\u{1b}[2mdim\u{1b}[0m"]).ok();
    let mut command = shell.command("meta f name");
    command.env("TERM", "xterm");
    let answer = on_terminal(command, None).code(0);
    assert_eq!(answer.text(), "\\u001b[2mdim\\u001b[0m\r\n");
}

#[test]
fn every_byte_reaches_a_pipe() {
    let shell = shell();
    let exact = |args: &[&str], bytes: &[u8]| {
        assert_eq!(
            shell.run(args).code(0).stdout.escape_ascii().to_string(),
            bytes.escape_ascii().to_string(),
            "{args:?}"
        );
    };
    let value = format!("{HOSTILE}\n");
    exact(&["meta", "f", "name"], value.as_bytes());
    exact(&["meta", "f"], format!("name={value}").as_bytes());
    for args in [&["check", "f", "lines"][..], &["uniq", "lines"], &["grep", "lue", "lines"]] {
        exact(args, &line());
    }
    exact(&["info", "--verify", FILE], format!("{FILE}: intact, all 2 checksums hold\n").as_bytes());
    // Errors, too.
    let missing = "missing\u{1b}[31m\u{9b}";
    let said = shell.run(&["info", missing]).code(2).stderr;
    assert!(said.contains(missing), "{said:?}");
}

#[test]
fn each_output_is_decided_by_its_own_terminal() {
    let shell = shell();
    let missing = "missing\u{1b}[31m";
    let run = |stdout_is_terminal: bool| {
        let (mut user, program) = terminal();
        let mut command = shell.command(&["check", "f", "lines", missing]);
        command.env("NO_COLOR", "1").stdin(Stdio::null());
        match stdout_is_terminal {
            true => command.stdout(program),
            false => command.stderr(program),
        };
        let process = Process::start(&mut command);
        drop(command);
        let reader = thread::spawn(move || {
            let mut shown = Vec::new();
            // A terminal whose last writer has closed it reports an error instead of the end.
            let _ = user.read_to_end(&mut shown);
            shown
        });
        let Answer { stdout, stderr, .. } = process.finish();
        (reader.join().unwrap(), stdout, stderr)
    };
    let (shown, _, piped) = run(true);
    assert!(!shown.contains(&0x1b), "{}", shown.escape_ascii());
    assert!(piped.contains(missing), "{piped:?}");
    let (shown, piped, _) = run(false);
    assert!(!shown.contains(&0x1b) && shown.starts_with(b"umbel: "), "{}", shown.escape_ascii());
    assert!(piped.is_empty() || piped == line(), "{}", piped.escape_ascii());
}

#[test]
fn no_message_repeats_a_password_of_the_command_line() {
    let shell = Shell::new();
    shell.write("lines", "a\n");
    shell.build("f", "", "a\n");
    for address in [
        "redis://:S3cretPw@h:x/k",
        "rediss://u:S3cretPw@127.0.0.1:x/k",
        "redis+unix://u:S3cretPw@%2Fnone/k",
        "redis://u:S3cretPw",
        "redis://:S3cretPw/k",
        "redis://u:S3cretPw@[::1/k",
        "redis://S3cretPw@:1/k?x#y%",
        "redis://u:%41/S3cretPw@127.0.0.1:1/k",
        "gopher://u:S3cretPw@h/k",
    ] {
        for args in [
            vec!["pull", address, "-o", "p"],
            vec!["push", "f", address],
            vec!["push", address, "f"],
            vec!["push", "f", "redis://127.0.0.1:1/k", address],
            vec!["pull", "redis://127.0.0.1:1/k", "-o", address],
            vec!["shard", "create", address, "-n", "10"],
            vec!["shard", "create", "redis://127.0.0.1:1/k", "-n", address],
            vec!["shard", "add", address],
            vec!["check", address, "lines"],
            vec!["check", "f", address],
            vec!["info", address],
            vec!["build", "lines", "-o", address],
            vec!["build", "lines", "-n", address],
            vec!["uniq", "--no-such", address],
            vec!["uniq", &format!("--no-such={address}")],
            vec![address],
        ] {
            let answer = shell.run(&args).code(2);
            let said = answer.stderr + &String::from_utf8_lossy(&answer.stdout);
            assert!(!said.contains("S3cretPw"), "{args:?}: {said}");
        }
    }
    assert_eq!(shell.names("."), ["f", "lines"]);
}
