//! Secrets are created once, readable only by their owner, named by a tag, and needed to query
//! filters built with them.

use crate::shell::{Process, Shell, UMBEL, lines};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

/// Returns the tag in the output of `key new`.
fn tag(printed: &str) -> &str {
    let tag = printed.trim_end().rsplit(' ').next().unwrap();
    assert!(tag.len() == 16 && tag.bytes().all(|byte| byte.is_ascii_hexdigit()), "{printed}");
    tag
}

#[test]
fn a_key_file_is_private_and_never_overwritten() {
    let shell = Shell::new();
    let mut secrets = Vec::new();
    for (name, args, len) in
        [("a", &[][..], 16), ("b", &["--hash", "keyed"], 16), ("c", &["--hash", "sealed"], 32)]
    {
        let answer = shell.run(&[&["key", "new", name], args].concat()).ok();
        let strength = if len == 16 { "keyed" } else { "sealed" };
        assert!(answer.text().starts_with(strength), "{}", answer.text());
        let mode = std::fs::metadata(shell.path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let contents = String::from_utf8(shell.read(name)).unwrap();
        let secret = contents.split_ascii_whitespace().last().unwrap().to_owned();
        assert_eq!(secret.len(), 2 * len, "in hexadecimal");
        assert!(!answer.text().contains(&secret[..16]), "the tag does not give the secret away");
        secrets.push((tag(answer.text()).to_owned(), secret));

        shell.run(&["key", "new", name]).refused(&[&format!("{name} exists: a secret is never overwritten")]);
        assert_eq!(shell.read(name), contents.as_bytes());
    }
    secrets.sort();
    secrets.dedup_by(|a, b| a.0 == b.0 || a.1 == b.1);
    assert_eq!(secrets.len(), 3, "all different");
    shell.run("key new d --hash fast").refused(&["possible values: keyed, sealed"]);
    assert!(!shell.path("d").exists());
}

#[test]
fn no_filter_overwrites_its_own_secret() {
    let shell = Shell::new();
    shell.run("key new k").ok();
    let secret = shell.read("k");
    shell.write("keys", b"a\n");
    shell.write("pairs", b"a\tx\n");
    for command in ["build", "count build", "map build"] {
        let input = if command == "map build" { "pairs" } else { "keys" };
        shell
            .run(&format!("{command} --key-file k -f -o k {input}"))
            .refused(&["is both an input and the output"]);
    }
    shell.run("build --key-file k -o f keys").ok();
    shell.run("union --key-file k -f -o k f f").refused(&["is both an input and the output"]);
    assert_eq!(shell.read("k"), secret);
}

#[test]
fn a_filter_with_a_secret_is_queried_only_with_it() {
    let shell = Shell::new();
    let members = lines(1, 0..20_000);
    for strength in ["keyed", "sealed"] {
        let key = format!("{strength}.key");
        let printed = shell.run(&["key", "new", &key, "--hash", strength]).ok();
        shell.run(&["key", "new", &format!("other-{key}"), "--hash", strength]).ok();
        let filter = format!("{strength}.umbel");
        // The key file determines the hash; --hash may name it too.
        shell.build(&filter, &["--key-file", &key], &members);
        shell.build("again", &["-f", "--key-file", &key, "--hash", strength], &members);
        assert!(shell.read(&filter) == shell.read("again"));
        shell.build("fast", "-f", &members);
        let bits = |name: &str| shell.read(name).split_off(shell.read(name).len() - 1000);
        assert!(bits(&filter) != bits("fast"), "the secret matters");

        let facts = shell.info(&filter);
        assert_eq!((&facts["hash"], &facts["key_tag"]), (&strength.into(), &tag(printed.text()).into()));
        assert_eq!((&facts["key_embedded"], &facts["public_hash"]), (&false.into(), &false.into()));
        assert!(shell.run(&["info", &filter]).ok().text().contains(tag(printed.text())));

        shell.pipe(&["check", "-c", &filter], &members).refused(&[tag(printed.text())]);
        let other = format!("other-{key}");
        shell.pipe(&["check", "-c", "--key-file", &other, &filter], &members).refused(&[tag(printed.text())]);
        // The right one of several secrets is found.
        let args = ["check", "-c", "--key-file", &other, "--key-file", &key, &filter];
        assert_eq!(shell.pipe(&args, &members).ok().text(), "20000\n");
        assert_eq!(shell.run(&["why", "--key-file", &key, &filter, "x"]).stderr, "");
        shell.pipe(&["add", "--key-file", &key, &filter], "x\n").code(0);
        assert_eq!(shell.pipe(&["check", "--key-file", &key, &filter], "x\n").ok().text(), "x\n");
    }
    shell.pipe("build --hash keyed", "a\n").refused(&["umbel key new FILE --hash keyed"]);
    let mixed = ["build", "--hash", "sealed", "--key-file", "keyed.key"];
    shell.pipe(&mixed, "a\n").refused(&["the key file is for a keyed hash, not for a sealed one"]);
    let seeded = ["build", "--seed", "1", "--key-file", "keyed.key"];
    shell.pipe(&seeded, "a\n").refused(&["a keyed hash has a secret instead of a seed"]);
}

#[test]
fn a_public_hash_is_called_one() {
    let shell = Shell::new();
    shell.run("key new key").ok();
    let hash_line = |filter: &str| {
        let text = shell.run(&["info", filter]).ok().text().to_owned();
        text.lines().find(|row| row.starts_with("hash")).unwrap().to_owned()
    };
    shell.build("f", "", "a\n");
    let warning = "public hash: anyone can craft colliding keys; use --key-file for hostile input";
    assert!(hash_line("f").contains(warning), "{}", hash_line("f"));
    assert_eq!(shell.info("f")["public_hash"], true);
    shell.build("literature", "--kind literature --hash murmur3 -n 100 -p 1%", "a\n");
    assert!(hash_line("literature").contains("public hash"), "{}", hash_line("literature"));
    shell.build("keyed", "--key-file key", "a\n");
    assert!(!hash_line("keyed").contains("public"), "{}", hash_line("keyed"));
    for command in ["build", "add"] {
        let help = shell.run(&[command, "--help"]).ok();
        let help = help.text().split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains("public hash: anyone can craft colliding keys"), "{help}");
    }
}

#[test]
fn an_embedded_secret_opens_the_filter_and_is_kept() {
    let shell = Shell::new();
    let members = lines(1, 0..20_000);
    shell.run("key new key").ok();
    shell.build("f", "--key-file key --embed-key", &members);
    let open = |filter: &str| {
        assert_eq!(shell.pipe(&["check", "-c", filter], &members).ok().text(), "20000\n", "{filter}");
        assert_eq!(shell.info(filter)["key_embedded"], true, "{filter}");
    };
    open("f");
    shell.pipe("add f", "").ok();
    open("f");
    shell.build("like", "--like f", &members);
    open("like");
    shell.run("fold f -o folded").code(0);
    open("folded");
    shell.run("key new sealed --hash sealed").ok();
    let sealed = shell.pipe("build --key-file sealed --embed-key -o s", "a\n");
    sealed.refused(&["a sealed secret is never written to a file"]);
    assert!(!shell.path("s").exists());
}

#[test]
fn a_key_file_that_others_own_or_can_read_is_refused() {
    let shell = Shell::new();
    shell.run("key new key --hash sealed").ok();
    shell.pipe("build --key-file key -o f", "a\n").ok();
    shell.pipe("password build -o weak", "zebra\n").code(0);
    shell.pipe("password build --key-file key -o named", "zebra\n").ok();
    let all = ["build --key-file key -o g", "check --key-file key f", "add --key-file key f"];
    let passwords = ["password build --key-file key -o g", "password check named --key-file key"];
    let refused = |what: &str| {
        let before = shell.contents(".");
        for args in all.iter().chain(&passwords) {
            shell.pipe(*args, "a\n").refused(&["key file key", what]);
        }
        // The key file beside the filter is under the same rule.
        for args in ["password build -f -o weak", "password check weak", "password add weak"] {
            shell.pipe(args, "zebra\n").refused(&["key file weak.key", what]);
        }
        assert!(shell.contents(".") == before, "nothing was written");
    };
    for mode in [0o644, 0o640, 0o604, 0o620, 0o666] {
        shell.allow("key", mode);
        shell.allow("weak.key", mode);
        refused("chmod 600");
    }
    // A new filter does not get a secret that others know.
    shell.allow("weak.key", 0o644);
    fs::remove_file(shell.path("weak")).expect("a filter");
    shell.pipe("password build -o weak", "zebra\n").refused(&["others have access to the key file weak.key"]);
    assert!(!shell.path("weak").exists());
    for mode in [0o600, 0o400] {
        shell.allow("key", mode);
        shell.allow("weak.key", mode);
        all.iter().for_each(|args| drop(shell.pipe(*args, "a\n").code(0)));
        fs::remove_file(shell.path("g")).expect("a filter");
        shell.pipe("password build -f -o weak", "zebra\n").code(0);
    }
    // A pipe is as private as its writer.
    let piped = format!("cat key | {UMBEL} check --key-file /dev/stdin f words");
    shell.write("words", "a\n");
    assert_eq!(Process::start(shell.program("sh").args(["-c", &piped])).finish().ok().text(), "a\n");
    // Only root can give a file to another user.
    if fs::metadata(shell.path("key")).expect("a file").uid() == 0 {
        for name in ["key", "weak.key"] {
            chown(shell.path(name), Some(65534), None).expect("root may");
        }
        refused("belongs to another user");
    }
}

#[test]
fn a_secret_is_read_from_a_pipe_but_not_waited_for_without_end() {
    let shell = Shell::new();
    shell.write("keys", lines(1, 0..10));
    shell.write("pairs", "pear\tgreen\n");
    shell.run("key new key").ok();
    shell.run("build --key-file key -o f keys").ok();
    shell.run("password build keys -o weak").code(0);
    shell.write("phrase", "correct horse battery staple\n");
    shell.allow("phrase", 0o600);
    shell.run("vault init v --passphrase-file phrase").code(0);
    shell.pipe("table put t", "apple\tred\n").ok();
    for file in ["weak.key", "t/lock"] {
        fs::remove_file(shell.path(file)).expect("a file");
    }
    for pipe in ["pipe", "weak.key", "t/lock"] {
        mkfifoat(CWD, shell.path(pipe), Mode::RWXU).expect("a pipe");
    }
    // A pipe that nobody writes to, also one that lies where a key file is looked for.
    let waiting = [
        ("check f keys --key-file pipe", "no process has opened it for writing"),
        ("password check weak", "no process has opened it for writing"),
        ("vault list v --passphrase-file pipe", "no process has opened it for writing"),
        ("vault list v --passphrase-file phrase --state-file pipe", "not a regular file"),
        ("table put t pairs", "not a regular file"),
        ("table get t keys", "not a regular file"),
        ("pull rediss://127.0.0.1:1/k -o p --cacert pipe", "no process has opened it for writing"),
    ]
    .map(|(args, says)| (shell.start(args), says));
    for (process, says) in waiting {
        process.finish().refused(&[says]);
    }
    // Files without an end, or without a secret.
    fs::File::create(shell.path("huge")).and_then(|file| file.set_len(1 << 36)).expect("a sparse file");
    shell.allow("huge", 0o600);
    for (file, says) in
        [("/dev/zero", "is not a key file"), ("huge", "is not a key file"), (".", "directory")]
    {
        shell.run(&format!("check f keys --key-file {file}")).refused(&[says]);
    }
    for (file, says) in [("/dev/zero", "longer than"), ("huge", "longer than"), (".", "directory")] {
        shell.run(&format!("vault list v --passphrase-file {file}")).refused(&[says]);
    }
    shell
        .run("vault list v --passphrase-file phrase --state-file huge")
        .refused(&["not the state of a vault"]);
    // A program that writes the secret, sooner or later.
    if shell.program("bash").args(["-c", ":"]).status().is_err() {
        eprintln!("skipped: there is no bash");
        return;
    }
    let script = "umbel check -c f keys --key-file <(sleep 0.2; cat key) && \
                  umbel vault list v --passphrase-file <(cat phrase)";
    let answer = Process::start(&mut shell.script(&format!("exec bash -c '{script}'"))).finish().ok();
    assert_eq!(answer.text().lines().next(), Some("10"));
}
