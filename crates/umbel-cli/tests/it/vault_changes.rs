//! The owner of a vault changes its passphrase, and notices what the server brings back or demands.

use crate::shell::{Answer, Shell, number};
use crate::vault::{at_prompt, documents, filled, notes, vault};
use std::fs;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

/// Writes a passphrase into a file of its owner.
fn phrase(shell: &Shell, name: &str, text: &str) {
    shell.write(name, text);
    shell.allow(name, 0o600);
}

/// Copies all files of the vault into another directory.
fn copy(shell: &Shell, from: &str, to: &str) {
    let _ = fs::remove_dir_all(shell.path(to));
    fs::create_dir(shell.path(to)).expect("a folder");
    for (name, bytes) in shell.contents(from) {
        shell.write(&format!("{to}/{name}"), bytes);
    }
}

#[test]
fn a_new_passphrase_replaces_the_old_one() {
    let shell = filled();
    phrase(&shell, "new", "battery staple horse\n");
    shell.run("vault passphrase v --passphrase-file phrase --new-passphrase-file new").ok();
    let with_new = |args: &str| shell.run(&format!("vault {args} --passphrase-file new"));
    vault(&shell, "list v").refused(&["this passphrase does not open v"]);
    assert_eq!(with_new("get v plan.txt").ok().text(), "We attack at dawn.\n");
    assert_eq!(with_new("check v").ok().text(), "whole: 2, damaged: 0\n");
    // A wrong old passphrase, or no good new one, changes nothing.
    let before = shell.contents("v");
    let change = "vault passphrase v --passphrase-file";
    shell.run(&format!("{change} phrase --new-passphrase-file new")).refused(&["does not open v"]);
    phrase(&shell, "empty", "\n");
    shell.run(&format!("{change} new --new-passphrase-file empty")).refused(&["empty"]);
    shell.run(&format!("{change} new --new-passphrase-file missing")).refused(&["No such file"]);
    shell.allow("phrase", 0o644);
    shell.run(&format!("{change} new --new-passphrase-file phrase")).refused(&["others have access"]);
    assert_eq!(shell.contents("v"), before);
    // Both from one pipe.
    let lines = "battery staple horse\ncorrect horse battery staple\n";
    shell.pipe(&format!("{change} - --new-passphrase-file -"), lines).ok();
    shell.allow("phrase", 0o600);
    vault(&shell, "list v").ok();
    // A vault of the first version gets the new passphrase, too.
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../umbel-text/tests/golden/vault");
    fs::create_dir(shell.path("first")).expect("a folder");
    for file in fs::read_dir(golden).expect("the golden vault") {
        let file = file.expect("a file");
        fs::copy(file.path(), shell.path("first").join(file.file_name())).expect("room");
    }
    shell.run("vault passphrase first --passphrase-file phrase --new-passphrase-file new").ok();
    vault(&shell, "list first").code(2);
    assert_eq!(with_new("get first plan.txt").ok().text(), "We attack at dawn.\n");
}

#[test]
fn a_copy_of_a_vault_has_a_key_of_its_own() {
    let shell = filled();
    phrase(&shell, "new", "battery staple horse\n");
    let copy = "vault copy v w --passphrase-file phrase --new-passphrase-file new";
    shell.run(copy).ok();
    vault(&shell, "list w").refused(&["this passphrase does not open w"]);
    let with_new = |args: &str| shell.run(&format!("vault {args} --passphrase-file new"));
    assert_eq!(with_new("check w").ok().text(), "whole: 2, damaged: 0\n");
    assert_eq!(with_new("search w dawn").ok().text(), "plan.txt\n");
    assert_eq!(with_new("get w plan.txt").ok().text(), "We attack at dawn.\n");
    let facts = |args: &str, key: &str| {
        let line = shell
            .run(args)
            .ok()
            .text()
            .lines()
            .find(|line| line.contains("plan.txt"))
            .expect("it")
            .to_owned();
        serde_json::from_str::<serde_json::Value>(&line).expect("JSON")[key].clone()
    };
    let lists = ["vault list v --json --passphrase-file phrase", "vault list w --json --passphrase-file new"];
    assert_eq!(facts(lists[0], "modified"), facts(lists[1], "modified"));
    assert_ne!(facts(lists[0], "id"), facts(lists[1], "id"));
    // A file of the old vault is not a document of the new one.
    let file = &documents(&shell)[0];
    shell.write(&format!("w/{file}"), shell.read(&format!("v/{file}")));
    with_new("list w").failed(&[file, "is not what was written, or is from another vault"]);
    shell.run(copy).refused(&["w is a vault already"]);
    // A damaged document is reported, and the others are copied.
    let mut bytes = shell.read(&format!("v/{file}"));
    bytes[500] ^= 1;
    shell.write(&format!("v/{file}"), bytes);
    shell.run("vault copy v x --passphrase-file phrase --new-passphrase-file new").code(2);
    assert_eq!(with_new("check x").ok().text(), "whole: 1, damaged: 0\n");
}

#[test]
fn a_copy_that_was_interrupted_is_continued() {
    let shell = filled();
    phrase(&shell, "new", "battery staple horse\n");
    let copy = "vault copy v w --passphrase-file phrase --new-passphrase-file new";
    let check = || shell.run("vault check w --passphrase-file new").ok().text().to_owned();
    // Killed at any moment, the copy is completed by the same command. Then it is a vault already.
    for milliseconds in [0, 40, 80, 120, 160, 200] {
        let _ = fs::remove_dir_all(shell.path("w"));
        let mut process = shell.start(copy);
        thread::sleep(Duration::from_millis(milliseconds));
        process.child().kill().expect("a process of ours");
        process.finish();
        let answer = shell.run(copy);
        if answer.code != Some(0) {
            answer.refused(&["w is a vault already"]);
        }
        assert_eq!(check(), "whole: 2, damaged: 0\n");
        shell.run(copy).refused(&["w is a vault already"]);
    }
    // What was copied before stays as it is.
    let before = shell.contents("w");
    shell.write("more.txt", "Reserves at noon.\n");
    vault(&shell, "add v more.txt").ok();
    shell
        .run("vault copy v w --passphrase-file phrase --new-passphrase-file phrase")
        .refused(&["does not open w"]);
    shell.run(copy).ok();
    assert_eq!(check(), "whole: 3, damaged: 0\n");
    let after = shell.contents("w");
    assert!(before.iter().all(|(name, bytes)| name == "vault" || after.get(name) == Some(bytes)));
    // A vault with other documents is not a copy, even if some of them are.
    vault(&shell, "remove v plan.txt").ok();
    vault(&shell, "add v plan.txt").ok();
    shell.run(copy).refused(&["w is a vault already"]);
    assert_eq!(shell.contents("w"), after);
    // No two documents have the same id, even if they are copies of one: nonces depend on it.
    shell.run("vault remove w plan.txt menu.txt more.txt --passphrase-file new").ok();
    shell.run(copy).ok();
    assert!(shell.contents("w").keys().all(|name| name == "vault" || !after.contains_key(name)));
}

#[test]
fn on_a_terminal_the_new_passphrase_is_prompted_for_twice() {
    let shell = filled();
    for (again, code) in [("battery staple hors\n", 2), ("battery staple horse\n", 0)] {
        let (process, mut user, program) = at_prompt(&shell, "passphrase v");
        // The prompts after the first one are read as fast as they are typed.
        user.write_all(b"correct horse battery staple\nbattery staple horse\n").expect("a terminal");
        user.write_all(again.as_bytes()).expect("a terminal");
        assert_eq!(process.finish().code, Some(code));
        drop(program);
        let found = vault(&shell, "list v").code;
        assert_eq!(found, Some(if code == 0 { 2 } else { 0 }));
    }
}

/// Moments between 0 and 1, evenly spread.
fn moments(count: u32) -> impl Iterator<Item = f64> {
    (0..count).map(move |number| (f64::from(number) * 0.618_034).fract())
}

#[test]
fn after_a_kill_exactly_one_passphrase_opens_the_vault() {
    let shell = notes();
    vault(&shell, "init v --memory 16MiB --passes 1").ok();
    vault(&shell, "add v plan.txt menu.txt").ok();
    phrase(&shell, "new", "battery staple horse\n");
    let [mut now, mut next] = ["phrase", "new"];
    let mut duration = None;
    let (mut killed, mut changed) = (0, 0);
    for moment in moments(30) {
        let start = Instant::now();
        let mut process =
            shell.start(&format!("vault passphrase v --passphrase-file {now} --new-passphrase-file {next}"));
        if let Some(duration) = duration {
            thread::sleep(std::time::Duration::mul_f64(duration, 1.2 * moment));
            let _ = process.child().kill();
        }
        killed += usize::from(process.finish().signal == Some(9));
        duration.get_or_insert(start.elapsed());
        let opens = [now, next].map(|file| {
            let said = shell.run(&format!("vault check v --passphrase-file {file}"));
            assert!(said.code != Some(0) || said.text() == "whole: 2, damaged: 0\n", "{said:?}");
            said.code == Some(0)
        });
        assert_ne!(opens[0], opens[1], "exactly one of {now} and {next}");
        if opens[1] {
            changed += 1;
            (now, next) = (next, now);
        }
        assert!(
            shell
                .names("v")
                .iter()
                .all(|name| name == "vault" || name.ends_with(".doc") || name.ends_with(".part"))
        );
    }
    assert!(killed > 5 && changed > 0, "killed {killed}, changed {changed}");
}

#[test]
fn after_a_kill_a_replaced_document_is_the_old_or_the_new_one() {
    let shell = notes();
    vault(&shell, "init v --memory 16MiB --passes 1").ok();
    let texts = ["one", "two"].map(|text| format!("{text} {}\n", "word ".repeat(5000)));
    shell.write("plan.txt", &texts[0]);
    let start = Instant::now();
    vault(&shell, "add v plan.txt menu.txt").ok();
    let duration = start.elapsed();
    let mut killed = 0;
    for (round, moment) in moments(30).enumerate() {
        shell.write("plan.txt", &texts[round % 2]);
        let mut process = shell.start("vault add v --replace plan.txt menu.txt --passphrase-file phrase");
        thread::sleep(duration.mul_f64(1.2 * moment));
        let _ = process.child().kill();
        killed += usize::from(process.finish().signal == Some(9));
        assert_eq!(vault(&shell, "check v").ok().text(), "whole: 2, damaged: 0\n");
        let found = vault(&shell, "get v plan.txt").ok();
        assert!(texts.iter().any(|text| text == found.text()), "neither the old nor the new one");
    }
    assert!(killed > 5, "killed {killed}");
    // What was left behind is gone after the next change.
    vault(&shell, "add v --replace plan.txt").ok();
    assert_eq!(documents(&shell).len(), 2);
}

/// Asserts that the command reported problems with all of these parts.
#[track_caller]
fn reports(said: &Answer, parts: &[&str]) {
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(parts.iter().all(|part| said.stderr.contains(part)), "{}", said.stderr);
}

#[test]
fn a_document_that_a_server_deletes_or_brings_back_is_reported() {
    let shell = filled();
    copy(&shell, "v", "before");
    shell.write("plan.txt", "We stay.\n");
    vault(&shell, "add v plan.txt --replace").ok();
    copy(&shell, "v", "after");
    let files = |name: &str| shell.names(name);
    let old = files("before").into_iter().find(|name| !files("after").contains(name)).expect("a document");
    let new = files("after").into_iter().find(|name| !files("before").contains(name)).expect("a document");
    let bring_back = || shell.write(&format!("v/{old}"), shell.read(&format!("before/{old}")));
    // Beside the new one, which is still the one that is read.
    bring_back();
    for args in ["list v", "check v", "search v attack"] {
        vault(&shell, args).failed(&[&old, "is not in the list of documents"]);
    }
    assert_eq!(vault(&shell, "get v plan.txt").ok().text(), "We stay.\n");
    vault(&shell, &format!("get v {}", &old[..32])).refused(&["is not in the list of documents"]);
    // Instead of the new one.
    fs::remove_file(shell.path(&format!("v/{new}"))).expect("a document");
    let said = vault(&shell, "get v plan.txt");
    reports(&said, &[&new, "is missing, and was not removed", &old]);
    assert!(!said.text().contains("attack"));
    // The owner removes both: the one that is back, and the one that is missing.
    vault(&shell, &format!("remove v {} {}", &old[..32], &new[..32])).ok();
    assert_eq!(vault(&shell, "check v").ok().text(), "whole: 1, damaged: 0\n");
    // A header of another time does not fit the documents.
    copy(&shell, "after", "v");
    shell.write("v/vault", shell.read("before/vault"));
    reports(&vault(&shell, "list v"), &["is not in the list of documents", "is missing"]);
    // Removed documents do not come back, either.
    copy(&shell, "after", "v");
    vault(&shell, "remove v plan.txt").ok();
    shell.write(&format!("v/{new}"), shell.read(&format!("after/{new}")));
    vault(&shell, "check v").failed(&["is not in the list of documents"]);
    assert_eq!(vault(&shell, &format!("adopt v {}", &new[..8])).ok().text(), "plan.txt\n");
    assert_eq!(vault(&shell, "check v").ok().text(), "whole: 2, damaged: 0\n");
    vault(&shell, "adopt v ffffffff").code(1);
}

#[test]
fn a_state_file_shows_that_the_whole_vault_was_set_back() {
    let shell = notes();
    vault(&shell, "add v plan.txt --state-file state").code(0);
    copy(&shell, "v", "before");
    vault(&shell, "add v menu.txt --state-file state").ok();
    vault(&shell, "list v --state-file state").ok();
    copy(&shell, "v", "after");
    copy(&shell, "before", "v");
    // By itself it looks intact.
    vault(&shell, "check v").ok();
    let remembered = shell.read("state");
    for args in
        ["list v", "check v", "get v plan.txt", "add v menu.txt", "remove v plan.txt", "search v dawn"]
    {
        let said = vault(&shell, &format!("{args} --state-file state"));
        said.refused(&["v was set back to an earlier state", "remove state"]);
        assert_eq!(said.text(), "");
    }
    assert_eq!((shell.read("state"), shell.contents("v")), (remembered, shell.contents("before")));
    copy(&shell, "after", "v");
    vault(&shell, "remove v plan.txt --state-file state").ok();
    phrase(&shell, "new", "battery staple horse\n");
    vault(&shell, "passphrase v --new-passphrase-file new --state-file state").ok();
    shell.run("vault check v --passphrase-file new --state-file state").ok();
    // A state file belongs to one vault.
    vault(&shell, "add w plan.txt").code(0);
    vault(&shell, "list w --state-file state").refused(&["state is the state of another vault"]);
    vault(&shell, "add x plan.txt --state-file state").refused(&["state is the state of another vault"]);
    assert!(!shell.path("x").exists());
    vault(&shell, "list w --state-file plan.txt").refused(&["plan.txt is not the state of a vault"]);
    assert_eq!(shell.read("plan.txt"), b"We attack at dawn.\n");
}

#[test]
fn a_vault_that_costs_much_opens_only_if_that_is_allowed() {
    let shell = notes();
    let said = vault(&shell, "init v --memory 300MiB --passes 1").code(0);
    assert!(said.stderr.contains("--max-memory 300MiB"), "{}", said.stderr);
    for args in ["list v", "add v plan.txt", "check v --max-memory 299MiB"] {
        vault(&shell, args).refused(&["more than is expected of a vault", "--max-memory 300MiB"]);
    }
    vault(&shell, "list v --max-memory 300MiB").ok();
    // Without a passphrase the cost is only shown.
    assert_eq!(number(&shell.run("vault info v --json").ok().json(), "kdf_memory"), f64::from(300 << 20));
}
