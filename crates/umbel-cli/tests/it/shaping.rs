//! From a line to its key: every option means the same in `build`, `add`, `check` and `uniq`, and
//! lines without a key are skipped, counted and named.

use crate::shell::{self, Shell};
use std::collections::HashSet;

/// An input, and its records as the options define them.
struct Case<'a> {
    options: &'a [&'a str],
    inputs: &'a [&'a [u8]],
    /// The key of every record that has one, and its printed form.
    records: &'a [(&'a [u8], &'a [u8])],
    /// The message about the records without a key.
    said: &'a str,
}

/// A rate at which no test sees a false positive: one in 10^9 for a thousand keys.
const EXACT: [&str; 4] = ["-n", "1000", "-p", "1e-9"];

/// Asserts that all four commands find these keys in these lines.
#[track_caller]
fn alike(case: &Case) {
    let Case { options, inputs, records, said } = *case;
    let shell = Shell::new();
    let names: Vec<String> = (0..inputs.len()).map(|number| format!("input{number}")).collect();
    for (name, bytes) in names.iter().zip(inputs) {
        shell.write(name, bytes);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let run = |command: &[&str]| {
        let answer = shell.run(&[command, options, &names].concat());
        assert_eq!(answer.stderr, said, "{command:?} {options:?}");
        answer
    };
    // The plain keys, in lines that end with a byte that occurs in none of them.
    let plain = |name: &str, keys: &[&[u8]]| {
        let lines = keys.iter().flat_map(|key| [key, &b"\0"[..]].concat()).collect::<Vec<u8>>();
        shell.build(name, &[&["-f", "-0"], &EXACT[..]].concat(), lines);
    };
    let end = if options.contains(&"-0") { b"\0" } else { b"\n" };
    let printed = |choose: &mut dyn FnMut(&[u8]) -> bool| -> Vec<u8> {
        let chosen = records.iter().filter(|(key, _)| choose(key));
        chosen.flat_map(|(_, line)| [line, &end[..]].concat()).collect()
    };
    let keys: Vec<&[u8]> = records.iter().map(|(key, _)| *key).collect();
    plain("expected", &keys);

    run(&[&["build", "-o", "built"], &EXACT[..]].concat()).code(0);
    assert!(shell.read("built") == shell.read("expected"), "build {options:?}");

    plain("added", &[]);
    run(&["add", "added"]).code(0);
    assert!(shell.read("added") == shell.read("expected"), "add {options:?}");

    let half: HashSet<&[u8]> = shell::first_occurrences(&keys).into_iter().step_by(2).collect();
    plain("half", &half.iter().copied().collect::<Vec<_>>());
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let maybe = run(&["check", "half"]).stdout;
    assert_eq!(shown(&maybe), shown(&printed(&mut |key| half.contains(key))), "check {options:?}");
    let no = run(&["check", "-v", "half"]).stdout;
    assert_eq!(shown(&no), shown(&printed(&mut |key| !half.contains(key))), "check -v {options:?}");

    let mut seen = HashSet::new();
    let first = run(&[&["uniq", "-q"], &EXACT[..]].concat()).code(0).stdout;
    assert_eq!(shown(&first), shown(&printed(&mut |key| seen.insert(key.to_vec()))), "uniq {options:?}");
}

/// Returns records that are their own keys.
fn whole<const N: usize>(keys: [&str; N]) -> [(&[u8], &[u8]); N] {
    keys.map(|key| (key.as_bytes(), key.as_bytes()))
}

/// Returns keys and their printed forms.
fn pairs<'a, const N: usize>(records: [(&'a str, &'a str); N]) -> [(&'a [u8], &'a [u8]); N] {
    records.map(|(key, line)| (key.as_bytes(), line.as_bytes()))
}

#[test]
fn lines_may_end_with_a_zero_byte() {
    alike(&Case {
        options: &["-0"],
        inputs: &[b"a\0two\nlines\0a\0\0last", b"more\0"],
        records: &whole(["a", "two\nlines", "a", "", "last", "more"]),
        said: "",
    });
    alike(&Case {
        options: &["-0", "-d", r"\n", "-F", "2"],
        inputs: &[b"x\na\0y\nb\nz\0z\na"],
        records: &pairs([("a", "x\na"), ("b", "y\nb\nz"), ("a", "z\na")]),
        said: "",
    });
}

#[test]
fn a_field_is_the_key() {
    alike(&Case {
        options: &["-F", "2"],
        inputs: &[b"1\ta\tx\n2\tb\n3\t\tc\n4\ta"],
        records: &pairs([("a", "1\ta\tx"), ("b", "2\tb"), ("", "3\t\tc"), ("a", "4\ta")]),
        said: "",
    });
    for delimiter in [",", "::", " | ", r"\\", r"\t", "é"] {
        let text = delimiter.replace(r"\t", "\t").replace(r"\\", "\\");
        let line = |fields: [&str; 3]| fields.join(&text);
        let lines = [line(["a", "1", "x"]), line(["a", "2", "y:z"]), line(["b", "3", "x"])];
        let input = format!("{}\n", lines.join("\n"));
        let records = [("x", &lines[0][..]), ("y:z", &lines[1]), ("x", &lines[2])];
        alike(&Case {
            options: &["-d", delimiter, "-F", "3"],
            inputs: &[input.as_bytes()],
            records: &pairs(records),
            said: "",
        });
        alike(&Case {
            options: &["-d", delimiter, "-F", "3", "--print-field"],
            inputs: &[input.as_bytes()],
            records: &whole(["x", "y:z", "x"]),
            said: "",
        });
    }
}

#[test]
fn a_header_names_the_fields_of_each_file() {
    alike(&Case {
        options: &["--header", "-F", "mail"],
        inputs: &[b"id\tmail\n1\ta@x\n2\tb@x\n", b"", b"mail\tid\tage\nc@x\t3\t40\na@x\t4\t50", b"mail"],
        records: &pairs([("a@x", "1\ta@x"), ("b@x", "2\tb@x"), ("c@x", "c@x\t3\t40"), ("a@x", "a@x\t4\t50")]),
        said: "",
    });
    // With a field number, or without a field, the first line of each file is skipped too.
    alike(&Case {
        options: &["--header", "-F", "1", "-d", ","],
        inputs: &[b"id,x\n1,2\n", b"head,y\n3,4\n"],
        records: &pairs([("1", "1,2"), ("3", "3,4")]),
        said: "",
    });
    alike(&Case {
        options: &["--header"],
        inputs: &[b"names\na\nb\n", b"names\nb\nc\n"],
        records: &whole(["a", "b", "b", "c"]),
        said: "",
    });
    let shell = Shell::new();
    shell.write("x.tsv", "id\tmail\n1\ta@x\n");
    shell
        .pipe("build -o f --header -F name x.tsv", "")
        .refused(&["x.tsv has no field \"name\": its fields are id, mail"]);
}

#[test]
fn keys_are_trimmed_but_lines_are_printed_unchanged() {
    let records = pairs([("a", "a\r"), ("a", " a\t"), ("a b", "  a b "), ("", " \t "), ("b", "b")]);
    alike(&Case {
        options: &["--trim"],
        inputs: &[b"a\r\n a\t\n  a b \n \t \nb"],
        records: &records,
        said: "",
    });
    alike(&Case {
        options: &["--trim", "-d", ",", "-F", "2", "--print-field"],
        inputs: &[b"1, a\n2,a\r\n3,b ,c\n"],
        records: &pairs([("a", " a"), ("a", "a\r"), ("b", "b ")]),
        said: "",
    });
}

#[test]
fn keys_are_lowered_by_the_rules_of_unicode() {
    let records = [
        ("strasse", "STRASSE"),
        ("łódź", "ŁÓDŹ"),
        ("łódź", "Łódź"),
        ("привет", "ПРИВЕТ"),
        ("ß", "ẞ"),
        ("i̇", "İ"),
        ("abc-1", "ABC-1"),
    ];
    let input: Vec<&str> = records.iter().map(|(_, line)| *line).collect();
    let input = [input.join("\n").as_bytes(), b"\nA\xffB\n"].concat();
    let mut expected = pairs(records).to_vec();
    // Bytes that are not UTF-8 are unchanged, and the rest is lowered.
    expected.push((b"a\xffb", b"A\xffB"));
    alike(&Case { options: &["--lower"], inputs: &[&input], records: &expected, said: "" });
}

#[test]
fn keys_are_decoded_from_hexadecimal() {
    alike(&Case {
        options: &["--hex"],
        inputs: &[b"616263\n4A4b\n\nxyz\n4a4B\n616\n 61\nff0a\n"],
        records: &[(b"abc", b"616263"), (b"JK", b"4A4b"), (b"", b""), (b"JK", b"4a4B"), (b"\xff\n", b"ff0a")],
        said: "umbel: skipped 3 lines that are not hexadecimal; the first is line 4 of the input\n",
    });
    alike(&Case {
        options: &["--hex", "--trim", "-F", "2", "-d", " "],
        inputs: &[b"x 61\r\nx\ny 6\nz 62 z\n"],
        records: &pairs([("a", "x 61\r"), ("b", "z 62 z")]),
        said: "umbel: skipped 2 lines that lack the field or are not hexadecimal; the first is line 2 of the input\n",
    });
    // A key may contain a zero byte.
    let shell = Shell::new();
    shell.build("f", "--hex -p 1e-9", "00ff00\n");
    assert!(shell.load("f").filter.contains(&b"\0\xff\0"[..]) && !shell.load("f").filter.contains("00ff00"));
}

#[test]
fn records_are_csv() {
    let input = concat!(
        "id,name,note\r\n",
        "1,plain,x\r\n",
        "2,\"comma, inside\",x\r\n",
        "3,\"a \"\"quote\"\"\",x\r\n",
        "4,\"two\r\nlines\",x\r\n",
        "5,,x\r\n",
        "6,in\"side,x\r\n",
        "7,plain",
    );
    let lines = [
        "1,plain,x\r",
        "2,\"comma, inside\",x\r",
        "3,\"a \"\"quote\"\"\",x\r",
        "4,\"two\r\nlines\",x\r",
        "5,,x\r",
        "6,in\"side,x\r",
        "7,plain",
    ];
    let keys = ["plain", "comma, inside", "a \"quote\"", "two\r\nlines", "", "in\"side", "plain"];
    let mut records = whole(keys);
    alike(&Case {
        options: &["--csv", "--header", "-F", "name", "--print-field"],
        inputs: &[input.as_bytes()],
        records: &records,
        said: "",
    });
    for (record, line) in records.iter_mut().zip(lines) {
        record.1 = line.as_bytes();
    }
    alike(&Case {
        options: &["--csv", "--header", "-F", "2"],
        inputs: &[input.as_bytes()],
        records: &records,
        said: "",
    });
    // A carriage return at the end of a record belongs to the line end, not to the last field.
    alike(&Case {
        options: &["--csv", "-F", "2"],
        inputs: &[b"1,a\r\n2,\"a\"\r\n3,b\r\n4,\"b\r\"\r\n"],
        records: &pairs([("a", "1,a\r"), ("a", "2,\"a\"\r"), ("b", "3,b\r"), ("b\r", "4,\"b\r\"\r")]),
        said: "",
    });
    alike(&Case {
        options: &["--csv", "-d", ";", "--header", "-F", "mail; work", "--lower", "--trim"],
        inputs: &[b"id;\"mail; work\"\n1;\" A@X \"\n2;a@x\n", b"\"mail; work\"\n\"B;C\"\n"],
        records: &pairs([("a@x", "1;\" A@X \""), ("a@x", "2;a@x"), ("b;c", "\"B;C\"")]),
        said: "",
    });
}

#[test]
fn lines_without_a_key_are_counted_and_the_first_is_named() {
    let shell = Shell::new();
    // Two inputs of several blocks each: line 20 000 of the second is the first that lacks its
    // field.
    let good = |from: u64, to: u64| (from..to).map(|n| format!("{n}\tkey{n}\n")).collect::<String>();
    shell.write("first", good(0, 60_000));
    shell.write("second", good(60_000, 79_999) + "lost\n" + &good(80_000, 120_000) + "lost\n" + "lost");
    shell.build("all", "-p 1e-9", (0..120_000).map(|n| format!("key{n}\n")).collect::<String>());
    for threads in ["1", "2", "7"] {
        let common = ["-F", "2", "-j", threads, "first", "second"];
        for command in
            [&["build", "-o", "f", "-f"][..], &["check", "-c", "all"], &["add", "f"], &["uniq", "-q"]]
        {
            let answer = shell.run(&[command, &common].concat()).code(0);
            let said = "umbel: skipped 3 lines that lack the field; the first is line 80000 of the input\n";
            assert_eq!(answer.stderr, said, "{command:?}");
            if command[0] == "check" {
                assert_eq!(answer.text(), "119999\n");
            }
        }
        assert_eq!(shell.info("f")["count"], 239_998);
    }
    // A header is not counted among the lines.
    let answer = shell.pipe("uniq -q --header -F b", "a\tb\n1\t2\n3\n4\n").code(0);
    assert_eq!(
        answer.stderr,
        "umbel: skipped 2 lines that lack the field; the first is line 2 of the input\n"
    );
    // If no line has a key, an option is wrong, and no filter is made.
    for command in [&["build", "-o", "none"][..], &["check", "all"], &["add", "f"], &["uniq"]] {
        let answer = shell.pipe(&[command, &["-F", "3"]].concat(), "a\tb\nc\td\n");
        answer.refused(&["all 2 lines lack the field: see -F, -d, --csv and --hex"]);
    }
    assert!(!shell.path("none").exists());
}
