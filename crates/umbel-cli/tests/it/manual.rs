//! Help, completions and manual pages cover every command.

use crate::shell::Shell;

/// Every command.
pub const COMMANDS: [&str; 39] = [
    "build",
    "proxy",
    "push",
    "pull",
    "shard",
    "add",
    "check",
    "why",
    "uniq",
    "remove",
    "map",
    "table",
    "count",
    "distinct",
    "top",
    "info",
    "plan",
    "explore",
    "union",
    "intersect",
    "compare",
    "convert",
    "fold",
    "resize",
    "meta",
    "key",
    "index",
    "grep",
    "parquet",
    "password",
    "url",
    "vault",
    "spell",
    "hyphenate",
    "similar",
    "net",
    "lab",
    "completions",
    "man",
];

#[test]
fn every_command_has_help() {
    let shell = Shell::new();
    let help = shell.run("--help").ok();
    let mut listed: Vec<&str> = help
        .text()
        .lines()
        .filter(|line| line.starts_with("  ") && !line.trim_start().starts_with('-'))
        .filter_map(|line| line.split_ascii_whitespace().next())
        .collect();
    assert_eq!(listed[0], "build", "the main job stays first");
    let mut known = COMMANDS.to_vec();
    listed.sort_unstable();
    known.sort_unstable();
    assert_eq!(listed, known, "every command is in a group, and these tests know every command");
    assert!(help.text().lines().count() <= 60, "it fits a screen");
    assert!(help.text().lines().all(|line| line.len() < 80), "and a narrow terminal");
    for command in COMMANDS {
        for help in [shell.run(&[command, "--help"]).ok(), shell.run(&["help", command]).ok()] {
            assert!(
                help.text().len() > 80 && help.text().contains(&format!("Usage: umbel {command}")),
                "{command}"
            );
        }
        assert!(shell.run(&[command, "-h"]).ok().text().len() > 80);
    }
    for command in [
        "key new",
        "map build",
        "map get",
        "map set",
        "table put",
        "table get",
        "table scan",
        "table delete",
        "table merge",
        "table stats",
        "count build",
        "count add",
        "count get",
        "count ask",
        "count answer",
        "shard create",
        "shard add",
        "shard check",
        "shard info",
        "shard delete",
        "index build",
        "index update",
        "index which",
        "parquet which",
        "parquet info",
        "index info",
        "password build",
        "password add",
        "password check",
        "password range",
        "url build",
        "url check",
        "vault init",
        "vault add",
        "vault search",
        "vault list",
        "vault get",
        "vault remove",
        "vault check",
        "vault info",
        "vault passphrase",
        "vault adopt",
        "vault copy",
        "parquet which",
        "parquet info",
        "parquet index",
        "parquet add-filter",
        "net flows",
        "net scan",
        "net block",
        "net simulate",
        "net simulate loops",
        "net simulate routing",
        "net simulate header",
        "net trace",
        "net trace record",
        "net trace ask",
        "net trace info",
        "lab list",
        "lab run",
        "lab trace",
        "lab words",
        "lab fpr",
    ] {
        let help = shell.run(&format!("{command} --help")).ok();
        assert!(
            help.text().len() > 80 && help.text().contains(&format!("Usage: umbel {command}")),
            "{command}"
        );
    }
    let bare = shell.run("");
    assert!(bare.code == Some(2) && bare.stderr.contains("Usage: umbel <COMMAND>"), "{bare:?}");
    assert_eq!(shell.run("--version").ok().text(), concat!("umbel ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn shells_can_complete_every_command_and_its_options() {
    let shell = Shell::new();
    for name in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = shell.run(&["completions", name]).ok();
        for word in COMMANDS.into_iter().chain([
            "print-field",
            "max-bytes",
            "containment",
            "line-buffered",
            "mutable",
            "groups",
        ]) {
            assert!(script.text().contains(word), "{name} does not know {word}");
        }
    }
    shell.run("completions csh").refused(&["bash"]);
}

#[test]
fn every_command_has_a_manual_page() {
    let shell = Shell::new();
    shell.run("man --dir pages/man1").ok();
    let main = shell.run("man").ok();
    assert_eq!(main.stdout, shell.read("pages/man1/umbel.1"));
    for command in COMMANDS {
        assert!(main.text().contains(&format!("umbel\\-{command}(1)")), "{command}");
        let page = shell.run(&["man", command]).ok();
        assert!(page.text().starts_with(".ie") && page.text().contains(".SH SYNOPSIS"), "{command}");
        assert!(page.text().contains(".SH EXAMPLES\n.nf\n"), "{command}");
        assert!(
            page.text().contains(&format!("umbel {command}"))
                || page.text().contains(&format!("umbel\\-{command}"))
        );
        assert_eq!(page.stdout, shell.read(&format!("pages/man1/umbel-{command}.1")), "{command}");
    }
    for (command, page) in [("map build", "map-build"), ("map set", "map-set"), ("count get", "count-get")] {
        let shown = shell.run(&format!("man {command}")).ok();
        assert_eq!(shown.stdout, shell.read(&format!("pages/man1/umbel-{page}.1")), "{command}");
    }
    shell.run("man nothing").refused(&["there is no command \"nothing\""]);
}
