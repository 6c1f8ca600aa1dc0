//! Maps from the shell: every key gets its value, absent keys rarely get one, and contradictions
//! are refused by name.

use crate::shell::{self, Shell, gzip, line, lines, mix, number, split};
use std::fs;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

const COLOURS: [&str; 5] = ["red", "green", "blue", "black", "white"];

/// Returns lines of a family as keys, each with a value.
fn pairs(family: u64, count: u64, value: impl Fn(u64) -> String) -> Vec<u8> {
    let pair = |number| [&line(family, number)[..], b"\t", value(number).as_bytes(), b"\n"].concat();
    (0..count).flat_map(pair).collect()
}

fn colour(number: u64) -> String {
    COLOURS[(mix(number) % 5) as usize].to_string()
}

#[test]
fn every_key_gets_its_value_and_absent_keys_rarely_get_one() {
    let shell = Shell::new();
    let text = pairs(1, 100_000, colour);
    for kind in ["bloomier", "bloomier-mutable"] {
        for rate in ["1%", "1e-4"] {
            shell.pipe(&format!("map build -f --kind {kind} -p {rate} -o m"), &text).ok();
            let answer = shell.pipe("map get m", lines(1, 0..100_000)).ok();
            assert!(answer.stdout == text, "{kind}, {rate}: in order, and all of them");
            let facts = shell.info("m");
            let asked = number(&facts, "fpr_target");
            let wrong = split(&shell.pipe("map get m", lines(2, 0..200_000)).stdout).len() as f64 / 200_000.0;
            assert!(wrong <= asked * 1.05 + 4.0 * (asked / 200_000.0).sqrt(), "{kind}, {rate}: {wrong}");
            assert!(number(&facts, "fpr_now") <= asked, "{facts}");
            assert_eq!((&facts["kind"], &facts["holds"]), (&kind.into(), &"map".into()));
            assert_eq!((&facts["count"], &facts["details"]["values"]), (&100_000.into(), &5.0.into()));
        }
    }
    shell.pipe("map build -f -o m", &text).ok();
    assert!(shell.read("m").len() * 8 < 1_100_000, "11 bits for each key and five values");
}

#[test]
fn answers_and_exit_codes_are_those_of_check() {
    let shell = Shell::new();
    shell.pipe("map build -p 1e-6 -o m", "a\tone\nb\ttwo\nc\tone\n").ok();
    assert_eq!(shell.pipe("map get m", "b\nx\na\nb").ok().text(), "b\ttwo\na\tone\nb\ttwo\n");
    assert_eq!(shell.pipe("map get m", "x\ny\n").code(1).text(), "");
    assert_eq!(shell.pipe("map get -v m", "b\nx\na\n").ok().text(), "x\n");
    assert_eq!(shell.pipe("map get -v m", "a\n").code(1).text(), "");
    assert_eq!(shell.pipe("map get -c m", "b\nx\na\n").ok().text(), "2\n");
    assert_eq!(shell.pipe("map get -c m", "x\n").code(1).text(), "0\n");
    assert_eq!(shell.pipe("map get -q m", "b\n").ok().text(), "");
    shell.pipe("map get -q m", "x\n").code(1);
    assert_eq!(shell.pipe("map get -0 m", "b\0x\0a\0").ok().text(), "b\ttwo\0a\tone\0");
    assert_eq!(shell.pipe("map get -F 2 m", "1\tb\n2\tx\n").ok().text(), "1\tb\ttwo\n");
    assert_eq!(shell.pipe("map get -F 2 --print-field m", "1\tb\n2\tx\n").ok().text(), "b\ttwo\n");
    assert_eq!(shell.pipe("map get --csv -F 2 m", "1,b\r\n").ok().text(), "1,b\ttwo\r\n");
    shell.write("lines", "a\n");
    shell.run("map get lines m").refused(&["the filter comes first", "umbel map get MAP lines"]);
}

#[test]
fn values_are_printed_when_the_input_pauses() {
    let shell = Shell::new();
    shell.pipe("map build -o m", "a\tone\nb\ttwo\n").ok();
    let mut process = shell.start("map get m");
    process.send("a\n");
    assert_eq!(process.next_line(shell::PROCESS_TIMEOUT).unwrap(), b"a\tone\n");
    process.finish().ok();
}

#[test]
fn the_value_is_the_rest_of_the_line_after_the_first_tab() {
    let shell = Shell::new();
    let text = b"a\tx\ty\nb\t\nc\t \xff\n\tempty key\nd\ttrue";
    shell.pipe("map build -p 1e-6 -o m", text).ok();
    let answer = shell.pipe("map get m", "a\nb\nc\n\nd\n").ok();
    assert_eq!(answer.stdout, [&text[..], b"\n"].concat());
    shell.pipe("map build -f -d :: -o m", "a::b::c\n").ok();
    assert_eq!(shell.pipe("map get m", "a\n").ok().text(), "a\tb::c\n");
    shell.pipe("map build -f --trim --lower -o m", "A \t x\r\n").ok();
    assert_eq!(shell.pipe("map get m", "a\n").ok().text(), "a\tx\n");
    shell.pipe("map build -f -0 -o m", "a\nb\t1\n2\0c\t3\0").ok();
    assert_eq!(shell.pipe("map get -0 m", "a\nb\0c\0").ok().text(), "a\nb\t1\n2\0c\t3\0");
}

#[test]
fn threads_pipes_compression_and_repeated_lines_make_no_difference() {
    let shell = Shell::new();
    // Integers that become names when a value that is not an integer follows late.
    let late = |number: u64| if number == 150_000 { "x".to_string() } else { number.to_string() };
    for (values, args) in [
        (&colour as &dyn Fn(u64) -> String, ""),
        (&|number| (number % 300).to_string(), ""),
        (&|number| number.to_string(), "--mutable"),
        (&late, ""),
    ] {
        let text = pairs(1, 160_000, values);
        shell.write("pairs", &text);
        shell.write("twice", [&text[..], &text].concat());
        shell.write("pairs.gz", gzip(&text));
        shell.run(&format!("map build -f -j 1 {args} -o one pairs")).ok();
        let one = shell.read("one");
        for input in ["-j 4 pairs", "-j 3 twice", "pairs.gz", "pairs pairs.gz"] {
            shell.run(&format!("map build -f {args} -o other {input}")).ok();
            assert!(shell.read("other") == one, "{input}");
        }
        shell.pipe(&format!("map build -f {args} -o other"), &text).ok();
        assert!(shell.read("other") == one);
        for threads in ["1", "4"] {
            let answer = shell.pipe(&["map", "get", "-j", threads, "one"], lines(1, 0..160_000)).ok();
            assert!(answer.stdout == text);
        }
    }
}

#[test]
fn integers_are_stored_as_integers_unless_that_is_wasteful() {
    let shell = Shell::new();
    let build = |value: &dyn Fn(u64) -> String| {
        let text = pairs(1, 3000, value);
        shell.pipe("map build -f -o m", &text).ok();
        assert!(shell.pipe("map get m", lines(1, 0..3000)).ok().stdout == text);
        let details = shell.info("m")["details"].clone();
        (details["values"].as_f64().unwrap(), details["code book bytes"].as_f64().is_some())
    };
    assert_eq!(build(&|number| (number % 200).to_string()), (200.0, false));
    assert_eq!(build(&|number| (7 * (number % 200)).to_string()), (1394.0, false));
    assert_eq!(build(&|number| (1_000_000 + number % 2).to_string()), (2.0, true), "two long ones are names");
    assert_eq!(build(&|number| format!("{:02}", number % 20)), (20.0, true), "with zeros before them too");
    assert_eq!(build(&|number| format!("-{number}")), (3000.0, true));
    assert_eq!(build(&|_| u64::MAX.to_string()), (1.0, true));
    let told = shell.run("info m").ok();
    assert!(told.text().contains("one of 1 for each key; their names take"), "{}", told.text());
    shell.pipe("map build -f --values 0..18446744073709551615 -o m", pairs(1, 10, |n| n.to_string())).ok();
    assert!(shell.pipe("map get m", lines(1, 0..10)).ok().stdout == pairs(1, 10, |n| n.to_string()));
    for largest in [u64::MAX, u64::MAX - 1, (1 << 53) + 1] {
        for mutable in ["", "--mutable"] {
            shell.pipe(&format!("map build -f {mutable} --values 0..{largest} -o m"), "a\t1\n").ok();
            let told = shell.run("info m").ok();
            let says = format!("an integer from 0 to {largest} for each key");
            assert!(told.text().contains(&says), "{says}: {}", told.text());
        }
    }
    shell.pipe("map build -f --values 0..255 -o m", pairs(1, 10, |n| n.to_string())).ok();
    let told = shell.run("info m").ok();
    assert!(told.text().contains("an integer from 0 to 255 for each key"), "{}", told.text());
    assert!(told.text().contains("of keys that are not in the map get a value"), "{}", told.text());
}

#[test]
fn a_key_with_two_values_is_refused_by_name() {
    let shell = Shell::new();
    let conflict = "quince\tred\nb\tblue\nquince\tgreen\n";
    shell.write("p.tsv", conflict);
    let says = ["quince has two values, red and green (p.tsv, lines 1 and 3)"];
    shell.run("map build p.tsv -o m").refused(&says);
    shell
        .pipe("map build -o m", conflict)
        .refused(&["quince has two values, red and green (standard input, lines 1 and 3)"]);
    // In two files, far from the start, compressed, and with integers.
    let many = pairs(1, 50_000, |number| number.to_string());
    shell.write("a.gz", gzip([&many[..], b"quince\t5\n"].concat()));
    shell.write("b", "x\t1\ny\t2\nquince\t5\nquince\t6\n");
    let says = ["quince has two values, 5 and 6 (a.gz, line 50001, and b, line 4)"];
    for threads in ["1", "3"] {
        shell.run(&["map", "build", "-j", threads, "a.gz", "b", "-o", "m"]).refused(&says);
    }
    let both = [&many[..], b"Quince\t5\n", &many, b"quince\t6"].concat();
    shell
        .pipe("map build --lower -o m", both)
        .refused(&["quince has two values, 5 and 6 (standard input, lines 50001 and 100002)"]);
    assert_eq!(shell.names("."), ["a.gz", "b", "p.tsv"], "nothing is written");
    // An old map is unchanged.
    shell.pipe("map build -o m", "a\tb\n").ok();
    let before = shell.read("m");
    shell.run("map build -f p.tsv -o m").refused(&["quince"]);
    assert!(shell.read("m") == before);
}

#[test]
fn for_a_pipe_that_is_too_long_to_keep_only_the_values_are_named() {
    let shell = Shell::new();
    let answer = shell.start("map build -o m").feed(|mut stdin| {
        stdin.write_all(b"quince\tred\n")?;
        let value = "x".repeat(1 << 20);
        (0..66).try_for_each(|number| stdin.write_all(format!("{number}\t{value}\n").as_bytes()))?;
        stdin.write_all(b"quince\tgreen\n")
    });
    answer.refused(&["a key has two values, red and green", "cannot be read again"]);
    assert!(!shell.path("m").exists());
}

#[test]
fn for_a_file_that_has_changed_only_the_values_are_named() {
    let shell = Shell::new();
    shell.write("a", "quince\tred\n");
    // Quick to write, and slow to read.
    let line = gzip(format!("x\t{}\n", "x".repeat(1 << 20)));
    shell.write("long.gz", line.repeat(1000));
    shell.write("z", "quince\tgreen\n");
    let mut process = shell.start("map build -j 1 -o m a long.gz z");
    let files = format!("/proc/{}/fd", process.child().id());
    let opened = |file: std::io::Result<fs::DirEntry>| {
        file.and_then(|file| fs::read_link(file.path())).is_ok_and(|path| path.ends_with("long.gz"))
    };
    let reading = || fs::read_dir(&files).expect("Linux tells about open files").any(opened);
    let deadline = Instant::now() + shell::PROCESS_TIMEOUT;
    let wait = || thread::sleep(Duration::from_millis(10));
    // All inputs are opened briefly at first; when this one stays open, the previous one has been
    // read.
    while !(reading() && (wait(), reading()).1) {
        assert!(Instant::now() < deadline, "it has not come to the second file");
    }
    shell.write("a", "orange\tred\n");
    process.finish().refused(&[
        "a key has two values, ",
        "red",
        "green",
        "the key is unknown",
        "the input has changed",
    ]);
}

#[test]
fn invalid_lines_and_values_are_named_with_their_place() {
    let shell = Shell::new();
    shell.write("good", "a\tred\nb\tgreen\n");
    shell.write("bad", "c\tred\nno tab here\nd\tgreen\n");
    shell.write("colours", "red\nblue\n");
    for (args, says) in [
        ("good bad", &["bad, line 2: there is no tab in it"][..]),
        (
            "--values red,blue good",
            &["good, line 2: \"green\" is not among the values of the map: red, blue"],
        ),
        ("--values @colours good", &["good, line 2: \"green\" is not among the values", "red, blue"]),
        ("--values 0..5 good", &["good, line 1: \"red\" is not an integer", "0 to 5"]),
        ("--values @nothing good", &["cannot read the values in nothing", "No such file"]),
        ("--values red,red good", &["\"red\" is given twice"]),
        ("--values 1..5 good", &["--values", "integers start at 0"]),
        ("--kind blocked good", &["'blocked'", "kind of set", "umbel build"]),
        ("--kind bloomier --mutable good", &["--kind", "--mutable", "cannot be used with"]),
        ("-p 2 good", &["between 0 and 1"]),
        ("--max-bytes 10 good", &["--max-bytes 10 is too small"]),
        ("--hash sealed good", &["a sealed hash needs its secret"]),
        ("nothing", &["cannot open nothing"]),
    ] {
        println!("{args}");
        shell.run(&format!("map build -o m {args}")).refused(says);
        assert!(!shell.path("m").exists());
    }
    shell.pipe("map build -o m", "").refused(&["there are no pairs"]);
    shell
        .pipe("map build -o m --values 0..9", "a\t007\n")
        .refused(&["standard input, line 1: \"007\" is not an integer"]);
    shell.pipe("map build -o m --values 0..9", "a\t10\n").refused(&["10 is too large", "up to 9"]);
    shell.pipe("map build --json", "a\tb\n").refused(&["--json", "-o"]);
}

#[test]
fn messages_are_short_and_the_file_of_values_is_not_overwritten() {
    let shell = Shell::new();
    let long = [&b"k\t"[..], &[b'v'; 100_000], b"\nk\tw\n"].concat();
    shell.write("long", &long);
    let answer = shell.run("map build -o m long");
    assert!(answer.stderr.len() < 1000, "{} bytes", answer.stderr.len());
    answer.refused(&["k has two values, vvv", "…"]);

    shell.write("values", b"x\ny\n");
    shell.write("pairs", b"a\tx\n");
    shell.run("map build --values @values -f -o values pairs").refused(&["is both an input and the output"]);
    assert_eq!(shell.read("values"), b"x\ny\n");
    shell.run(&["map", "build", "--values", "", "-o", "m", "pairs"]).refused(&["name the values"]);
    shell.run("map build --values @ -o m pairs").refused(&["name the file after the @"]);
}

#[test]
fn nothing_is_changed_if_the_result_cannot_be_reported() {
    let shell = Shell::new();
    shell.write("pairs", b"a\tx\nb\ty\n");
    shell.run("map build --mutable -o m pairs").ok();
    let before = shell.read("m");
    shell.write("changes", b"a\ty\n");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = shell.program(shell::UMBEL);
    let status = command.args(["map", "set", "--json", "m", "changes"]).stdout(full).status().unwrap();
    assert_eq!(status.code(), Some(2));
    assert!(shell.read("m") == before);
}

/// A pair without a valid key is an error, since it would be missed later. Lines of keys alone are
/// skipped with a warning.
#[test]
fn a_key_that_is_not_hexadecimal_is_refused_with_its_place() {
    let shell = Shell::new();
    shell.pipe("map build --hex --mutable --values 0..9 -o m", "0a\t1\nFF\t2\n").ok();
    assert_eq!(shell.pipe("map get --hex m", "0A\nff\n").ok().text(), "0A\t1\nff\t2\n");
    let before = shell.read("m");
    let broken = "its key is not hexadecimal";
    for (text, says) in [
        ("0a\t1\nzz\t1\nff\t2\n", &["standard input, line 2", broken][..]),
        ("zz\t1\n", &["standard input, line 1", broken]),
        ("zz\tx\n", &["standard input, line 1", broken]),
        ("0a\t1\nzz\n", &["standard input, line 2", broken]),
        ("0a\t1\nff\nzz\t1\n", &["standard input, line 2: there is no tab"]),
        ("0a\tx\nzz\t1\n", &["standard input, line 1: \"x\" is not an integer"]),
    ] {
        for args in ["map set --hex m", "map build --hex --values 0..9 -o new"] {
            println!("{args} {text:?}");
            shell.pipe(args, text).refused(says);
        }
    }
    // Far from the start, and in the second file.
    let many: String = (0..50_000).map(|number| format!("{number:08x}\t1\n")).collect();
    shell.write("a", &many);
    shell.write("b", format!("{many}0\t1\n{many}"));
    shell.run("map build --hex -o new a b").refused(&["b, line 50001", broken]);
    assert!(shell.read("m") == before && !shell.path("new").exists());
}

#[test]
fn a_limit_is_refused_with_a_rate_and_kept_without() {
    let shell = Shell::new();
    let text = pairs(1, 50_000, colour);
    let build = |args: &str| shell.pipe(&format!("map build -f -o m {args}"), &text);
    let answer = build("--max-bytes 50KiB").code(0);
    assert!(answer.stderr.contains("the rate is"), "{}", answer.stderr);
    assert!(number(&shell.info("m"), "bytes") <= 51_200.0);
    assert!(shell.pipe("map get m", lines(1, 0..50_000)).ok().stdout == text);
    build("--max-bytes 50KiB -p 1%").refused(&["50000 keys at a rate of 1 % need"]);
    build("--max-bytes 1MiB -p 1%").ok();
}

#[test]
fn values_of_a_mutable_map_are_changed_in_place() {
    let shell = Shell::new();
    let text = pairs(1, 20_000, colour);
    shell
        .pipe("map build --mutable --values red,green,blue,black,white,pink --meta a=b -p 1e-6 -o m", &text)
        .ok();
    shell.pipe("map set m", pairs(1, 5000, |_| "pink".to_string())).ok();
    let changed = pairs(1, 20_000, |number| if number < 5000 { "pink".to_string() } else { colour(number) });
    assert!(shell.pipe("map get m", lines(1, 0..20_000)).ok().stdout == changed);
    assert_eq!(shell.run("meta m a").ok().text(), "b\n");
    // The last line of a key counts, and absent keys are reported.
    let key = String::from_utf8(line(1, 7)).unwrap();
    let answer =
        shell.pipe("map set m", format!("{key}\tred\nnobody\tred\n{key}\tblue\nno one\tred\n")).code(1);
    assert_eq!(answer.text(), "nobody\tred\nno one\tred\n");
    assert!(answer.stderr.contains("2 keys are not in the map"), "{}", answer.stderr);
    assert_eq!(shell.pipe("map get m", format!("{key}\n")).ok().text(), format!("{key}\tblue\n"));
    let before = shell.read("m");
    assert_eq!(shell.pipe("map set -q m", "nobody\tred\n").code(1).text(), "");
    let json = shell.pipe("map set --json m", format!("{key}\tblue\nnobody\tred\n")).code(1).json();
    assert_eq!((&json["set"], &json["not_present"]), (&1.into(), &1.into()));
    // A value that the map does not have: nothing is written, not even the changes before it.
    shell
        .pipe("map set m", format!("{key}\tred\n{key}\tpurple\n"))
        .refused(&["standard input, line 2: \"purple\" is not among the values", "red, green"]);
    shell.pipe("map set m", "a\n").refused(&["standard input, line 1: there is no tab"]);
    assert!(shell.read("m") == before);
    shell.pipe("map build -f --mutable --values 0..9 -o m", "a\t1\n").ok();
    shell.pipe("map set m", "a\t10\n").refused(&["10 is too large"]);
    shell.pipe("map set m", "a\t9\n").ok();
    assert_eq!(shell.pipe("map get m", "a\n").ok().text(), "a\t9\n");
    shell.pipe("map build -f -o m", "a\t1\n").ok();
    shell.pipe("map set m", "a\t1\n").refused(&["the values of m cannot be changed", "--mutable"]);
}

#[test]
fn maps_sets_and_multisets_are_not_mistaken_for_each_other() {
    let shell = Shell::new();
    shell.pipe("map build -o map", "a\tone\n").ok();
    shell.pipe("map build --mutable -o mutable", "a\tone\n").ok();
    shell.pipe("count build -o counts", "a\na\n").ok();
    shell.build("set", "--kind cuckoo", "a\n");
    shell.write("lines", "a\tone\n");
    let before = shell.contents(".");
    for (file, says) in [
        ("map", "map holds a map (bloomier): ask it with `umbel map get`"),
        ("mutable", "mutable holds a map (bloomier-mutable): ask it with `umbel map get`"),
        ("counts", "counts holds a multiset (multi-resolution): ask it with `umbel count get`"),
    ] {
        for args in [
            format!("check {file} lines"),
            format!("check set --with {file} lines"),
            format!("add {file} lines"),
            format!("add --new {file} lines"),
            format!("remove {file} lines"),
            format!("why {file} a"),
            format!("union {file} {file} -o new"),
            format!("union set {file} -o new"),
            format!("intersect {file} {file} -o new"),
            format!("compare {file} {file}"),
            format!("fold {file} -o new"),
            format!("convert {file} --kind standard -o new"),
            format!("build --like {file} -o new lines"),
        ] {
            println!("{args}");
            shell.run(&args).refused(&[says]);
        }
    }
    for args in ["map get set lines", "map set set lines", "count get set lines", "count add set lines"] {
        shell.run(args).refused(&["set holds a set (cuckoo): ask it with `umbel check`"]);
    }
    shell.run("map get counts lines").refused(&["counts holds a multiset", "umbel count get"]);
    shell.run("count add map lines").refused(&["map holds a map", "umbel map get"]);
    for (kind, says) in [("bloomier", "umbel map build"), ("space-code", "umbel count build")] {
        shell.run(&["build", "--kind", kind, "-o", "new", "lines"]).refused(&[kind, says]);
    }
    assert!(shell.contents(".") == before);
    for file in ["map", "mutable", "counts"] {
        shell.run(&["info", "--bits", file]).ok();
        shell.run(&["info", "--verify", file]).ok();
    }
}

#[test]
fn missing_secrets_and_damage_are_errors() {
    let shell = Shell::new();
    shell.run("key new secret").ok();
    shell.pipe("map build --key-file secret -o m", "a\tone\n").ok();
    shell.pipe("map get m", "a\n").refused(&["m:", "built with a secret"]);
    assert_eq!(shell.pipe("map get --key-file secret m", "a\n").ok().text(), "a\tone\n");
    shell.pipe("map build -f --key-file secret --embed-key -o m", "a\tone\n").ok();
    assert_eq!(shell.pipe("map get m", "a\n").ok().text(), "a\tone\n");
    for at in [shell.read("m").len() - 1, shell.read("m").len() - 64] {
        let mut bytes = shell.read("m");
        bytes[at] ^= 1;
        shell.write("damaged", &bytes);
        shell.pipe("map get damaged", "a\n").refused(&["damaged"]);
    }
}

#[test]
fn the_map_built_is_as_planned() {
    let shell = Shell::new();
    let text = pairs(1, 50_000, colour);
    for kind in ["bloomier", "bloomier-mutable"] {
        let plan = shell.run(&format!("plan --kind {kind} -n 50000 --values 5 --json")).ok().json();
        let values = COLOURS.join(",");
        shell.pipe(&format!("map build -f --kind {kind} --values {values} -o m"), &text).ok();
        let facts = shell.info("m");
        assert_eq!((&plan["kind"], &plan["bits"]), (&facts["kind"], &facts["bits"]), "{plan} {facts}");
        assert_eq!(plan["fpr"], facts["fpr_now"]);
    }
    let planned = shell.run("plan --kind bloomier -n 1e6 --values 0..4").ok();
    assert!(planned.text().contains("of keys that are not in the map get a value"), "{}", planned.text());
    shell.run("plan -n 1e6 --values 5").refused(&["--values is for maps"]);
    shell.run("plan --kind bloomier -n 1e6 --values 0").refused(&["at least one value"]);
}
