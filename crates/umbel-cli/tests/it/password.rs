//! `umbel password`: passwords are never shown, weak ones cause an exit code, and the filter is
//! sealed with a secret.

use crate::shell::{self, Process, Shell, gzip};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

const LIST: &str = "password\n123456\nqwerty\nletmein\n";

/// The first steps of a new user.
#[test]
fn a_new_user_builds_checks_and_adds() {
    let shell = Shell::new();
    shell.write("common.txt", LIST);
    let built = shell.run("password build common.txt -o weak.umbel").code(0);
    assert_eq!(
        built.stderr,
        "umbel: made a new secret, weak.umbel.key: keep it safe, and apart from the filter\n"
    );
    assert_eq!(shell.names("."), ["common.txt", "weak.umbel", "weak.umbel.key"]);
    let mode = std::fs::metadata(shell.path("weak.umbel.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let weak = shell.pipe("password check weak.umbel", "letmein\n").code(1);
    assert_eq!((weak.text(), &weak.stderr[..]), ("1: weak\n", ""));
    let good = shell.pipe("password check weak.umbel", "correct horse battery staple\n").ok();
    assert_eq!(good.text(), "1: ok\n");
    let several = shell.pipe("password check weak.umbel", "tr0ub4dor\r\nletmein\r\n\nqwerty").code(1);
    assert_eq!(several.text(), "1: ok\n2: weak\n3: weak\n4: weak\n");

    shell.pipe("password add weak.umbel", "correct horse battery staple\n").ok();
    assert_eq!(shell.pipe("password check weak.umbel", "correct horse battery staple\n").text(), "1: weak\n");
    shell.pipe("password check weak.umbel", LIST).code(1);
    // Built again, the filter keeps its secret and reports that; no other secret is made.
    let key = shell.read("weak.umbel.key");
    let again = shell.run("password build common.txt -f -o weak.umbel").code(0);
    assert_eq!(again.stderr, "umbel: used the secret that was there, weak.umbel.key\n");
    assert_eq!(shell.read("weak.umbel.key"), key);
    shell.pipe("password check weak.umbel", "correct horse battery staple\n").ok();
}

#[test]
fn no_output_and_no_message_shows_a_password() {
    let shell = Shell::new();
    let secret = "Zwölf-Boxkämpfer-4711";
    shell.write("list", format!("{secret}\n"));
    shell.write("hashes", format!("{}:3\n{secret}\n", "5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8"));
    shell.write("not-hashes", format!("{secret}\n").repeat(100_000));
    shell.write("plain", "a\n");
    shell.run("build plain -o plain.umbel").ok();
    for (args, code) in [
        ("password build list -o weak.umbel", 0),
        ("password build list -o weak.umbel", 2),
        ("password build hashes -o h.umbel", 2),
        ("password build --sha1 list -o h.umbel", 2),
        ("password build --min-count 2 list -o h.umbel", 2),
        ("password check weak.umbel", 1),
        ("password check -q weak.umbel", 1),
        ("password check plain.umbel", 2),
        ("password check missing.umbel", 2),
        ("password check --range list", 2),
        ("password check --range not-hashes", 2),
        ("password range list 5BAA6", 2),
        ("password add plain.umbel", 2),
        ("password add weak.umbel list", 0),
        ("password check weak.umbel Zwölf-Boxkämpfer-4711", 2),
        ("password add weak.umbel Zwölf-Boxkämpfer-4711", 2),
    ] {
        let answer = shell.pipe(args, format!("{secret}\n")).code(code);
        for shown in [String::from_utf8_lossy(&answer.stdout).into_owned(), answer.stderr] {
            assert!(!shown.contains("Zw") && !shown.contains("4711"), "{args}: {shown}");
        }
    }
}

#[test]
fn candidates_are_checked_as_they_arrive() {
    let shell = Shell::new();
    shell.pipe("password build -o weak.umbel", LIST).code(0);
    let mut check = shell.start("password check weak.umbel");
    for (candidate, answer) in
        [("letmein", "1: weak\n"), ("hunter-2-and-more", "2: ok\n"), ("qwerty", "3: weak\n")]
    {
        check.send(format!("{candidate}\n"));
        assert_eq!(check.next_line(shell::PROCESS_TIMEOUT).as_deref(), Some(answer.as_bytes()));
    }
    check.finish().code(1);
    // With -q, the first weak one ends the check.
    let quiet = shell.pipe("password check -q weak.umbel", "good one\nletmein\nanother\n").code(1);
    assert_eq!((quiet.text(), &quiet.stderr[..]), ("", ""));
    assert_eq!(shell.pipe("password check -q weak.umbel", "good one\nanother\n").ok().text(), "");
}

#[test]
fn after_any_error_no_password_is_accepted() {
    let shell = Shell::new();
    shell.pipe("password build -o weak.umbel", LIST).code(0);
    shell.run("key new other --hash sealed").ok();
    let check = |args: &str, input: &[u8], says: &[&str]| shell.pipe(args, input).refused(says);
    check("password check weak.umbel", b"", &["there was no password to check"]);
    check("password check", b"x\n", &["FILTER"]);
    check("password check missing.umbel", b"x\n", &["missing.umbel"]);
    check("password check weak.umbel --key-file other", b"x\n", &["built with a secret", "key tag"]);
    check("password check weak.umbel --range weak.umbel", b"x\n", &["cannot be used with"]);
    check("password check .", b"x\n", &["."]);
    check("password check --range .", b"x\n", &["is a directory"]);
    check("password check weak.umbel", &b"x".repeat(3 << 20), &["line 1 is longer than 1 MiB"]);
    std::fs::remove_file(shell.path("weak.umbel.key")).unwrap();
    check("password check weak.umbel", b"x\n", &["built with a secret", "add its key file"]);
    let mut broken = shell.read("weak.umbel");
    let middle = broken.len() - 100;
    broken[middle] ^= 1;
    shell.write("broken.umbel", &broken);
    shell.run("password build --unsealed -o plain.umbel weak.umbel").refused(&["is a filter, not a list"]);
    shell.pipe("build -o lines.umbel", "x\n").ok();
    check(
        "password check lines.umbel",
        b"x\n",
        &["cannot ask lines.umbel", "does not say how passwords are put into it", "umbel password build"],
    );
    shell.run("meta lines.umbel password=rot13").ok();
    check("password check lines.umbel", b"x\n", &["password = \"rot13\", which is not understood"]);
}

#[test]
fn the_exit_code_is_correct_if_the_output_is_closed() {
    let shell = Shell::new();
    shell.pipe("password build -o weak.umbel", LIST).code(0);
    for (candidates, code) in [("good one\nletmein\n", 1), ("good one\n", 0)] {
        let mut check = shell.start("password check weak.umbel");
        drop(check.child().stdout.take());
        check.feed(|mut stdin| stdin.write_all(candidates.as_bytes())).code(code);
    }
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = shell.command("password check weak.umbel");
    let answer =
        Process::start(command.stdout(Stdio::from(full))).feed(|mut stdin| stdin.write_all(b"good one\n"));
    assert_eq!(answer.code, Some(2), "{}", answer.stderr);
}

#[test]
fn a_secret_may_be_raw_bytes() {
    let shell = Shell::new();
    let raw: Vec<u8> = (0..32).map(|byte: u8| byte.wrapping_mul(37) ^ 0xa5).collect();
    shell.write("key", &raw);
    shell.allow("key", 0o600);
    shell.pipe("password build -o weak.umbel --key-file key", LIST).ok();
    assert_eq!(shell.names("."), ["key", "weak.umbel"], "there is a secret, so none is made");
    shell.pipe("password check weak.umbel --key-file key", "letmein\n").code(1);
    shell.pipe("password check weak.umbel --key-file key", "correct horse battery staple\n").ok();
    assert_eq!(shell.info("weak.umbel")["hash"], "sealed");
    // For every filter, not only for passwords; and only with the exact length.
    shell.pipe("build --key-file key -o f", "a\n").ok();
    assert_eq!(shell.pipe("check --key-file key f", "a\n").ok().text(), "a\n");
    for wrong in [&raw[..31], &[&raw[..], b"\n"].concat()] {
        shell.write("wrong", wrong);
        shell.pipe("build --key-file wrong -o g", "a\n").refused(&["wrong is not a key file"]);
    }
    shell.run("key new keyed").ok();
    shell.pipe("password build -o k.umbel --key-file keyed", LIST).ok();
    shell.pipe("password check k.umbel --key-file keyed", "letmein\n").code(1);
    shell.pipe("password build --key-file key", LIST).code(0);
    shell.pipe("password build", LIST).refused(&["name it with -o"]);
}

#[test]
fn build_and_check_normalise_alike_as_recorded_in_the_filter() {
    let shell = Shell::new();
    shell.write("list", "cafe\u{301}\nPassword1\n\u{fb01}nance\n\\xff\n");
    shell.run("password build list --unsealed -o exact.umbel").ok();
    shell.run("password build list --unsealed --fold-case -o folded.umbel").ok();
    for (filter, candidate, code) in [
        ("exact.umbel", "café", 1),
        ("exact.umbel", "finance", 1),
        ("exact.umbel", "password1", 0),
        ("folded.umbel", "pASSWORD1", 1),
        ("folded.umbel", "CAFÉ", 1),
        ("folded.umbel", "other", 0),
    ] {
        shell.pipe(&["password", "check", filter], format!("{candidate}\n")).code(code);
    }
    let added = shell.pipe("password add folded.umbel", "STRASSE\n").code(0);
    assert!(added.stderr.contains("folded.umbel is not sealed"), "{}", added.stderr);
    shell.pipe("password check folded.umbel", "straße\n").code(1);
    // Bytes that are not text are candidates too.
    shell.pipe("password add folded.umbel", b"\xff\xfe\n").code(0);
    shell.pipe("password check folded.umbel", b"\xff\xfe\n").code(1);
    shell.pipe("password check folded.umbel", b"\xff\xfd\n").ok();
    // The filter keeps its record of the form.
    assert_eq!(shell.info("folded.umbel")["meta"]["password"], "nfkc fold-case");
}

#[test]
fn a_slow_hash_is_recorded_in_the_filter_and_used_by_check() {
    let shell = Shell::new();
    shell.pipe("password build --slow --cost 64KiB -o slow.umbel", LIST).code(0);
    let mark = shell.info("slow.umbel")["meta"]["password-slow"].as_str().unwrap().to_owned();
    assert!(mark.starts_with("argon2id m=64 t=2 p=1 salt=") && mark.len() == 27 + 32, "{mark}");
    shell.pipe("password check slow.umbel", "letmein\n").code(1);
    shell.pipe("password check slow.umbel", "correct horse\n").ok();
    shell.pipe("password add slow.umbel", "correct horse\n").ok();
    shell.pipe("password check slow.umbel", "correct horse\n").code(1);
    // The default cost is so high that a few words are enough for the test.
    shell.pipe("password build --slow -o slower.umbel", "letmein\n").code(0);
    shell.pipe("password check slower.umbel", "letmein\n").code(1);
    shell.pipe("password build --cost 64KiB -o x", LIST).refused(&["--slow"]);
    shell.pipe("password build --slow --cost 1KiB -o x", LIST).refused(&["from 64 KiB to 1 GiB"]);
    shell.pipe(&["meta", "slow.umbel", "password-slow=argon2id m=4000000000 t=1 p=1 salt=00"], "").ok();
    shell.pipe("password check slow.umbel", "letmein\n").refused(&["which is not understood"]);
}

#[test]
fn the_cost_that_a_filter_demands_is_limited() {
    let shell = Shell::new();
    shell.pipe("password build --slow --cost 64KiB -o slow", LIST).code(0);
    for (memory, passes, required) in [(1 << 20, 16, 4096), (1 << 20, 1, 1024)] {
        let mark = format!("password-slow=argon2id m={memory} t={passes} p=1 salt={:032x}", 0);
        shell.run(&["meta", "slow", &mark]).ok();
        let allow = format!("--max-memory {required}MiB");
        for command in ["check", "add"] {
            shell.pipe(&format!("password {command} slow"), "letmein\n").refused(&[
                "slow hash",
                "more than is expected",
                &allow,
            ]);
        }
        let less = format!("password check slow --max-memory {}MiB", required - 1);
        shell.pipe(&less, "x\n").refused(&[&allow]);
    }
    // A cost that is allowed, so that the candidate is really hashed.
    let mark = format!("password-slow=argon2id m=64 t=2 p=1 salt={:032x}", 0);
    shell.run(&["meta", "slow", &mark]).ok();
    shell.pipe("password check slow --max-memory 63KiB", "x\n").refused(&["--max-memory 1MiB"]);
    shell.pipe("password check slow --max-memory 64KiB", "correct horse\n").ok();
}

/// SHA-1 of password, qwerty and letmein.
const HASHES: &str = "5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8:9659365\r\n\
                      B1B3773A05C0ED0176787A4F1574FF0075F7521E:4000000\r\n\
                      B7A875FC1EA228B9061041B7CEC4BD3C52AB3CE3:3\r\n";

#[test]
fn leaked_lists_of_hashes_are_used_as_they_are() {
    let shell = Shell::new();
    shell.write("pwned.txt", HASHES);
    shell.write("pwned.txt.gz", gzip(HASHES));
    for list in ["pwned.txt", "pwned.txt.gz"] {
        shell.run(&format!("password build {list} -f -o weak.umbel --unsealed")).ok();
        let answer = shell.pipe("password check weak.umbel", "password\nqwerty\nletmein\nother\n").code(1);
        assert_eq!(answer.text(), "1: weak\n2: weak\n3: weak\n4: ok\n");
    }
    shell.run("password build --min-count 10 pwned.txt -f -o weak.umbel --unsealed").ok();
    let answer = shell.pipe("password check weak.umbel", "password\nqwerty\nletmein\n").code(1);
    assert_eq!(answer.text(), "1: weak\n2: weak\n3: ok\n");
    // Words can be added to hashes, but not hashes to words.
    shell.pipe("password add weak.umbel", "used before\n").code(0);
    shell.pipe("password check weak.umbel", "used before\n").code(1);
    shell.write("words", LIST);
    shell.run("password build pwned.txt words --unsealed -f -o weak.umbel").ok();
    assert_eq!(shell.pipe("password check weak.umbel", "123456\nletmein\n").text(), "1: weak\n2: weak\n");
    shell
        .run("password build words pwned.txt --unsealed -f -o weak.umbel")
        .refused(&["cannot use pwned.txt", "give the hashes first"]);
    shell.run("password build --fold-case pwned.txt --unsealed -f -o weak.umbel").refused(&["pwned.txt"]);
    shell.run("password build --words pwned.txt --unsealed -f -o weak.umbel").ok();
    shell.pipe("password check weak.umbel", "password\n").ok();
}

#[test]
fn a_range_has_the_format_of_the_service_and_suffices_for_its_client() {
    let shell = Shell::new();
    shell.write("pwned.txt", HASHES);
    let suffix = "1E4C9B93F3F0682250B6CF8331B7EE68FD8:9659365";
    assert_eq!(shell.run("password range pwned.txt 5BAA6").ok().text(), format!("{suffix}\n"));
    assert_eq!(shell.run("password range pwned.txt 5baa6 --crlf").ok().text(), format!("{suffix}\r\n"));
    assert_eq!(shell.pipe("password range - 5BAA6", HASHES).ok().text(), format!("{suffix}\n"));
    assert_eq!(shell.run("password range --scan pwned.txt 00000").code(1).text(), "");
    shell.run("password range pwned.txt 5BAA").refused(&["5 hexadecimal digits"]);
    shell.run("password range . 5BAA6").refused(&["is a directory"]);
    let answer = shell.pipe("password check --range pwned.txt", "password\nother\n").code(1);
    assert_eq!(answer.text(), "1: weak\n2: ok\n");
    shell.pipe("password check --range pwned.txt", "other\n").ok();
    shell.pipe("password check --range missing.txt", "other\n").refused(&["missing.txt"]);
}

/// The prompt is shown on the terminal, the typed password is not.
#[test]
fn on_a_terminal_a_password_is_prompted_for_without_showing_it() {
    let shell = Shell::new();
    shell.pipe("password build -o weak.umbel", LIST).code(0);
    for (typed, code, answer) in [("letmein\n", 1, "weak"), ("tr0ub4dor and three\n", 0, "ok")] {
        let (mut user, program) = shell::terminal();
        let other = || Stdio::from(program.try_clone().unwrap());
        // With a terminal of its own, as in a window.
        let mut command = shell.program("setsid");
        command.args(["--ctty", "--wait", shell::UMBEL, "password", "check", "weak.umbel"]);
        command.stdin(other()).stdout(other()).stderr(other());
        let process = Process::start(&mut command);
        drop((command, program));
        let mut shown = Vec::new();
        let mut bytes = [0; 256];
        while !shown.ends_with(b"Password: ") {
            let count = user.read(&mut bytes).expect("a prompt");
            shown.extend_from_slice(&bytes[..count]);
        }
        user.write_all(typed.as_bytes()).unwrap();
        // A terminal whose last writer has closed it reports an error instead of the end.
        let _ = user.read_to_end(&mut shown);
        let process = process.finish();
        let shown = String::from_utf8(shown).unwrap();
        assert_eq!(process.code, Some(code), "{shown}");
        assert!(!shown.contains(typed.trim()), "{shown}");
        assert_eq!(shown.split_whitespace().last(), Some(answer), "{shown}");
    }
}

#[test]
fn an_overfull_filter_causes_a_warning_and_files_are_complete_or_absent() {
    let shell = Shell::new();
    shell.write("many", shell::lines(1, 0..30_000));
    let small = shell.run("password build -n 1000 many -o small.umbel --unsealed").code(0);
    assert!(small.stderr.contains("more than the 1000 it was made for"), "{}", small.stderr);
    shell.run("password build many -o fit.umbel --unsealed").ok();
    assert_eq!(shell::number(&shell.info("fit.umbel"), "capacity"), 33_000.0);
    shell.run("password build many -o /nowhere/at/all").refused(&["/nowhere/at/all"]);
    shell.run("password build many -o many").refused(&["many is both an input and the output"]);
    shell.run("password build missing -o x").refused(&["missing"]);
    assert!(!shell.path("x.key").exists(), "no secret is left of what was not built");
    shell.pipe("password add fit.umbel --key-file missing", "x\n").failed(&["missing"]);
}

/// A word in another form cannot be found in a filter that records this one.
#[test]
fn filters_of_different_forms_are_not_combined() {
    let shell = Shell::new();
    shell.run("key new key --hash sealed").ok();
    for (name, options) in [
        ("slow", "--slow --cost 64KiB"),
        ("slower", "--slow --cost 64KiB"),
        ("folded", "--fold-case"),
        ("words", ""),
        ("more", ""),
    ] {
        shell.pipe(&format!("password build {options} --key-file key -o {name}"), LIST).ok();
    }
    shell.pipe("build --key-file key --like words -o lines", "letmein\n").ok();
    for (pair, says) in [
        ("slow slower", "password-slow is \"argon2id m=64 t=2 p=1 salt="),
        ("words slow", "password-slow is missing in the first and \"argon2id"),
        ("words folded", "password is \"nfkc\" in the first and \"nfkc fold-case\" in the second"),
        ("words lines", "password is \"nfkc\" in the first and missing in the second"),
        ("more words lines", "more and lines do not keep passwords in the same form"),
    ] {
        shell.run(&format!("union --key-file key {pair} -o x")).refused(&["the same form", says]);
        shell.run(&format!("intersect --key-file key {pair} -o x")).refused(&["the same form", says]);
        shell.run(&format!("compare --key-file key {pair}")).refused(&["the same form", says]);
    }
    // Filters of the same form can be combined, and keep their form.
    shell.run("union --key-file key words more -o united").ok();
    shell.run("intersect --key-file key words more -o common").ok();
    shell.run("compare --key-file key words more").ok();
    shell.run("fold --key-file key slow -o half").ok();
    shell.run("convert --key-file key slow --kind standard -o same").ok();
    for filter in ["united", "common", "half", "same"] {
        let answer = shell.pipe(&format!("password check --key-file key {filter}"), LIST).code(1);
        assert_eq!(answer.text(), "1: weak\n2: weak\n3: weak\n4: weak\n", "{filter}");
        shell.pipe(&format!("password check --key-file key {filter}"), "correct horse battery staple\n").ok();
    }
}

#[test]
fn a_new_secret_is_removed_only_if_its_filter_was_not_written() {
    let shell = Shell::new();
    shell.write("common.txt", LIST);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = shell.command("password build common.txt --json -o weak.umbel");
    let answer = Process::start(command.stdout(Stdio::from(full))).finish();
    assert_eq!(answer.code, Some(2), "{}", answer.stderr);
    assert!(answer.stderr.contains("made a new secret"), "{}", answer.stderr);
    assert_eq!(shell.names("."), ["common.txt", "weak.umbel", "weak.umbel.key"]);
    shell.pipe("password check weak.umbel", "letmein\n").code(1);
}

#[test]
fn a_secret_that_was_there_is_used_and_reported() {
    let shell = Shell::new();
    shell.run("key new weak.umbel.key --hash sealed").ok();
    let secret = shell.read("weak.umbel.key");
    let built = shell.pipe("password build -o weak.umbel", LIST).code(0);
    assert_eq!(built.stderr, "umbel: used the secret that was there, weak.umbel.key\n");
    assert_eq!(shell.read("weak.umbel.key"), secret);
}

/// Mistaken for words, hashes would make a filter that accepts every password.
#[test]
fn lists_of_hashes_are_not_mistaken_for_words() {
    let shell = Shell::new();
    let ntlm = "8846F7EAEE8FB117AD06BDD830B7586C";
    let other = "31d6cfe0d16ae931b73c59d7e0c089c0";
    let sha1 = "5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8";
    let utf16: Vec<u8> =
        "\u{feff}password\r\nletmein\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (list, says) in [
        (format!("{ntlm}:10\n{sha1}:3\n").into_bytes(), "its lines look like NTLM and SHA-1 hashes"),
        (format!("{ntlm}{other}\n{other}{ntlm}\n").into_bytes(), "its lines look like hashes"),
        (format!("{sha1}  first.txt\n{sha1}  -\n").into_bytes(), "its lines look like sums of files"),
        (utf16, "it has zero bytes, as text in UTF-16 has"),
        (b"\x7fELF\0\0\n\x01".to_vec(), "it has zero bytes"),
    ] {
        shell.write("list", &list);
        let says = ["cannot use list", says, "use --words if they are words"];
        shell.run("password build list -o weak.umbel").refused(&says);
        assert_eq!(shell.names("."), ["list"], "neither a filter nor a secret is left");
        shell.run("password build --words --unsealed list -o weak.umbel").ok();
        shell.run("password add weak.umbel list").code(2);
        shell.run("password add --words weak.umbel list").code(0);
        std::fs::remove_file(shell.path("weak.umbel")).unwrap();
    }
    // Words may consist of such digits, if not all of them do.
    for list in [format!("{ntlm}\n"), format!("{ntlm}\nletmein\n"), format!("letmein\n{ntlm}:3\n")] {
        shell.pipe("password build --unsealed -f -o weak.umbel", &list).ok();
        let answer = shell.pipe("password check weak.umbel", &list).code(1);
        assert!(!answer.text().contains("ok"), "{}", answer.text());
    }
}

#[test]
fn a_list_without_words_is_an_error() {
    let shell = Shell::new();
    for (list, args) in [("", ""), ("\n\r\n\n", ""), ("", "-n 1000")] {
        shell
            .pipe(&format!("password build {args} -o weak.umbel"), list)
            .refused(&["there is no word in the list"]);
        shell.write("list", list);
        shell.pipe("password check --range list", "letmein\n").refused(&["list", "there is no hash in it"]);
    }
    shell
        .pipe("password build --min-count 1e9 -o weak.umbel", HASHES)
        .refused(&["has such a high count", "--min-count"]);
    assert_eq!(shell.names("."), ["list"]);
}

#[test]
fn other_commands_keep_the_form_of_passwords() {
    let shell = Shell::new();
    shell.pipe("password build -o weak.umbel", LIST).code(0);
    shell.pipe("build --kind counting --meta password=nfkc -o counting.umbel", LIST).ok();
    shell.pipe("build -o plain.umbel", LIST).ok();
    for filter in ["weak.umbel", "counting.umbel"] {
        let before = shell.read(filter);
        for args in [
            format!("add {filter}"),
            format!("remove {filter}"),
            format!("check {filter}"),
            format!("check plain.umbel --with {filter}"),
            format!("why {filter} letmein"),
        ] {
            shell.pipe(&args, "letmein\n").refused(&[
                filter,
                "holds passwords",
                "umbel password add",
                "umbel password check",
            ]);
        }
        assert!(shell.read(filter) == before);
    }
}

#[test]
fn ntlm_lists_build_filters_that_hash_candidates_with_ntlm() {
    let shell = Shell::new();
    let password = "8846F7EAEE8FB117AD06BDD830B7586C";
    let qwerty = "2d20d252a479f485cdf5e171d93985bf";
    let others: String = (0..50).map(|i| format!("{:032X}:{i}\n", u128::from(i + 1u32) << 90)).collect();
    shell.write("ntlm.txt", format!("{others}{password}:99\n{qwerty}:7\n"));
    let built = shell.run("password build ntlm.txt --unsealed -o weak.umbel --json").ok();
    assert_eq!(built.json()["meta"]["password"], "ntlm", "{}", built.text());
    let check = || shell.pipe("password check weak.umbel", "password\nqwerty\nused before\n").code(1);
    assert_eq!(check().text(), "1: weak\n2: weak\n3: ok\n");
    shell.pipe("password add weak.umbel", "used before\n").code(0);
    assert_eq!(check().text(), "1: weak\n2: weak\n3: weak\n");
    shell.run("password build --min-count 10 ntlm.txt --unsealed -f -o weak.umbel").ok();
    assert_eq!(check().text(), "1: weak\n2: ok\n3: ok\n");
    // The same list answers range queries.
    assert_eq!(shell.run("password range ntlm.txt 8846f").ok().text(), format!("{}:99\n", &password[5..]));
    let answer = shell.pipe("password check --range ntlm.txt", "password\nother\n").code(1);
    assert_eq!(answer.text(), "1: weak\n2: ok\n");
}

/// Taken for NTLM, MD5 hashes would make a filter that accepts every password.
#[test]
fn hashes_that_may_be_md5_are_not_taken_for_ntlm() {
    let shell = Shell::new();
    // Of "password" and "qwerty".
    let md5 = "5f4dcc3b5aa765d61d8327deb882cf99\nd8578edf8458ce06fbc5bb76a58c5ca4\n";
    let ntlm = "8846F7EAEE8FB117AD06BDD830B7586C\n2D20D252A479F485CDF5E171D93985BF\n";
    for list in [md5, ntlm] {
        shell.write("list", list);
        for options in ["", "--unsealed", "--min-count 1"] {
            shell.run(&format!("password build {options} list -o weak.umbel")).failed(&[
                "cannot use list",
                "but also of MD5 hashes",
                "--ntlm",
                "--words",
            ]);
            assert_eq!(shell.names("."), ["list"], "neither a filter nor a secret is left");
        }
    }
    shell.pipe("password build -o weak.umbel", md5).failed(&["cannot use standard input", "--ntlm"]);
    let weak =
        |candidates: &str| shell.pipe("password check weak.umbel", candidates).code(1).text().to_owned();
    shell.run("password build --ntlm list --unsealed -o weak.umbel").ok();
    assert_eq!(weak("password\nqwerty\nother\n"), "1: weak\n2: weak\n3: ok\n");
    shell.run("password build --words list --unsealed -f -o weak.umbel").ok();
    assert_eq!(weak(ntlm), "1: weak\n2: weak\n");
    // Counts show that the list is that of the service.
    shell.write("list", ntlm.replace('\n', ":3\n"));
    shell.run("password build list --unsealed -f -o weak.umbel").ok();
    assert_eq!(weak("password\nqwerty\nother\n"), "1: weak\n2: weak\n3: ok\n");
}

#[test]
fn lists_of_both_kinds_of_hashes_are_not_mixed() {
    let shell = Shell::new();
    let ntlm = "8846F7EAEE8FB117AD06BDD830B7586C:99\n31D6CFE0D16AE931B73C59D7E0C089C0:1\n";
    let sha1 = "5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8:9659365\n";
    shell.write("ntlm", ntlm);
    shell.write("sha1", sha1);
    shell.write("mixed", ntlm.repeat(10) + sha1);
    let build = |lists: &str| shell.run(&format!("password build {lists} -o weak.umbel --unsealed"));
    build("mixed").refused(&["cannot use mixed", "line 21", "another kind than the NTLM hashes before it"]);
    build("sha1 ntlm").refused(&["cannot use ntlm", "holds NTLM hashes", "the filter holds SHA-1 hashes"]);
    build("--sha1 ntlm").refused(&["cannot use ntlm", "line 1"]);
    build("ntlm").ok();
    let added = shell.run("password add weak.umbel sha1").code(2);
    assert!(
        added.stderr.contains("it holds SHA-1 hashes, and the filter holds NTLM hashes"),
        "{}",
        added.stderr
    );
    shell.run("password build --ntlm --sha1 ntlm -o x").code(2);
}
