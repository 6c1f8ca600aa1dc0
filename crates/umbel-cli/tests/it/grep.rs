//! `umbel grep` prints the same lines as grep, and reads little.

use crate::shell::{Answer, Process, Shell, gzip, mix};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::symlink;

/// Returns a word of an invented language: few words are common, most are rare.
fn word(number: u64) -> String {
    format!("w{:016x}", mix(number))[..(3 + number % 9) as usize].to_string()
}

/// Creates a directory of logs: plain, compressed, nested, in upper and lower case.
fn logs(shell: &Shell, files: u64) {
    fs::create_dir_all(shell.path("logs/deep/er")).unwrap();
    for file in 0..files {
        let mut text = Vec::new();
        for line in 0..60 {
            for place in 0..10 {
                let random = mix(file << 32 | line << 8 | place);
                let common = !random.is_multiple_of(4);
                let mut word = word(if common { random >> 8 & 63 } else { 1000 + (random >> 8) % 5000 });
                if random >> 40 & 7 == 0 {
                    word = word.to_uppercase();
                }
                text.extend_from_slice(word.as_bytes());
                text.push(b" :/-._ "[(random >> 50) as usize % 7]);
            }
            text.push(b'\n');
        }
        let folder = ["logs", "logs/deep", "logs/deep/er"][file as usize % 3];
        match file % 5 {
            0 => shell.write(&format!("{folder}/{file}.log.gz"), gzip(&text)),
            1 => shell.write(&format!("{folder}/{file}.log.zst"), zstd::encode_all(&text[..], 1).unwrap()),
            _ => shell.write(&format!("{folder}/{file}.log"), &text),
        }
    }
}

/// Copies the directory decompressed, under the same name, for grep.
fn plain(from: &Shell, to: &Shell, folder: &str) {
    fs::create_dir_all(to.path(folder)).unwrap();
    for entry in fs::read_dir(from.path(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            plain(from, to, &name);
            continue;
        }
        let bytes = from.read(&name);
        let text = match &name.rsplit('.').next() {
            Some("zst") => zstd::decode_all(&bytes[..]).unwrap(),
            Some("gz") => {
                let mut text = Vec::new();
                std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut text).unwrap();
                text
            }
            _ => bytes,
        };
        to.write(&name, text);
    }
}

fn grep(shell: &Shell, language: &str, args: &[&str]) -> Answer {
    let mut command = shell.program("grep");
    command.env("LC_ALL", language).args(["-rF"]).args(args);
    Process::start(&mut command).finish()
}

fn umbel(shell: &Shell, language: &str, args: &[&str]) -> Answer {
    Process::start(shell.command(&[&["grep"], args].concat()).env("LC_ALL", language)).finish()
}

fn sorted(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    lines
}

#[test]
fn the_output_is_that_of_grep() {
    let (shell, oracle) = (Shell::new(), Shell::new());
    logs(&shell, 90);
    plain(&shell, &oracle, "logs");
    for build in [
        &["index", "build", "logs"][..],
        &["index", "build", "-f", "logs", "--substrings", "--block", "1KiB"],
    ] {
        shell.run(build).ok();
        for number in 0..60 {
            let mut text = word(if number % 2 == 0 { number } else { 1000 + 83 * number });
            match number % 5 {
                0 => text.insert(0, ' '),
                1 => text = text[1..].to_string(),
                2 => text.push('z'),
                3 => text = format!("{text}:{}", word(number)),
                _ => {}
            }
            let options: &[&[&str]] = &[
                &["-w"],
                &[],
                &["-i"],
                &["-wi"],
                &["-n", "-w"],
                &["-c"],
                &["-l"],
                &["-w", "-m", "1"],
                &["-Hn"],
            ];
            let args = [options[number as usize % options.len()], &["-e"]].concat();
            let language = ["C.UTF-8", "C"][number as usize / 3 % 2];
            let theirs = grep(&oracle, language, &[&args[..], &[&text, "logs"]].concat());
            let ours = umbel(&shell, language, &[&args[..args.len() - 1], &["--", &text, "logs"]].concat());
            assert_eq!(ours.code, theirs.code, "{args:?} {text:?}: {}", ours.stderr);
            assert!(sorted(&ours.stdout) == sorted(&theirs.stdout), "{args:?} {text:?}");
        }
    }
}

#[test]
fn the_locale_determines_which_characters_are_letters() {
    let shell = Shell::new();
    fs::create_dir(shell.path("logs")).unwrap();
    shell.write("logs/a", "un écran — noir\nÜBER über\ncran\n");
    shell.write("logs/b", "naïve\n");
    shell.run("index build logs").ok();
    for language in ["C.UTF-8", "C", ""] {
        for text in ["cran", "écran", "ve", "na", "ber", "noir", "über", "—", "naïve"] {
            for options in [&["-w"][..], &["-wi"], &["-i"], &[]] {
                let theirs = grep(&shell, language, &[options, &["-e", text, "logs"]].concat());
                let ours = umbel(&shell, language, &[options, &["--", text, "logs"]].concat());
                assert_eq!(
                    (String::from_utf8_lossy(&ours.stdout), ours.code),
                    (String::from_utf8_lossy(&theirs.stdout), theirs.code),
                    "{language:?} {options:?} {text:?}"
                );
            }
        }
    }
}

#[test]
fn a_rare_word_needs_few_reads() {
    let shell = Shell::new();
    logs(&shell, 400);
    shell.write("logs/deep/one.log", "first\nthe needle is here\n");
    shell.run("index build logs").ok();
    let found = shell.run("grep --stats -nw needle logs").code(0);
    assert_eq!(found.text(), "logs/deep/one.log:2:the needle is here\n");
    let words: Vec<&str> = found.stderr.split_ascii_whitespace().collect();
    let (read, all): (f64, f64) = (words[1].parse().unwrap(), words[3].parse().unwrap());
    assert!(all == 401.0 && read / all <= 0.05, "{}", found.stderr);
    let none = shell.run("grep --stats -w nowhere logs").code(1);
    assert!(none.text().is_empty() && none.stderr.starts_with("read "), "{none:?}");
}

#[test]
fn a_search_that_reads_everything_is_reported() {
    let shell = Shell::new();
    fs::create_dir(shell.path("logs")).unwrap();
    shell.write("logs/a", "disk full\n");
    let found = shell.run("grep full logs").code(0);
    assert_eq!(found.text(), "logs/a:disk full\n");
    assert!(
        found.stderr.contains("logs has no index") && found.stderr.contains("umbel index build logs"),
        "{}",
        found.stderr
    );
    shell.run("index build logs").ok();
    let found = shell.run("grep full logs").code(0);
    assert_eq!(found.text(), "logs/a:disk full\n");
    assert!(
        found.stderr.contains("cannot rule out files") && found.stderr.contains("-w"),
        "{}",
        found.stderr
    );
    for args in ["grep -w full logs", "grep --no-index full logs", "grep -w full --index logs.idx logs"] {
        assert_eq!(shell.run(args).ok().text(), "logs/a:disk full\n");
    }
    shell.write("other", "full\n");
    shell.run("grep -w full --index logs.idx other").refused(&["logs.idx is not an index of other"]);
    // The index of a directory also serves its subdirectories and files.
    fs::create_dir(shell.path("logs/deep")).unwrap();
    shell.write("logs/deep/b", "half full\n");
    shell.run("index update logs.idx -q").ok();
    assert_eq!(shell.run("grep -w full logs/deep").ok().text(), "logs/deep/b:half full\n");
    assert_eq!(shell.run("grep -w full logs/deep/b").ok().text(), "half full\n");
    shell.run("grep -w disk logs/deep").code(1);
}

#[test]
fn binary_files_are_printed_as_text_on_request() {
    let shell = Shell::new();
    shell.write("zero", b"word \0 bytes\nother\nword\n");
    assert_eq!(shell.run("grep word zero").ok().text(), "umbel: zero: binary file matches\n");
    for option in ["-a", "--text"] {
        let found = shell.run(&format!("grep {option} word zero")).ok();
        assert_eq!(found.text(), "word \0 bytes\nword\n", "{option}");
    }
    shell.run("grep --text-only word zero").code(2);
}

#[test]
fn unreadable_files_are_named_and_the_others_are_searched() {
    let shell = Shell::new();
    fs::create_dir_all(shell.path("logs/closed")).unwrap();
    shell.write("logs/a", "word\n");
    shell.write("logs/closed/b", "word\n");
    shell.write("logs/zero", b"word \0 bytes\nword\n");
    shell.write("logs/latin", b"w\xf6rd word\n");
    shell.write("logs/cut.gz", &gzip("rope\n".repeat(1000))[..20]);
    symlink("..", shell.path("logs/loop")).unwrap();
    symlink("nowhere", shell.path("logs/dangling")).unwrap();
    let built = shell.run("index build logs");
    assert_eq!(built.code, Some(2), "{built:?}");
    assert!(built.stderr.contains("logs/cut.gz") && built.stderr.lines().count() == 1, "{}", built.stderr);
    shell.allow("logs/closed", 0);
    for args in ["grep -w word logs", "grep -w word --no-index logs"] {
        let found = shell.run(args);
        let lines = String::from_utf8_lossy(&found.stdout).into_owned();
        // The superuser may read everything.
        let closed =
            if fs::read_dir(shell.path("logs/closed")).is_ok() { "logs/closed/b:word\n" } else { "" };
        assert_eq!(
            lines,
            format!(
                "logs/a:word\n{closed}logs/latin:w\u{fffd}rd word\numbel: logs/zero: binary file matches\n"
            )
        );
        assert_eq!(found.code, Some(2), "{}", found.stderr);
        assert!(found.stderr.contains("logs/cut.gz"), "{}", found.stderr);
    }
    assert_eq!(shell.run("grep -wa word logs/zero").ok().stdout, b"word \0 bytes\nword\n");
    assert_eq!(shell.run("grep -wc word logs/zero").ok().text(), "2\n");
    shell.run("grep -w word nowhere").failed(&["nowhere"]);
    shell.run("grep -w word logs --index logs/a").refused(&["logs/a", "not an index"]);
    shell.run("grep").refused(&["STRING"]);
    shell.allow("logs/closed", 0o755);
}

/// Runs with standard output appended to a file, as `>>` of a shell.
fn append(shell: &Shell, args: &str, name: &str) -> Answer {
    let to = OpenOptions::new().append(true).create(true).open(shell.path(name)).unwrap();
    Process::start(shell.command(args).stdout(to)).finish()
}

#[test]
fn the_output_file_is_not_searched() {
    // `grep -rF foo logs >> logs/out` reports "input file is also the output" and continues, with
    // exit code 2. A file of more than 16 MiB would be read and written for ever; this one is
    // shorter, so that the test ends.
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
fn a_file_beside_the_directory_that_is_not_an_index_does_not_stop_the_search() {
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
fn lines_before_the_damage_in_a_compressed_file_are_printed() {
    let shell = Shell::new();
    fs::create_dir(shell.path("logs")).unwrap();
    shell.write("logs/padded.gz", [&gzip("foo\n")[..], &[0; 512]].concat());
    let answer = shell.run("grep --no-index foo logs");
    assert_eq!(String::from_utf8_lossy(&answer.stdout), "logs/padded.gz:foo\n", "{}", answer.stderr);
    assert_eq!(answer.code, Some(2));
}

#[test]
fn a_missing_root_does_not_empty_the_index() {
    let shell = Shell::new();
    fs::create_dir(shell.path("logs")).unwrap();
    shell.write("logs/a", "foo\n");
    shell.run("index build logs").ok();
    let before = shell.read("logs.idx");
    // A disk that is not mounted, or a misspelt name.
    fs::rename(shell.path("logs"), shell.path("elsewhere")).unwrap();
    assert_eq!(shell.run("index update logs.idx").code, Some(2));
    assert_eq!(shell.read("logs.idx"), before);
    assert_eq!(shell.run("index build -f lgos -o logs.idx").code, Some(2));
    assert_eq!(shell.read("logs.idx"), before);
}
