//! `umbel vault` as used by its owner, by a new user, and by an attacker.

use crate::shell::{self, Answer, Shell, gzip, number};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, tcgetattr};
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;
use std::thread;

/// Returns a folder with two notes, and a passphrase in a file.
pub fn notes() -> Shell {
    let shell = Shell::new();
    shell.write("phrase", "correct horse battery staple\n");
    shell.allow("phrase", 0o600);
    shell.write("plan.txt", "We attack at dawn.\n");
    shell.write("menu.txt", "Soup at noon, bread at dusk.\n");
    shell
}

/// Runs `umbel vault` with the passphrase in the file.
#[track_caller]
pub fn vault(shell: &Shell, args: &str) -> Answer {
    shell.run(&format!("vault {args} --passphrase-file phrase"))
}

/// Creates a vault `v` with both notes.
#[track_caller]
pub fn filled() -> Shell {
    let shell = notes();
    vault(&shell, "add v plan.txt menu.txt").code(0);
    shell
}

pub fn documents(shell: &Shell) -> Vec<String> {
    shell.names("v").into_iter().filter(|name| name.ends_with(".doc")).collect()
}

#[test]
fn the_first_steps_of_a_new_user() {
    let shell = notes();
    let made = vault(&shell, "add secrets plan.txt menu.txt").code(0);
    assert_eq!((made.text(), &made.stderr[..]), ("", "umbel: made a new vault, secrets\n"));
    assert_eq!(vault(&shell, "search secrets Attack DAWN").ok().text(), "plan.txt\n");
    assert_eq!(vault(&shell, "search secrets at").ok().text(), "menu.txt\nplan.txt\n");
    assert_eq!(vault(&shell, "search secrets dinner").code(1).text(), "");
    let list = vault(&shell, "list secrets").ok();
    let lines: Vec<&str> = list.text().lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(
        lines[0].starts_with("name") && lines.iter().any(|line| line.starts_with("plan.txt  ")),
        "{lines:?}"
    );
    assert_eq!(vault(&shell, "get secrets plan.txt").ok().text(), "We attack at dawn.\n");
    vault(&shell, "get secrets menu.txt -o again.txt").ok();
    assert_eq!(shell.read("again.txt"), shell.read("menu.txt"));
    vault(&shell, "remove secrets plan.txt").ok();
    assert_eq!(vault(&shell, "search secrets attack").code(1).text(), "");
    assert_eq!(vault(&shell, "check secrets").ok().text(), "whole: 1, damaged: 0\n");
    // The facts that are visible without a passphrase.
    let info = shell.run("vault info secrets --json").ok().json();
    assert_eq!(number(&info, "documents"), 1.0);
    assert!((number(&info, "fill") - 0.5).abs() < 0.01, "{info}");
    assert!(shell.run("vault info secrets").ok().text().contains("cannot be seen"));
}

#[test]
fn documents_are_encrypted_and_readable_only_by_their_owner() {
    let shell = filled();
    for (name, bytes) in shell.contents("v") {
        for needle in ["attack", "dawn", "plan", "noon", "menu", ".txt", "horse"] {
            let found =
                bytes.windows(needle.len()).any(|window| window.eq_ignore_ascii_case(needle.as_bytes()));
            assert!(!found && !name.contains(needle), "{needle} in {name}");
        }
        let mode = fs::metadata(shell.path("v").join(&name)).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert_eq!(shell.names("v").len(), 3, "two documents and the header");
    assert_eq!(fs::metadata(shell.path("v")).expect("a folder").permissions().mode() & 0o777, 0o700);
    vault(&shell, "get v plan.txt -o out").ok();
    assert_eq!(fs::metadata(shell.path("out")).expect("a file").permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_wrong_passphrase_is_an_error_and_changes_nothing() {
    let shell = filled();
    let before = shell.contents("v");
    shell.write("wrong", "incorrect horse\n");
    shell.allow("wrong", 0o600);
    for args in ["add v phrase", "search v at", "list v", "get v plan.txt", "remove v plan.txt", "check v"] {
        let said = shell.run(&format!("vault {args} --passphrase-file wrong"));
        said.refused(&["this passphrase does not open v", "nothing was changed"]);
    }
    assert_eq!(shell.contents("v"), before);
    // From a pipe, with or without a newline, and with that of Windows.
    for line in ["correct horse battery staple", "correct horse battery staple\r\nsecond line\n"] {
        let said = shell.pipe("vault search v dawn --passphrase-file -", line).ok();
        assert_eq!(said.text(), "plan.txt\n");
    }
    for (bytes, why) in [(&b""[..], "empty"), (b"\nx\n", "empty"), (&[b'x'; 10_000], "longer than")] {
        shell.pipe("vault list v --passphrase-file -", bytes).refused(&["standard input", why]);
    }
    shell.run("vault list v --passphrase-file missing").refused(&["missing", "No such file"]);
    shell.run("vault list v --passphrase-file v").refused(&["is a directory"]);
    shell.allow("phrase", 0o640);
    vault(&shell, "list v")
        .refused(&["others have access to the passphrase file phrase", "chmod 600 phrase"]);
}

#[test]
fn without_a_terminal_the_passphrase_must_come_from_a_file() {
    let shell = filled();
    // A session of its own has no terminal, wherever the test runs.
    let mut command = shell.program("setsid");
    command.args(["--wait", shell::UMBEL, "vault", "list", "v"]);
    let said = shell::Process::start(&mut command).finish();
    said.refused(&["no terminal", "--passphrase-file"]);
    // Problems of the vault are reported before the prompt.
    shell
        .run("vault list nowhere")
        .refused(&["there is no vault in nowhere", "umbel vault add nowhere FILE"]);
    shell.run("vault list plan.txt").refused(&["plan.txt is a file", "comes first"]);
    shell.run("vault add plan.txt v").refused(&["plan.txt is a file", "comes first"]);
    shell.write("v/vault", "nonsense");
    shell.run("vault list v").refused(&["v/vault is damaged", "not the header of a vault"]);
}

#[test]
fn unreadable_files_are_reported_and_the_others_added() {
    let shell = notes();
    fs::create_dir_all(shell.path("letters/old")).expect("a folder");
    shell.write("letters/a", "dear ann");
    shell.write("letters/old/b.gz", gzip("dear bob"));
    shell.write("letters/picture", b"dear\0\x01\x02");
    std::os::unix::fs::symlink("nowhere", shell.path("letters/link")).expect("a link");
    let said = vault(&shell, "add v missing ./plan.txt letters plan.txt").code(2);
    assert!(said.stderr.contains("cannot open missing: No such file"), "{}", said.stderr);
    assert!(said.stderr.contains("plan.txt is in the vault already: --replace"), "{}", said.stderr);
    let names = |shell: &Shell| -> BTreeSet<String> {
        let list = vault(shell, "list v --json").ok();
        list.text()
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
            .map(|facts| facts["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    let all = ["letters/a", "letters/old/b.gz", "letters/picture", "plan.txt"].map(String::from);
    assert_eq!(names(&shell), all.clone().into());
    assert_eq!(vault(&shell, "search v dear").ok().text(), "letters/a\nletters/old/b.gz\n");
    // Again, with the vault itself among the files.
    shell.write("plan.txt", "We stay.\n");
    vault(&shell, "add v plan.txt --replace").ok();
    assert_eq!(vault(&shell, "get v plan.txt").ok().text(), "We stay.\n");
    assert_eq!(vault(&shell, "search v attack").code(1).text(), "");
    vault(&shell, "add v . --replace").ok();
    assert_eq!(names(&shell).len(), all.len() + 2, "menu.txt and the passphrase too, and nothing twice");
    assert!(!names(&shell).iter().any(|name| name.ends_with(".doc")));
    shell.run("vault add v nothing-there --passphrase-file phrase").code(2);
    let said = shell.pipe("vault add v - --name typed --passphrase-file phrase", "typed words").ok();
    assert_eq!(said.text(), "");
    assert_eq!(vault(&shell, "get v typed").ok().text(), "typed words");
    vault(&shell, "add v -").refused(&["--name"]);
    vault(&shell, "add v plan.txt menu.txt --name x").refused(&["--name is for one file"]);
    shell
        .pipe("vault add v - --name x --passphrase-file -", "x")
        .refused(&["both the passphrase and a document"]);
}

#[test]
fn a_damaged_document_is_named_and_the_others_are_readable() {
    let shell = filled();
    let victim = vault(&shell, "list v --json").ok().text().lines().next().map(|line| {
        serde_json::from_str::<serde_json::Value>(line).expect("JSON")["name"]
            .as_str()
            .expect("a name")
            .to_owned()
    });
    let ids = documents(&shell);
    let victim_file = ids
        .iter()
        .find(|file| {
            let path = shell.path("v").join(file);
            let good = fs::read(&path).expect("a document");
            let mut bad = good.clone();
            // In the middle of the contents.
            bad[500] ^= 1;
            fs::write(&path, &bad).expect("room");
            let said = vault(&shell, &format!("get v {}", victim.as_deref().expect("a document")));
            if said.code == Some(2) {
                assert_eq!(said.stdout, b"");
                assert!(
                    said.stderr.contains(&file[..32]) && said.stderr.contains("chunk 0"),
                    "{}",
                    said.stderr
                );
                return true;
            }
            fs::write(&path, &good).expect("room");
            false
        })
        .expect("one of them");
    let said = vault(&shell, "search v at").code(2);
    assert_eq!(said.text().lines().count(), 1, "the other is found");
    assert!(said.stderr.contains(&victim_file[..32]), "{}", said.stderr);
    assert_eq!(vault(&shell, "check v").code(2).text(), "whole: 1, damaged: 1\n");
    vault(&shell, &format!("get v {} -o out", victim.expect("a document"))).code(2);
    assert!(!shell.path("out").exists(), "no part of it is left");
    assert_eq!(shell.names(".").iter().filter(|name| name.starts_with(".umbel")).count(), 0);
    // An empty file has no name, but can be removed by its id.
    shell.write(&format!("v/{victim_file}"), "");
    let said = vault(&shell, "list v").code(2);
    assert_eq!(said.text().lines().count(), 2);
    vault(&shell, &format!("remove v {}", &victim_file[..8])).ok();
    vault(&shell, "list v").ok();
}

#[test]
fn files_planted_by_a_server_are_neither_waited_for_nor_trusted() {
    let shell = filled();
    let strange = |number: u32| format!("v/{number:032x}.doc");
    let made = shell.program("mkfifo").arg(shell.path(&strange(1))).status().expect("mkfifo");
    assert!(made.success());
    fs::create_dir(shell.path(&strange(2))).expect("a folder");
    std::os::unix::fs::symlink("/etc/passwd", shell.path(&strange(3))).expect("a link");
    let huge = fs::File::create(shell.path(&strange(4))).expect("a file");
    huge.set_len(1 << 40).expect("a file with holes");
    shell.write("v/notes", "not a document");
    for (args, lines) in [("list v", 3), ("search v dawn", 1), ("check v", 1)] {
        let said = vault(&shell, args).code(2);
        assert_eq!(
            (said.text().lines().count(), said.stderr.lines().count()),
            (lines, 4),
            "{args}: {}",
            said.stderr
        );
    }
    assert_eq!(number(&shell.run("vault info v --json").code(2).json(), "damaged"), 4.0);
    assert_eq!(vault(&shell, "get v plan.txt").ok().text(), "We attack at dawn.\n");
}

#[test]
fn nothing_is_overwritten_or_written_elsewhere() {
    let shell = filled();
    shell.write("mine", "mine");
    vault(&shell, "get v plan.txt -o mine").refused(&["mine exists", "-f"]);
    assert_eq!(shell.read("mine"), b"mine");
    vault(&shell, "get v plan.txt -o mine -f").ok();
    assert_eq!(shell.read("mine"), b"We attack at dawn.\n");
    vault(&shell, "get v plan.txt -o v").refused(&["v is a directory"]);
    vault(&shell, "get v plan.txt -o no/where").refused(&["no/where", "No such file"]);
    // The name of a document never decides the output path.
    fs::create_dir(shell.path("sub")).expect("a folder");
    shell.pipe("vault add v - --name ../../escape --passphrase-file phrase", "out").ok();
    shell.pipe("vault add v - --name /etc/shadow\x1b[2J --passphrase-file phrase", "out").ok();
    let before = shell.names(".");
    assert_eq!(vault(&shell, "get v ../../escape").ok().text(), "out");
    assert_eq!(shell.names("."), before);
    let list = vault(&shell, "list v").ok();
    assert!(list.text().contains("escape") && !list.text().contains('\x1b'), "no terminal is taken over");
    // Missing documents.
    assert!(vault(&shell, "get v nobody").code(1).stderr.contains("there is no document \"nobody\" in v"));
    let near = vault(&shell, "get v PLAN.TXT").code(1).stderr;
    assert!(near.contains("similar names: plan.txt"), "{near}");
    let near = vault(&shell, "get v escape").code(1).stderr;
    assert!(near.contains("similar names: ../../escape"), "{near}");
    assert!(!vault(&shell, "get v zebra").code(1).stderr.contains("similar"));
    vault(&shell, "remove v plan.txt nobody").code(1);
    assert_eq!(vault(&shell, "search v attack").ok().text(), "plan.txt\n", "all or none is removed");
    // A directory with other files does not become a vault, and no vault is created twice.
    vault(&shell, "add sub/../sub plan.txt").code(0);
    vault(&shell, "init v").refused(&["v is a vault already"]);
    shell.write("folder-file", "x");
    fs::create_dir(shell.path("full")).expect("a folder");
    shell.write("full/x", "x");
    vault(&shell, "add full plan.txt")
        .refused(&["full holds other files", "name a directory that is empty or new"]);
}

#[test]
fn two_documents_of_one_name_are_told_apart_by_their_ids() {
    let shell = filled();
    // Two computers that add at the same time do not see each other's documents.
    fs::create_dir(shell.path("copy")).expect("a folder");
    for (name, bytes) in shell.contents("v") {
        shell.write(&format!("copy/{name}"), bytes);
    }
    vault(&shell, "add v phrase --name twice").ok();
    vault(&shell, "add copy menu.txt --name twice").ok();
    for (name, bytes) in shell.contents("copy") {
        shell.write(&format!("v/{name}"), bytes);
    }
    // The header of the copy does not list the document of the other one.
    let said = vault(&shell, "list v");
    said.failed(&["is not in the list of documents", "umbel vault adopt"]);
    let unlisted = said.stderr.split(['/', '.']).find(|word| word.len() == 32).expect("an id").to_owned();
    assert_eq!(vault(&shell, &format!("adopt v {unlisted}")).ok().text(), "twice\n");
    let said = vault(&shell, "get v twice");
    said.refused(&["twice are 2 documents", "give the id"]);
    let id = said.stderr.split_ascii_whitespace().find(|word| word.len() == 32).expect("an id").to_owned();
    assert!(!vault(&shell, &format!("get v {}", &id[..10])).ok().stdout.is_empty());
    vault(&shell, &format!("remove v {id}")).ok();
    vault(&shell, "get v twice").ok();
}

#[test]
fn parameters_are_for_new_vaults_and_have_limits() {
    let shell = notes();
    vault(&shell, "init v --words 100 -p 1% --memory 16MiB --passes 1").ok();
    let info = shell.run("vault info v --json").ok().json();
    assert_eq!(
        [
            number(&info, "hashes"),
            number(&info, "words_per_part"),
            number(&info, "kdf_memory"),
            number(&info, "documents")
        ],
        [7.0, 100.0, f64::from(16 << 20), 0.0]
    );
    for wrong in ["--words 1", "-p 0", "--memory 1MiB", "--memory 100GiB", "--passes 0", "--passes 1000"] {
        vault(&shell, &format!("init w {wrong}")).refused(&[]);
    }
    assert!(!shell.path("w").exists());
    shell.write("short", "abc\n");
    shell.allow("short", 0o600);
    let said = shell.run("vault init w --passphrase-file short").code(0);
    assert!(said.stderr.contains("fewer than 12 characters"), "{}", said.stderr);
    vault(&shell, "search v !?").refused(&["there is no word in"]);
    assert_eq!(vault(&shell, "list v").ok().text(), "");
}

#[test]
fn the_indexes_alone_are_trusted_only_on_request() {
    let shell = notes();
    // With one key, half of all documents seem to contain any word.
    vault(&shell, "init v -p 50% --memory 16MiB").ok();
    for i in 0..40 {
        shell.write(&format!("n{i}"), format!("number{i}"));
    }
    let files: Vec<String> = (0..40).map(|i| format!("n{i}")).collect();
    vault(&shell, &format!("add v {}", files.join(" "))).ok();
    assert_eq!(vault(&shell, "search v number7").ok().text(), "n7\n");
    let possible = vault(&shell, "search v number7 --possible").ok();
    let count = possible.text().lines().count();
    // 39 others, each with probability one half: within four standard errors.
    assert!((8..=33).contains(&count) && possible.text().lines().any(|line| line == "n7"), "{count}");
    let json = vault(&shell, "search v number7 --json").ok().json();
    assert_eq!((&json["name"], &json["confirmed"]), (&"n7".into(), &true.into()));
}

#[test]
fn a_closed_output_is_not_an_error() {
    let shell = filled();
    shell.write("long", "word ".repeat(1_000_000));
    vault(&shell, "add v long").ok();
    let mut command = shell.program("bash");
    command.args(["-c", &format!("{} vault get v long --passphrase-file phrase | head -c 5", shell::UMBEL)]);
    assert_eq!(shell::Process::start(&mut command).finish().ok().text(), "word ");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a full disk");
    let mut command = shell.command("vault get v plan.txt --passphrase-file phrase");
    let said = shell::Process::start(command.stdout(full)).finish();
    assert!(
        said.code == Some(2) && said.stderr.contains("cannot write to standard output"),
        "{}",
        said.stderr
    );
}

#[test]
fn an_interrupted_add_leaves_nothing_behind() {
    let shell = filled();
    let before = shell.contents("v");
    let mut adding = shell.start("vault add v - --name slow --passphrase-file phrase");
    let mut stdin = adding.stdin();
    // More than any buffer holds, so that part of it is being written.
    stdin.write_all(&b"secret ".repeat(200_000)).expect("somebody reads");
    adding.child().kill().expect("it runs");
    drop(adding);
    assert_eq!(shell.contents("v"), before);
}

/// A file written into the vault could replace one of its own files.
#[test]
fn nothing_is_decrypted_into_the_vault_itself() {
    let shell = filled();
    let before = shell.contents("v");
    symlink("v", shell.path("same")).expect("a link");
    symlink("v/vault", shell.path("header")).expect("a link");
    symlink("v/new", shell.path("nowhere")).expect("a link");
    fs::create_dir(shell.path("v/sub")).expect("a folder");
    for place in ["v/vault", "v/new", "./v/../same/vault", "header", "nowhere", "v/sub/new"] {
        let said = shell.run(&format!("vault get v plan.txt -f -o {place}"));
        said.refused(&[place, "is in the vault itself"]);
    }
    fs::remove_dir(shell.path("v/sub")).expect("an empty folder");
    assert_eq!(shell.contents("v"), before);
    // Through a link to the vault, a path outside of it is still valid.
    vault(&shell, "get same plan.txt -o plan2").ok();
}

#[test]
fn a_vault_without_its_header_is_distinguished_from_no_vault() {
    let shell = filled();
    fs::rename(shell.path("v/vault"), shell.path("header")).expect("a header");
    for args in ["list v", "add v menu.txt", "init v", "search v dawn"] {
        vault(&shell, args).refused(&["v/vault is missing", "put it back"]);
    }
    shell.run("vault info v").refused(&["v/vault is missing"]);
    fs::rename(shell.path("header"), shell.path("v/vault")).expect("a header");
    vault(&shell, "list v").ok();
}

/// Searches, lists and gets see each document once while it is being replaced, and writers wait for
/// each other.
#[test]
fn documents_replaced_meanwhile_are_not_missed() {
    let shell = notes();
    vault(&shell, "init v --memory 16MiB --passes 1").ok();
    let files: Vec<String> = (0..8).map(|i| format!("n{i}")).collect();
    files.iter().for_each(|file| shell.write(file, format!("common {file}")));
    let all = files.join(" ");
    vault(&shell, &format!("add v {all}")).ok();
    thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    (0..4).for_each(|_| drop(vault(&shell, &format!("add v --replace {all}")).ok()))
                })
            })
            .collect();
        while !writers.iter().all(|writer| writer.is_finished()) {
            let found = vault(&shell, "search v common").ok();
            assert_eq!(found.text().lines().collect::<Vec<_>>(), files);
            assert_eq!(vault(&shell, "list v").ok().text().lines().count(), 9);
            assert_eq!(vault(&shell, "check v").ok().text(), "whole: 8, damaged: 0\n");
            assert_eq!(vault(&shell, "get v n3").ok().text(), "common n3");
        }
    });
    assert_eq!(documents(&shell).len(), 8);
    // A dangling link is reported, and not looked up for ever.
    symlink("nowhere", shell.path(&format!("v/{:032x}.doc", 1))).expect("a link");
    assert!(vault(&shell, "search v common").code(2).stderr.contains("No such file"));
}

#[test]
fn only_the_first_line_of_a_pipe_is_awaited() {
    let shell = filled();
    let mut search = shell.start("vault search v dawn --passphrase-file -");
    search.send("correct horse battery staple\n");
    assert_eq!(
        search.next_line(shell::PROCESS_TIMEOUT).as_deref(),
        Some(&b"plan.txt\n"[..]),
        "the pipe is open still"
    );
    search.finish().ok();
}

/// Starts `umbel vault` on a terminal and waits for the prompt. Returns the process and both ends
/// of the terminal.
pub fn at_prompt(shell: &Shell, args: &str) -> (shell::Process, fs::File, fs::File) {
    let (mut user, program) = shell::terminal();
    let other = || Stdio::from(program.try_clone().expect("another of the same"));
    let mut command = shell.program("setsid");
    command.args(["--ctty", "--wait", shell::UMBEL, "vault"]).args(args.split(' '));
    command.stdin(other()).stdout(other()).stderr(other());
    let process = shell::Process::start(&mut command);
    let mut shown = Vec::new();
    while !shown.ends_with(b": ") {
        let mut bytes = [0; 256];
        let count = user.read(&mut bytes).expect("a prompt");
        shown.extend_from_slice(&bytes[..count]);
    }
    (process, user, program)
}

#[test]
fn on_a_terminal_the_passphrase_is_prompted_for_and_not_shown() {
    let shell = filled();
    let echo =
        |terminal: &fs::File| tcgetattr(terminal).expect("a terminal").local_modes.contains(LocalModes::ECHO);
    for args in ["search v dawn --passphrase-file -", "search v dawn"] {
        let (process, mut user, program) = at_prompt(&shell, args);
        assert!(!echo(&program), "it would be shown");
        user.write_all(b"correct horse battery staple\n").expect("a terminal");
        assert_eq!(process.finish().code, Some(0));
        assert!(echo(&program));
        drop(program);
        let mut shown = Vec::new();
        let _ = user.read_to_end(&mut shown);
        let shown = String::from_utf8(shown).expect("text");
        assert!(shown.contains("plan.txt") && !shown.contains("horse"), "{shown:?}");
    }
    // After an interrupt the terminal has its former modes.
    for way in ["^C", "TERM"] {
        let (mut process, mut user, program) = at_prompt(&shell, "list v");
        if way == "^C" {
            user.write_all(b"\x03").expect("a terminal");
        } else {
            let parent = process.child().id();
            let children =
                fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).expect("children");
            let umbel =
                children.split_whitespace().next().unwrap_or(&parent.to_string()).parse().expect("a number");
            kill_process(Pid::from_raw(umbel).expect("a process"), Signal::TERM).expect("it runs");
        }
        let code = process.finish().code;
        assert!(code != Some(0) && code != Some(2), "it ended by the signal: {code:?}");
        assert!(echo(&program), "{way}");
    }
}
