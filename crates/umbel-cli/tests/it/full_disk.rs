//! A full disk causes an error message: existing files stay, and unfinished ones are removed.

use crate::shell::{Answer, Process, Shell, UMBEL, Words, lines};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// The files on the disk after a command, and the output of the command.
struct Trial {
    answer: Answer,
    disk: BTreeMap<String, Vec<u8>>,
}

/// Mounts a disk of 64 KiB on `full` for the duration of one command, and then copies its files to
/// `after`. The mount exists only for this process and its children, and ends with them.
const SCRIPT: &str = r#"
    mount -t tmpfs -o size=64k none full && cp filter full/filter || exit 99
    test "$FILLED" != yes || head -c 100000 /dev/zero > full/filler 2> /dev/null
    "$@"
    code=$?
    rm -f full/filler
    cp -a full/. after || exit 99
    exit $code
"#;

/// Returns the command that allows mounts of our own: as root, or with a user namespace.
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

/// Runs a command with a small disk on `full` that holds an intact filter.
fn attempt(shell: &Shell, filled: bool, arguments: &str) -> Trial {
    let after = shell.path("after");
    if after.exists() {
        fs::remove_dir_all(&after).unwrap();
    }
    fs::create_dir_all(&after).unwrap();
    fs::create_dir_all(shell.path("full")).unwrap();
    let mut command = shell.program("unshare");
    command.args([unshare(), "sh", "-c", SCRIPT, "sh", UMBEL]).args(arguments.words());
    command.env("FILLED", if filled { "yes" } else { "no" }).env("TMPDIR", "full");
    let answer = Process::start(&mut command).finish();
    assert_ne!(answer.code, Some(99), "the small disk does not work: {answer:?}");
    Trial { answer, disk: shell.contents("after") }
}

fn prepared() -> Shell {
    let shell = Shell::new();
    shell.write("lines", lines(1, 0..1000));
    shell.run("build -n 1000 -o filter lines").ok();
    shell
}

#[test]
fn a_full_disk_leaves_only_the_existing_files() {
    let shell = prepared();
    let filter = shell.read("filter");
    for (filled, arguments) in [
        // The disk becomes full while the filter is written.
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
        let Trial { mut answer, disk } = attempt(&shell, filled, arguments);
        let name = if arguments.contains("full/new") { "full/new" } else { "full/filter" };
        // A filter of half the size is overfull, which causes a warning of its own.
        answer.stderr =
            answer.stderr.lines().filter(|line| !line.contains("its rate is")).collect::<String>() + "\n";
        answer.refused(&[name, "No space left on device"]);
        assert_eq!(disk.keys().collect::<Vec<_>>(), ["filter"], "after {arguments}");
        assert!(disk["filter"] == filter, "`umbel {arguments}` has changed the filter");
    }
}

#[test]
fn digests_without_disk_space_cause_an_error_with_remedies() {
    let shell = prepared();
    // One digest more than is held in memory, by one thread, which reads a file only once; empty
    // lines are keys, too.
    shell.write("many", "\n".repeat((8 << 20) + 1));
    let says = ["cannot keep digests in full", "TMPDIR", "-n", "No space left on device"];
    let Trial { answer, disk } = attempt(&shell, false, "build -j 1 -o new many");
    answer.refused(&says);
    assert_eq!(disk.keys().collect::<Vec<_>>(), ["filter"]);

    let missing = Process::start(shell.command("build -j 1 -o new many").env("TMPDIR", "nowhere")).finish();
    missing.refused(&["cannot keep digests in nowhere", "TMPDIR", "No such file"]);
    assert!(!shell.path("new").exists());

    // With -n, no digests are stored.
    attempt(&shell, false, "build -n 10 -o new many").answer.ok();
    assert!(shell.path("new").is_file());
}

#[test]
fn a_full_disk_behind_standard_output_is_reported() {
    let shell = prepared();
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
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
        let answer = Process::start(shell.command(arguments).stdout(full())).finish();
        answer.refused(&["cannot write to standard output", "No space left on device"]);
    }
    // Lines that were not printed are new again next time.
    let before = shell.read("filter");
    shell.write("more", lines(1, 5000..5100));
    let answer = Process::start(shell.command("add --new filter more").stdout(full())).finish();
    answer.refused(&["cannot write to standard output", "No space left on device"]);
    assert!(shell.read("filter") == before);
}
