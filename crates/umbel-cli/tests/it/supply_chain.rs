//! The dependencies: pinned, from one registry, and none that `deny.toml` bans.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the text between the quotes of each line with this key.
fn values<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let value = |line: &'a str| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"');
    text.lines().filter_map(value).collect()
}

/// Where cargo-deny is not installed, this is the check of bans and sources.
#[test]
fn dependencies_come_from_the_registry_and_none_is_banned() {
    let rules = read("deny.toml");
    let banned: BTreeSet<&str> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("{ name = \"")?.strip_suffix("\" },"))
        .collect();
    assert!(banned.contains("bincode"), "{banned:?}");
    for lock in ["Cargo.lock", "fuzz/Cargo.lock"] {
        let text = read(lock);
        let names = values(&text, "name");
        assert!(names.contains(&"umbel"), "{lock}");
        let found: Vec<&&str> = names.iter().filter(|name| banned.contains(**name)).collect();
        assert!(found.is_empty(), "{lock}: {found:?} must not be used");
        let sources: BTreeSet<&str> = values(&text, "source").into_iter().collect();
        assert_eq!(sources.len(), 1, "{lock}: {sources:?}");
        assert!(sources.iter().all(|source| source.starts_with("registry+")), "{lock}: {sources:?}");
    }
}

/// Without `--locked`, a command may build other versions than those that were tested.
#[test]
fn every_build_test_and_installation_uses_the_lock_file() {
    let mut found = 0;
    for page in ["README.md", "CONTRIBUTING.md", "docs/guide/redis.md", ".ci/run"] {
        for line in read(page).lines() {
            let is_given = ["cargo build ", "cargo install ", "cargo test --", "cargo clippy --"]
                .iter()
                .any(|command| line.trim_start().starts_with(command));
            if is_given {
                assert!(line.contains("--locked"), "{page}: {line}");
                found += 1;
            }
        }
    }
    assert!(found >= 9, "only {found} commands were found");
}
