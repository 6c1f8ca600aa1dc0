//! Every command in the README is run, and prints what the README says.

use crate::debian;
use crate::shell::{Process, Shell, UMBEL};
use crate::words;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).expect("README.md")
}

/// The lines of all blocks of code in this language, block by block.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<Vec<&'a str>> {
    let fence = format!("```{language}");
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while lines.by_ref().any(|line| line == fence) {
        blocks.push(lines.by_ref().take_while(|line| *line != "```").collect());
    }
    blocks
}

/// Runs a command as a real shell would, with `umbel` on the path; what it prints, on either stream.
fn printed(shell: &Shell, line: &str) -> String {
    let binary = Path::new(UMBEL).parent().expect("a folder");
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = shell.program("sh");
    command.args(["-c", &format!("exec 2>&1\n{line}")]).env("PATH", path).env("LC_ALL", "C.UTF-8");
    String::from_utf8_lossy(&Process::start(&mut command).finish().stdout).into_owned()
}

/// Sessions are one story: what one makes, the next may use.
#[test]
fn the_sessions_of_the_readme_print_what_it_says() {
    let shell = Shell::new();
    let text = readme();
    // Where the story needs a word list, it is the one of the package that the README names.
    let words = words::list("wamerican", "american-english");
    std::fs::copy(words, shell.path("words")).expect("a word list");
    let capture = "usr/lib/python3/dist-packages/pathspider/tests/data/real.pcap";
    std::fs::copy(debian::unpacked("pathspider", capture), shell.path("real.pcap")).expect("a capture");
    let mut commands = 0;
    for block in blocks(&text, "console") {
        let mut lines = block.into_iter().peekable();
        while let Some(line) = lines.next() {
            let command = line.strip_prefix("$ ").unwrap_or_else(|| panic!("a command was to come: {line}"));
            let mut expected = String::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
                expected += line;
                expected.push('\n');
            }
            // Blank lines and remarks between commands are for the eye.
            let command = command.split("   #").next().unwrap_or(command).trim_end();
            assert_eq!(printed(&shell, command), expected, "\n$ {command}");
            commands += 1;
        }
    }
    assert!(commands >= 10, "only {commands} commands were found");
    assert!(!text.contains("BENCH") && !text.contains("TODO"), "a place that was to be filled in");
}

/// The first command of the README, with the binary that was just built, and the second, which is what is running.
#[test]
fn the_two_commands_at_the_top_of_the_readme_are_the_real_ones() {
    let text = readme();
    let first = blocks(&text, "sh")[0].clone();
    let [main, tests] = first[..] else { panic!("two commands at the top: {first:?}") };
    let command = main.split("   #").next().expect("a command").replace("cargo run --release --", "umbel");
    let shell = Shell::new();
    assert_eq!(printed(&shell, &command), "");
    assert!(shell.run(&["info", &shell.names(".")[0]]).ok().text().contains("1000000"));

    let tests = tests.split("   #").next().expect("a command").trim();
    let ci = std::fs::read_to_string(root().join(".ci/run")).expect(".ci/run");
    assert!(ci.lines().any(|line| line == tests), "{tests} is what .ci/run runs");
}

/// The rest of the README's commands: benchmarks, on little data, and the installation, which only has to exist.
#[test]
fn the_other_commands_of_the_readme_exist() {
    let text = readme();
    for command in blocks(&text, "sh").into_iter().skip(1).flatten() {
        let command = command.split("   #").next().expect("a command").trim();
        let exists = match command.split_whitespace().collect::<Vec<_>>()[..] {
            ["cargo", "run", "--release", "-p", "umbel-bench", ..] => {
                root().join("bench/Cargo.toml").is_file()
            }
            ["cargo", "run", "--release", "--example", name, ..] => {
                root().join("crates/umbel/examples").join(name).with_extension("rs").is_file()
            }
            ["cargo", "run", "--release", "-p", package, "--example", name, ..] => {
                root().join("crates").join(package).join("examples").join(name).with_extension("rs").is_file()
            }
            ["cargo", "install", "--path", path] => root().join(path).join("Cargo.toml").is_file(),
            ["cargo", "build", "--release", "-p", package] => {
                root().join("crates").join(package).join("Cargo.toml").is_file()
            }
            // What it loads is what the command before it has built; `remote.rs` does the same with servers of its own.
            ["redis-server", "--loadmodule", module, ..] => module == "target/release/libumbel_redis.so",
            ["redis-cli", "BF.ADD", _, _] => true,
            ["umbel", name, ..] | ["zcat", _, "|", "umbel", name, ..] => {
                Shell::new().run(&[name, "--help"]).code == Some(0)
            }
            [script, ..] if !script.starts_with("cargo") => root().join(script).is_file(),
            _ => false,
        };
        assert!(exists, "{command}");
    }
}

/// What the README's table of messages quotes is what other tests provoke and expect, word for word.
#[test]
fn every_message_of_the_readme_is_expected_by_a_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let tests: String = std::fs::read_dir(folder)
        .expect("the tests")
        .map(|test| test.expect("a test").path())
        .filter(|path| path.extension().is_some_and(|end| end == "rs") && !path.ends_with("readme.rs"))
        .map(|path| std::fs::read_to_string(path).expect("a test"))
        .collect();
    let text = readme();
    let (_, table) = text.split_once("| message | meaning, and what to do |").expect("the table of messages");
    let mut quoted = 0;
    for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
        let message = row.split('|').nth(1).expect("a first column");
        for fragment in message.split('`').skip(1).step_by(2) {
            assert!(tests.contains(fragment), "no test expects \"{fragment}\"");
            quoted += 1;
        }
    }
    assert!(quoted > 20, "only {quoted} messages are quoted");
}

/// What a kind needs for ten million keys, by the table of kinds.
#[test]
fn the_table_of_kinds_has_the_bits_that_plan_finds() {
    let text = readme();
    let rows: Vec<(&str, &str)> = text
        .lines()
        .skip_while(|line| *line != "## Which kind")
        .take_while(|line| !line.starts_with("Maps and multisets"))
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .filter(|(_, rest)| !rest.starts_with("like"))
        .collect();
    assert_eq!(rows.len(), 12, "every kind of set but those that are like another");
    for (kind, rest) in rows {
        let bits = rest.split([' ', ';', ',', '|']).filter(|word| word.parse::<f64>().is_ok()).take(3);
        let planned = ["1%", "0.1%", "0.01%"].map(|rate| {
            let plan =
                Shell::new().run(&["plan", "--json", "-n", "1e7", "-p", rate, "--kind", kind]).ok().json();
            format!("{:.1}", plan["bits_per_key"].as_f64().expect("a number"))
        });
        assert!(bits.eq(planned.iter().map(String::as_str)), "{kind}: {rest}, but {planned:?} is planned");
    }
}
