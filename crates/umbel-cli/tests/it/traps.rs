//! Traps that a careful reader found: each could cause a wrong result or a lost file.

use crate::shell::{self, Shell, gzip, lines, number, split};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

/// With too little memory a filter would report every key, and no command could read it.
#[test]
fn a_filter_can_be_read_back_however_little_memory_is_allowed() {
    let shell = Shell::new();
    for size in ["64", "640", "6400"] {
        shell
            .pipe(&["build", "--max-bytes", size, "-o", "f"], lines(1, 0..100_000))
            .refused(&["--max-bytes", "is too small"]);
        assert!(!shell.path("f").exists());
    }
    shell.pipe("build --max-bytes 100000 -o f", lines(1, 0..100_000)).code(0);
    assert!(number(&shell.info("f"), "fpr_now") < 0.5);
}

/// A process that has mapped the old file keeps it when the name is reused.
#[test]
fn a_filter_that_is_replaced_while_in_use_is_not_reported_as_shortened() {
    let shell = Shell::new();
    shell.build("big", "-n 100000", lines(1, 0..10));
    shell.build("small", "-n 10", lines(1, 0..10));
    fs::copy(shell.path("big"), shell.path("f")).unwrap();
    let mut process = shell.start("check --label f");
    process.send("a\n");
    assert!(process.next_line(shell::PROCESS_TIMEOUT).is_some(), "it has been mapped");
    fs::rename(shell.path("small"), shell.path("f")).unwrap();
    drop(process.stdin());
    process.finish().ok();
}

#[test]
fn a_thousand_filters_do_not_need_a_thousand_open_files() {
    let shell = Shell::new();
    shell.build("f", "", "a\n");
    let names: Vec<String> = (0..300).map(|number| format!("copy-{number}")).collect();
    for name in &names {
        fs::copy(shell.path("f"), shell.path(name)).unwrap();
    }
    let mut limited = shell.program("sh");
    limited.args(["-c", "ulimit -n 64; exec \"$0\" info --verify \"$@\"", shell::UMBEL]).args(&names);
    let answer = shell::Process::start(&mut limited).finish().ok();
    assert_eq!(answer.text().lines().count(), 300);
}

#[test]
fn lines_are_never_printed_into_the_file_they_are_read_from() {
    let shell = Shell::new();
    let words = lines(1, 0..1000);
    shell.write("words", &words);
    fs::hard_link(shell.path("words"), shell.path("other name")).unwrap();
    shell.build("f", "", &words);
    shell.pipe("map build --mutable -d 0 -o m", "a0b\n").ok();
    shell.build("c", "--kind counting", "a\n");
    shell.pipe("count build -o n", "a\n").ok();
    for (arguments, input) in [
        ("check f words", None),
        ("check f", Some("words")),
        ("uniq words", None),
        ("add --new f words", None),
        ("remove c words", None),
        ("map get m words", None),
        ("map set m words", None),
        ("map set m", Some("words")),
        ("count get n words", None),
    ] {
        let mut command = shell.command(arguments);
        command.stdout(OpenOptions::new().append(true).open(shell.path("other name")).unwrap());
        if let Some(input) = input {
            command.stdin(File::open(shell.path(input)).unwrap());
        }
        shell::Process::start(&mut command)
            .finish()
            .refused(&["is both an input and the output: redirect the output"]);
        assert!(shell.read("words") == words, "{arguments}");
    }
    shell.redirect("build -f -o words", "words").refused(&["standard input is both an input and the output"]);
    shell
        .run(&["build", "-f", "-o", "words", "other name"])
        .refused(&["other name is both an input and the output"]);
    assert!(shell.read("words") == words);
    // A device does not grow.
    let mut command = shell.command("check f words");
    command.stdout(Stdio::null());
    shell::Process::start(&mut command).finish().ok();
}

#[test]
fn a_quote_that_is_never_closed_does_not_swallow_the_rest() {
    let shell = Shell::new();
    shell.build("f", "", "b@b.org\n");
    let table = format!("id,mail\n1,\"ann@a.org\n{}", "2,b@b.org\n".repeat(2000));
    let says = ["a quote is never closed in the record that starts with 1,\"ann@a.org"];
    shell.pipe("check --csv --header -F mail f", &table).refused(&says);
    // The records before the quote are still processed.
    let answer = shell.pipe("check --csv --header -F mail f", table.replace("1,\"", "0,b@b.org\n1,\""));
    answer.failed(&says);
    assert_eq!(answer.text(), "0,b@b.org\n");
    shell.pipe("build --csv --header -F mail -o new", &table).refused(&says);
    assert!(!shell.path("new").exists());
}

#[test]
fn lines_before_a_failure_are_printed() {
    let shell = Shell::new();
    let words = lines(1, 0..1000);
    shell.build("f", "", &words);
    let whole = gzip(&words);
    shell.write("cut.gz", &whole[..whole.len() - 8]);
    let answer = shell.run("check f cut.gz");
    answer.failed(&["cannot read cut.gz (as gzip)"]);
    assert!(answer.stdout == words, "all of it was there before the end was missing");
}

#[test]
fn a_saturated_filter_reports_no_headroom() {
    let shell = Shell::new();
    shell.pipe("build -n 10 -o f", lines(1, 0..100_000)).code(0);
    assert!(shell.info("f").get("headroom").is_none());
    assert!(shell.run("info f").ok().text().contains("10, far above"));
}

/// The reported number is compared with an exact count: far above the capacity, where a single
/// block holds many times the capacity, and at it.
#[test]
fn uniq_estimates_its_losses_at_any_size() {
    let shell = Shell::new();
    for (size, count, rate) in
        [(100, 1000, "1%"), (100, 100_000, "1e-6"), (20_000, 20_000, "5%"), (2000, 50_000, "1%")]
    {
        let answer = shell
            .pipe(&["uniq", "--seed", "0", "-n", &size.to_string(), "-p", rate], lines(3, 0..count))
            .code(0);
        let kept = split(&answer.stdout).len();
        let lost = count as f64 - kept as f64;
        let said = answer.stderr.split("; ").nth(1).and_then(|said| said.split(' ').next()).unwrap();
        let said: f64 = said.parse().unwrap_or_else(|_| panic!("{}", answer.stderr));
        // Five standard deviations of the losses, and 1 % for the count of distinct lines.
        assert!(
            (said - lost).abs() <= 5.0 * lost.sqrt() + 0.01 * count as f64,
            "{size} {count}: {said}, not {lost}"
        );
    }
}

#[test]
fn metadata_follows_the_same_rules_everywhere_and_is_printed_safely() {
    let shell = Shell::new();
    shell.build("f", "", "a\n");
    shell.run(&["meta", "f", "=x"]).refused(&["write it as name=value"]);
    shell.run("meta f a=1 a=2").refused(&["given twice"]);
    shell.run("meta f a=1 b").refused(&["\"b\" sets nothing"]);
    assert_eq!(shell.run("meta f").ok().text(), "");
    shell.run(&["meta", "f", "a=\u{1b}[31mred"]).ok();
    assert!(!shell.run("info f").ok().text().contains('\u{1b}'));
}

#[test]
fn a_filter_with_an_embedded_secret_is_readable_only_by_its_owner() {
    let shell = Shell::new();
    shell.run("key new k").ok();
    shell.build("open", "--key-file k", "a\n");
    shell.build("embedded", "-n 10 --key-file k --embed-key", "a\n");
    let mode = |name| fs::metadata(shell.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("embedded"), 0o600);
    assert_ne!(mode("open"), 0o600, "the usual permissions, less the umask");
    // Permissions that the owner has widened are kept.
    shell.allow("embedded", 0o640);
    shell.pipe("add embedded", "b\n").ok();
    assert_eq!(mode("embedded"), 0o640);
}

#[test]
fn unsupported_compressed_files_are_not_read_as_lines() {
    let shell = Shell::new();
    for (program, magic) in
        [("xz", &b"\xfd7zXZ\0\0\0"[..]), ("bzip2", b"BZh91AY&SY\0"), ("lz4", b"\x04\x22\x4d\x18\0")]
    {
        shell.write("in", magic);
        shell.run("build -o f in").refused(&["in is compressed with", program, "-dc in | umbel"]);
    }
    // Files of parallel zstd start with a skippable frame.
    let mut frames = b"\x50\x2a\x4d\x18\x04\0\0\0abcd".to_vec();
    frames.extend(zstd::encode_all(&b"a\nb\n"[..], 0).unwrap());
    shell.write("in", frames);
    assert_eq!(shell.run("uniq -q in").ok().text(), "a\nb\n");
    // Text that only begins like such a frame.
    shell.write("in", "BZh9 is a line\n");
    assert_eq!(shell.run("uniq -q in").ok().text(), "BZh9 is a line\n");
}

#[test]
fn a_byte_order_mark_is_not_part_of_a_name() {
    let shell = Shell::new();
    shell.build("f", "", "5\n");
    for arguments in ["check --csv --header -F mail f", "check --csv --header -F 1 f"] {
        assert_eq!(shell.pipe(arguments, "\u{feff}mail,id\n5,1\n").ok().text(), "5,1\n");
    }
    assert_eq!(shell.pipe("check --csv -F 1 f", "\u{feff}5,1\n").ok().text(), "5,1\n");
    assert_eq!(shell.pipe("check --header -d , -F mail f", "\u{feff}mail,id\n5,1\n").ok().text(), "5,1\n");
    // Lines are bytes.
    shell.pipe("check f", "\u{feff}5\n").code(1);
}

#[test]
fn a_column_is_added_before_the_end_of_a_csv_record() {
    let shell = Shell::new();
    shell.build("f", "", "5\n");
    assert_eq!(shell.pipe("check --csv -F 1 --label f", "5,1\r\n").ok().text(), "5,1\tmaybe\r\n");
    assert_eq!(shell.pipe("check --label f", "5\n").ok().text(), "5\tmaybe\n");
}

#[test]
fn folding_reports_why_it_stopped() {
    let shell = Shell::new();
    shell.pipe("build -n 1e7 -o f", lines(1, 0..1000)).code(0);
    let answer = shell.run("fold -p 1% f -o s").code(0);
    assert!(answer.stderr.contains("it cannot be folded further"), "{}", answer.stderr);
    assert!(number(&shell.info("s"), "bytes") <= number(&shell.info("f"), "bytes") / 8.0);
    for kind in ["standard", "partitioned"] {
        shell.build(kind, &["-n", "34567", "--kind", kind], "a\n");
        shell.run(&["fold", "--times", "3", kind, "-o", &format!("{kind}-folded")]).ok();
    }
}
