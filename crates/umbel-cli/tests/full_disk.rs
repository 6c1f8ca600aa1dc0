//! A full disk costs nothing but a sentence: what was there stays, and what was begun is gone.

mod common;

use common::{Folder, Outcome, Process, contents, lines, umbel};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// What is left on the disk after a command, and what the command said.
struct Trial {
    outcome: Outcome,
    disk: BTreeMap<String, Vec<u8>>,
}

/// Mounts a disk of 64 KiB on `full` for the time of one command, and copies what is on it in the end to `after`. The
/// mount exists for this process and its children alone, and ends with them, whatever happens.
const SCRIPT: &str = r#"
    mount -t tmpfs -o size=64k none full && cp filter full/filter || exit 99
    test "$FILLED" != yes || head -c 100000 /dev/zero > full/filler 2> /dev/null
    "$@"
    code=$?
    rm -f full/filler
    cp -a full/. after || exit 99
    exit $code
"#;

/// How to get a place for mounts of one's own: as root, or as whoever may become root there.
fn unshare() -> &'static str {
    let works = |how: &&&str| {
        let mount = "mount -t tmpfs none \"$0\"";
        let probe = Command::new("unshare").args([how, "sh", "-c", mount]).arg(std::env::temp_dir()).output();
        probe.is_ok_and(|output| output.status.success())
    };
    ["-m", "-rm"].iter().find(works).expect(
        "a full disk is tried on a small tmpfs: this needs `unshare` and `mount` of util-linux, and either root or a \
         system that allows user namespaces",
    )
}

/// Runs a command with a small disk on `full`, which has an intact filter on it.
fn attempt(folder: &Folder, filled: bool, arguments: &str) -> Trial {
    let after = folder.join("after");
    if after.exists() {
        fs::remove_dir_all(&after).unwrap();
    }
    fs::create_dir_all(&after).unwrap();
    fs::create_dir_all(folder.join("full")).unwrap();
    let program = umbel();
    let mut command = Command::new("unshare");
    command.args([unshare(), "sh", "-c", SCRIPT, "sh"]).arg(program.get_program());
    command.args(arguments.split_whitespace()).current_dir(folder.path());
    command
        .env("FILLED", if filled { "yes" } else { "no" })
        .env("TMPDIR", "full")
        .env_remove("RUST_BACKTRACE");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let outcome = Process::start(&mut command).finish();
    assert_ne!(outcome.code(), Some(99), "the small disk does not work: {outcome:?}");
    Trial { outcome, disk: contents(&after) }
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("lines", lines(0..1000));
    folder.umbel("build -n 1000 -o filter lines").quiet();
    folder
}

#[test]
fn a_full_disk_leaves_what_was_there_and_nothing_else() {
    let folder = folder();
    let filter = folder.read("filter");
    for (filled, arguments) in [
        // The disk fills while the filter is written.
        (false, "build -n 1e6 -o full/new lines"),
        (false, "build -n 1e6 -f -o full/filter lines"),
        // There is no room at all.
        (true, "build -o full/new lines"),
        (true, "build -f -o full/filter lines"),
        (true, "add full/filter lines"),
        (true, "meta full/filter name=value"),
        (true, "union filter filter -o full/new"),
        (true, "fold filter -o full/new"),
        (true, "convert filter --kind standard -o full/new"),
        (true, "key new full/new"),
    ] {
        println!("umbel {arguments}");
        let Trial { mut outcome, disk } = attempt(&folder, filled, arguments);
        let name = if arguments.contains("full/new") { "full/new" } else { "full/filter" };
        // Half a filter is more than full, which is worth a remark of its own.
        outcome.stderr =
            outcome.stderr.lines().filter(|line| !line.contains("its rate is")).collect::<String>() + "\n";
        outcome.refused(&[name, "No space left on device"]);
        assert_eq!(disk.keys().collect::<Vec<_>>(), ["filter"], "after {arguments}");
        assert!(disk["filter"] == filter, "`umbel {arguments}` has changed the filter");
    }
}

#[test]
fn digests_that_find_no_room_are_a_sentence_with_ways_out() {
    let folder = folder();
    // One more than is kept in memory; empty lines are keys, too.
    folder.write("many", "\n".repeat((8 << 20) + 1));
    let says = ["cannot keep digests in full", "TMPDIR", "-n", "No space left on device"];
    let Trial { outcome, disk } = attempt(&folder, false, "build -o new many");
    outcome.refused(&says);
    assert_eq!(disk.keys().collect::<Vec<_>>(), ["filter"]);

    let missing = Process::start(folder.command("build -o new many").env("TMPDIR", "nowhere")).finish();
    missing.refused(&["cannot keep digests in nowhere", "TMPDIR", "No such file"]);
    assert!(!folder.join("new").exists());

    // With -n none are kept.
    attempt(&folder, false, "build -n 10 -o new many").outcome.quiet();
    assert!(folder.join("new").is_file());
}

#[test]
fn a_full_disk_behind_standard_output_is_named() {
    let folder = folder();
    for arguments in [
        "check filter lines",
        "check -c filter lines",
        "uniq -q lines",
        "info filter",
        "info --json filter",
        "plan -n 1e6 -p 1%",
        "why filter 7",
        "compare filter filter",
        "build lines",
        "man",
        "completions bash",
    ] {
        println!("umbel {arguments}");
        let full = fs::OpenOptions::new().write(true).open(Path::new("/dev/full")).unwrap();
        let outcome = Process::start(folder.command(arguments).stdout(full)).finish();
        outcome.refused(&["cannot write to standard output", "No space left on device"]);
    }
    // Lines that nobody has seen are new again next time.
    let before = folder.read("filter");
    let full = fs::OpenOptions::new().write(true).open(Path::new("/dev/full")).unwrap();
    folder.write("more", lines(5000..5100));
    let outcome = Process::start(folder.command("add --new filter more").stdout(full)).finish();
    outcome.refused(&["cannot write to standard output", "No space left on device"]);
    assert!(folder.read("filter") == before);
}
