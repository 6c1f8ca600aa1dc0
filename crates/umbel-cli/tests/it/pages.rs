//! The README and the pages under `docs` are true: their sessions print what they show, their
//! commands exist, their links resolve, and the tests, messages, sizes and picture they refer to
//! are the real ones.

use crate::debian;
use crate::markdown::{self, blocks, cells};
use crate::shell::{Process, Shell};
use crate::words;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Pages that must have sessions. The guides to Redis and to the proxy need servers, so their
/// commands stand in `sh` blocks; `remote.rs` and `proxy.rs` run them against servers of their own.
const WITH_SESSIONS: [&str; 10] = [
    "README.md",
    "docs/guide/shell.md",
    "docs/guide/shards.md",
    "docs/guide/maps-and-counts.md",
    "docs/guide/documents.md",
    "docs/guide/foreign.md",
    "docs/guide/packets.md",
    "docs/guide/parquet.md",
    "docs/guide/lab.md",
    "docs/guide/choosing.md",
];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Adds every Markdown file below a folder, except build output and hidden folders.
fn collect(folder: &Path, pages: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            collect(&path, pages);
        } else if name.ends_with(".md") {
            pages.insert(path);
        }
    }
}

/// The README and every page under `docs`: name and text.
fn pages() -> Vec<(String, String)> {
    let mut paths = BTreeSet::from([root().join("README.md")]);
    collect(&root().join("docs"), &mut paths);
    let name = |path: &Path| path.strip_prefix(root()).expect("below the root").display().to_string();
    paths.iter().map(|path| (name(path), fs::read_to_string(path).expect("a page"))).collect()
}

/// A line of a block without the remark behind it.
fn without_remark(line: &str) -> &str {
    line.split("   #").next().unwrap_or(line).trim()
}

/// Runs a line in `sh`, with `umbel` on the path, and returns its output on both streams.
fn printed(shell: &Shell, line: &str) -> String {
    let mut command = shell.script(&format!("exec 2>&1\n{line}"));
    String::from_utf8_lossy(&Process::start(&mut command).finish().stdout).into_owned()
}

/// Copies the Parquet files of the guide into the folder `orders`.
pub fn copy_orders(shell: &Shell) {
    let orders = root().join("crates/umbel-parquet/tests/golden/orders");
    fs::create_dir(shell.path("orders")).expect("an empty folder");
    for file in fs::read_dir(orders).expect("the files of the guide to Parquet") {
        let file = file.expect("an entry");
        fs::copy(file.path(), shell.path("orders").join(file.file_name())).expect("a small file");
    }
}

/// Runs the sessions of a page in a fresh folder, compares their output with the page, and returns
/// the number of commands. A page is one story: its sessions share the folder.
fn play(name: &str, text: &str) -> usize {
    let sessions = blocks(text, "console");
    let fences = text.lines().filter(|line| line.trim_start().starts_with("```console")).count();
    assert_eq!(sessions.len(), fences, "{name}: an indented session would not be run");
    if sessions.is_empty() {
        return 0;
    }
    let shell = Shell::new();
    fs::copy(words::list("wamerican", "american-english"), shell.path("words")).expect("a word list");
    let capture = "usr/lib/python3/dist-packages/pathspider/tests/data/real.pcap";
    fs::copy(debian::unpacked("pathspider", capture), shell.path("real.pcap")).expect("a capture");
    copy_orders(&shell);
    let mut commands = 0;
    for session in sessions {
        let mut lines = session.into_iter().peekable();
        while let Some(line) = lines.next() {
            let command = line.strip_prefix("$ ");
            let command = command.unwrap_or_else(|| panic!("{name}: \"{line}\" is not a command"));
            let mut expected = String::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
                expected += line;
                expected.push('\n');
            }
            let command = without_remark(command);
            assert_eq!(printed(&shell, command), expected, "\n{name}\n$ {command}");
            commands += 1;
        }
    }
    commands
}

#[test]
fn the_sessions_of_every_page_print_what_the_page_shows() {
    let mut played = BTreeSet::new();
    for (name, text) in pages() {
        assert!(!text.contains("TODO"), "{name} is not finished");
        if play(&name, &text) > 0 {
            played.insert(name);
        }
    }
    for name in WITH_SESSIONS {
        assert!(played.contains(name), "{name}: no command was run");
    }
}

/// Runs the first command at the top of the README with the binary that was just built, and finds
/// the second, which runs these tests, in the script of the continuous integration.
#[test]
fn the_two_commands_at_the_top_of_the_readme_are_the_real_ones() {
    let text = read("README.md");
    let first = blocks(&text, "sh")[0].clone();
    let [main, tests] = first[..] else { panic!("two commands at the top: {first:?}") };
    let command = without_remark(main).replace("cargo run --release --locked --", "umbel");
    let shell = Shell::new();
    assert_eq!(printed(&shell, &command), "");
    assert!(shell.run(&["info", &shell.names(".")[0]]).ok().text().contains("1000000"));

    let tests = without_remark(tests);
    assert!(read(".ci/run").lines().any(|line| line == tests), "{tests} is what .ci/run runs");
}

/// Checks that a command of `umbel` exists and has the options used on a line.
fn has_options(words: &[&str]) -> bool {
    let mut arguments: Vec<&str> = words.iter().take(2).copied().collect();
    arguments.retain(|word| !word.starts_with('-'));
    arguments.push("--help");
    let help = Shell::new().run(&arguments).ok();
    let known = |option: &str| help.text().split([' ', ',', '\n', '[', '<']).any(|word| word == option);
    words.iter().filter(|word| word.starts_with('-') && word.len() > 1).all(|option| known(option))
}

/// The commands that need a server, a compiler or minutes: the files and options they name exist.
#[test]
fn the_other_commands_of_every_page_exist() {
    let module = read("crates/umbel-redis/src/commands.rs");
    let crates = root().join("crates");
    let example = |package: &str, name: &str| {
        let examples = crates.join(package).join("examples");
        examples.join(name).with_extension("rs").is_file() || examples.join(name).is_dir()
    };
    let mut found = 0;
    for (name, text) in pages() {
        // The two commands at the top of the README have a test of their own.
        let top = usize::from(name == "README.md");
        for line in blocks(&text, "sh").into_iter().skip(top).flatten() {
            let command = without_remark(line);
            let exists = match command.split_whitespace().collect::<Vec<_>>()[..] {
                [] => true,
                ["cargo", "run", "--release", "-p", "umbel-bench", ..] => {
                    root().join("bench/Cargo.toml").is_file()
                }
                ["cargo", "run", "--release", "--example", name, ..] => example("umbel", name),
                ["cargo", "run", "--release", "-p", package, "--example", name, ..] => example(package, name),
                ["cargo", "install", "--locked", "--path", path] => {
                    root().join(path).join("Cargo.toml").is_file()
                }
                ["cargo", "build", "--release", "--locked", "-p", package] => {
                    crates.join(package).join("Cargo.toml").is_file()
                }
                ["cargo", "doc", "--open"] => true,
                ["cargo", "test", "-p", package, "--test", "it", test] => {
                    let tests = fs::read_dir(crates.join(package).join("tests/it")).expect("the tests");
                    let paths = tests.map(|entry| entry.expect("an entry").path());
                    let mut files = paths.filter(|path| path.is_file());
                    files.any(|path| is_test(&fs::read_to_string(path).expect("a test"), test))
                }
                // The command before it builds the module that this one loads.
                ["redis-server", "--loadmodule", module, ..] => module == "target/release/libumbel_redis.so",
                ["redis-cli", command, ..] => module.contains(&format!("c\"{command}\"")),
                ["umbel", ref words @ ..] | ["zcat", _, "|", "umbel", ref words @ ..] => has_options(words),
                ["curl", ..] | ["export", ..] | ["kill", "%1"] => true,
                [script, ..] => script.contains('/') && root().join(script).is_file(),
            };
            assert!(exists, "{name}: {command}");
            found += 1;
        }
    }
    assert!(found > 20, "only {found} commands were found");
}

/// Commands of the module, by their full names, in text and tables.
#[test]
fn the_commands_of_the_redis_guide_are_those_of_the_module() {
    let module = read("crates/umbel-redis/src/commands.rs");
    let commands: BTreeSet<&str> =
        module.split("c\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let text = read("docs/guide/redis.md");
    let (mut named, mut family) = (BTreeSet::new(), String::new());
    for span in markdown::code_spans(&text) {
        let word = span.split(' ').next().unwrap_or(span);
        let shouted = word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'.');
        match word.split_once('.') {
            Some((prefix, name)) if shouted && !name.is_empty() => {
                family = prefix.to_owned();
                named.insert(word.to_owned());
            }
            // In a table, `ADD` behind `BF.RESERVE` is `BF.ADD`.
            _ if shouted && commands.contains(format!("{family}.{word}").as_str()) => {
                named.insert(format!("{family}.{word}"));
            }
            _ => {}
        }
    }
    for name in &named {
        assert!(commands.contains(name.as_str()), "{name} is not a command of the module");
    }
    for command in commands.iter().filter(|command| command.contains('.')) {
        assert!(named.contains(*command), "the guide does not name {command}");
    }
}

/// The table of messages quotes messages word for word that other tests provoke and expect.
#[test]
fn every_message_of_the_page_is_expected_by_a_test() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let tests: String = fs::read_dir(folder)
        .expect("the tests")
        .map(|test| test.expect("a test").path())
        .filter(|path| path.extension().is_some_and(|end| end == "rs") && !path.ends_with("pages.rs"))
        .map(|path| fs::read_to_string(path).expect("a test"))
        .collect();
    let text = read("docs/messages.md");
    let mut quoted = 0;
    for row in markdown::tables(&text).into_iter().filter(|table| cells(table[0])[0] == "message").flatten() {
        for fragment in markdown::code_spans(cells(row)[0]) {
            assert!(tests.contains(fragment), "no test expects \"{fragment}\"");
            quoted += 1;
        }
    }
    assert!(quoted > 20, "only {quoted} messages are quoted");
}

/// The bits per key that a kind needs for ten million keys, in every table of kinds.
#[test]
fn the_tables_of_kinds_have_the_bits_that_plan_finds() {
    for name in ["README.md", "docs/guide/choosing.md"] {
        let text = read(name);
        let tables = markdown::tables(&text);
        let table = tables.iter().find(|table| cells(table[0])[1].starts_with("bits per key at"));
        let table = table.unwrap_or_else(|| panic!("{name} has a table of kinds"));
        let rates: Vec<&str> =
            cells(table[0])[1].trim_start_matches("bits per key at ").split(" / ").collect();
        let rates: Vec<String> = rates.iter().map(|rate| rate.replace(' ', "")).collect();
        let mut kinds = 0;
        for row in table[2..].iter().map(|row| cells(row)).filter(|row| !row[1].starts_with("as ")) {
            let kind = row[0].trim_matches('`');
            let bits = row[1].split(';').next().expect("numbers").split(" / ");
            let planned = rates.iter().map(|rate| {
                let args = ["plan", "--json", "-n", "1e7", "-p", rate, "--kind", kind];
                let plan = Shell::new().run(&args).ok().json();
                format!("{:.1}", plan["bits_per_key"].as_f64().expect("a number"))
            });
            let planned: Vec<String> = planned.collect();
            assert!(
                bits.eq(planned.iter().map(String::as_str)),
                "{name}: {row:?}, but plan says {planned:?}"
            );
            kinds += 1;
        }
        assert_eq!(kinds, 12, "{name}: every kind of set except those that are as another");
    }
}

#[test]
fn the_picture_of_the_readme_is_what_the_command_draws() {
    let shell = Shell::new();
    shell.run("lab trace two-keys --svg two-keys.svg").ok();
    let drawn = String::from_utf8(shell.read("two-keys.svg")).expect("text");
    let picture = read("docs/two-keys.svg");
    assert!(drawn == picture, "draw it again: umbel lab trace two-keys -f --svg docs/two-keys.svg");
}

/// Every row of the tables of promises names tests and then the file that has them.
#[test]
fn every_test_named_by_the_promises_exists() {
    let text = read("docs/promises.md");
    let mut found = 0;
    for table in markdown::tables(&text) {
        assert_eq!(cells(table[0])[1], "kept by", "a table of promises");
        for row in &table[2..] {
            let kept_by = cells(row)[1];
            let mut named = 0;
            // Each part ends with the link to a file: "`one`, `two` in [file.rs](path)".
            for part in kept_by.split_inclusive(')') {
                let Some(link) = markdown::links(part).into_iter().next() else { continue };
                let file = read(&format!("docs/{link}"));
                for test in markdown::code_spans(part) {
                    assert!(is_test(&file, test), "{link} has no test {test}");
                    named += 1;
                }
            }
            assert!(named > 0, "no test keeps this promise: {row}");
            found += named;
        }
    }
    assert!(found > 40, "only {found} tests are named");
}

/// Whether a source file has a test function of this name.
fn is_test(source: &str, name: &str) -> bool {
    source.split_once(&format!("fn {name}(")).is_some_and(|(before, _)| {
        let attributes = before.lines().rev().map(str::trim).skip_while(|line| line.is_empty());
        attributes.take_while(|line| line.starts_with(['#', '/'])).any(|line| line == "#[test]")
    })
}

/// Every section with a table of figures has the command, the machine and the date.
#[test]
fn every_table_of_the_benchmarks_has_its_command_machine_and_date() {
    let text = read("docs/benchmarks.md");
    let mut tables = 0;
    for section in text.split("\n## ").skip(1).filter(|section| !markdown::tables(section).is_empty()) {
        let title = section.lines().next().unwrap_or_default();
        assert!(!blocks(section, "sh").is_empty(), "{title}: no command");
        let measured = section.lines().find(|line| line.starts_with("Measured on 20"));
        let measured = measured.unwrap_or_else(|| panic!("{title}: no date"));
        assert!(measured.contains("-core "), "{title}: no machine in \"{measured}\"");
        tables += 1;
    }
    assert!(tables > 3, "only {tables} sections have tables");
}

/// Follows the relative links of a page and returns those that lead nowhere.
fn dangling(page: &Path, text: &str) -> Vec<String> {
    let root = root().canonicalize().expect("the root");
    let resolves = |link: &str| {
        let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = if file.is_empty() { page.to_owned() } else { page.with_file_name("").join(file) };
        let Ok(target) = target.canonicalize() else { return false };
        let anchored = || {
            let text =
                if file.is_empty() { text.to_owned() } else { fs::read_to_string(&target).expect("a page") };
            markdown::anchors(&text).contains(anchor)
        };
        target.starts_with(&root) && (anchor.is_empty() || anchored())
    };
    let links = markdown::links(text).into_iter().filter(|link| !markdown::is_external(link));
    links.filter(|link| !resolves(link)).map(|link| format!("{}: {link}", page.display())).collect()
}

#[test]
fn every_relative_link_and_anchor_of_every_page_resolves() {
    let mut paths = BTreeSet::new();
    collect(root(), &mut paths);
    assert!(paths.len() > 15, "only {} pages were found", paths.len());
    let dangling: Vec<String> =
        paths.iter().flat_map(|path| dangling(path, &fs::read_to_string(path).expect("a page"))).collect();
    assert!(dangling.is_empty(), "{}", dangling.join("\n"));
}

#[test]
fn links_that_lead_nowhere_are_found() {
    let page = root().join("README.md");
    let good = "# A title\n[a](#a-title) [b](LICENSE-MIT) ![c](docs/lab.svg \"a title\") `[d](nowhere)`\n";
    assert_eq!(dangling(&page, good), [""; 0]);
    let bad = "[a](#a-title) [b](NOWHERE.md) <img src=\"docs/nowhere.svg\">\n\n[c]: docs/format.md#nowhere\n";
    assert_eq!(dangling(&page, bad).len(), 4);
}
