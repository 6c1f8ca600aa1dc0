//! What a review of `umbel grep` found: differences from grep that lose lines or fill disks.

mod shell;

use shell::{Process, Shell, gzip};
use std::fs::{self, File, OpenOptions};

/// Runs with standard output appended to a file, as `>>` of a shell.
fn append(shell: &Shell, args: &str, name: &str) -> shell::Answer {
    let to: File = OpenOptions::new().append(true).create(true).open(shell.path(name)).unwrap();
    Process::start(shell.command(args).stdout(to)).finish()
}

#[test]
fn its_own_output_is_not_searched() {
    // `grep -rF foo logs >> logs/out` says "input file is also the output" and goes on, with exit code 2. A file of more
    // than 16 MiB would be read and written for ever; this one is shorter, so that it ends.
    let shell = Shell::new();
    fs::create_dir(shell.path("logs")).unwrap();
    shell.write("logs/a", "foo\n");
    shell.write("logs/out", "old foo\n");
    let answer = append(&shell, "grep --no-index foo logs", "logs/out");
    assert_eq!(answer.code, Some(2), "{}", answer.stderr);
    assert!(answer.stderr.contains("logs/out"), "{}", answer.stderr);
    assert_eq!(shell.read("logs/out"), b"old foo\nlogs/a:foo\n");
}

#[test]
fn a_file_that_is_no_index_beside_a_directory_does_not_stop_the_search() {
    let shell = Shell::new();
    fs::create_dir(shell.path("logs")).unwrap();
    shell.write("logs/a", "foo\n");
    shell.write("logs.idx", "somebody else's\n");
    let answer = shell.run("grep -w foo logs");
    assert_eq!(String::from_utf8_lossy(&answer.stdout), "logs/a:foo\n", "{}", answer.stderr);
    assert!(answer.stderr.contains("logs.idx"), "{}", answer.stderr);
}

#[test]
fn an_index_that_does_not_cover_the_place_is_named() {
    let shell = Shell::new();
    fs::create_dir_all(shell.path("logs/deep")).unwrap();
    shell.write("logs/deep/a", "foo\n");
    shell.run("index build logs/deep -o logs.idx").ok();
    let answer = shell.run("grep -w foo logs");
    assert!(answer.stderr.contains("logs.idx"), "everything is read, and nothing says so");
}

#[test]
fn lines_before_the_damage_of_a_compressed_file_are_printed() {
    let shell = Shell::new();
    fs::create_dir(shell.path("logs")).unwrap();
    shell.write("logs/padded.gz", [&gzip("foo\n")[..], &[0; 512]].concat());
    let answer = shell.run("grep --no-index foo logs");
    assert_eq!(String::from_utf8_lossy(&answer.stdout), "logs/padded.gz:foo\n", "{}", answer.stderr);
    assert_eq!(answer.code, Some(2));
}

#[test]
fn a_root_that_is_not_there_does_not_empty_an_index() {
    let shell = Shell::new();
    fs::create_dir(shell.path("logs")).unwrap();
    shell.write("logs/a", "foo\n");
    shell.run("index build logs").ok();
    let before = shell.read("logs.idx");
    // A disk that is not mounted, a name with a mistake in it.
    fs::rename(shell.path("logs"), shell.path("elsewhere")).unwrap();
    assert_eq!(shell.run("index update logs.idx").code, Some(2));
    assert_eq!(shell.read("logs.idx"), before);
    assert_eq!(shell.run("index build -f lgos -o logs.idx").code, Some(2));
    assert_eq!(shell.read("logs.idx"), before);
}
