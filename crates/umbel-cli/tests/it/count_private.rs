//! `umbel count ask` and `umbel count answer`: counts without revealing the key, through files.

use crate::shell::{Shell, lines};
use std::fs;

/// Returns a folder with a multiset of two thousand keys, some recorded often, and their list.
fn counted() -> Shell {
    let shell = Shell::new();
    let list: String = (0..2000).map(|key| format!("host{key}\n")).collect();
    shell.write("list", &list);
    let often = "host7\n".repeat(500) + &"host8\n".repeat(20);
    shell.pipe("count build -o store", list + &often).ok();
    shell
}

/// Returns the numbers in a text, in order.
fn numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn the_counts_are_those_of_count_get() {
    let shell = counted();
    let keys = ["host7", "host8", "host1999", "nobody"];
    let expected = shell.pipe("count get store", keys.join("\n") + "\n").ok().text().to_owned();
    let answer = shell.run("count ask --cover 100 store host7 host8 host1999 nobody").code(0);
    assert_eq!(answer.text(), expected);
    let likely = shell.pipe("count get --estimator mle store", "host7\nhost8\n").ok().text().to_owned();
    let asked = shell.run("count ask --cover 100 --estimator mle store host7 host8").code(0);
    assert!(likely != expected && asked.text() == likely, "{likely}");
    // At least as many as wished, and fewer than twice as many, for each of four keys.
    let [classes, of_classes, fit, keys] = numbers(&answer.stderr)[..] else { panic!("{}", answer.stderr) };
    assert!(classes <= 4 && of_classes == 16, "{}", answer.stderr);
    assert!(
        (100 * classes..200 * classes).contains(&fit) && (1900..=2100).contains(&keys),
        "{}",
        answer.stderr
    );
    // A key that was certainly never recorded: exit code 1, as count get has it.
    let never = (0..100)
        .map(|key| format!("never{key}"))
        .find(|key| shell.pipe("count get store", format!("{key}\n")).text().ends_with("\t0\t0\t0\n"));
    shell.run(&["count", "ask", "--cover", "100", "store", &never.expect("most are zero")]).code(1);
}

#[test]
fn both_sides_run_through_files() {
    let shell = counted();
    let expected = shell.pipe("count get store", "host7\nhost8\n").ok().text().to_owned();
    assert_eq!(shell.run("count answer --shape store -o shape").ok().text(), "");
    // The list is with those who ask.
    let asked = shell.run("count ask --cover 100 --universe list shape host7 -o question").code(0);
    assert_eq!(asked.text(), "");
    let [1, 16, listed, 2000] = numbers(&asked.stderr)[..] else { panic!("{}", asked.stderr) };
    // 125 are expected; five standard deviations of a binomial number.
    assert!((70..180).contains(&listed), "{listed}");
    let answered = shell.run("count answer store question -o answer").code(0);
    assert!(answered.stderr.contains(&format!("{listed} keys")), "{}", answered.stderr);
    assert_eq!(
        shell.run("count ask answer host7").ok().text(),
        expected.lines().next().unwrap().to_owned() + "\n"
    );
    // Another key of the list has the same question if it shares the class, and another otherwise.
    shell.run("count ask --cover 100 --universe list shape host7 -o again").code(0);
    assert_eq!(fs::read(shell.path("again")).unwrap(), fs::read(shell.path("question")).unwrap());
    // The list is with the keeper: the question is the class alone, and shorter.
    shell.run("count ask --cover 100 shape host7 host8 -o bare").code(0);
    assert!(fs::metadata(shell.path("bare")).unwrap().len() < 100);
    shell.run("count answer store bare -o no").failed(&[
        "bare",
        "names a class of keys and lists none",
        "--universe",
    ]);
    shell.run("count answer store bare --universe list -o answer2").code(0);
    assert_eq!(shell.run("count ask answer2 host7 host8").ok().text(), expected);
    // No message contains a key, and the question not even its digest alone.
    for file in ["shape", "question", "bare", "answer", "answer2"] {
        let bytes = fs::read(shell.path(file)).unwrap();
        assert!(!bytes.windows(4).any(|part| part == b"host"), "{file}");
    }
}

#[test]
fn json_has_the_counts_and_what_was_revealed() {
    let shell = counted();
    let facts = shell.run("count ask --cover 100 --universe list store host7 --json").ok().json();
    assert_eq!(facts["counts"][0]["key"], "host7");
    let number = |name: &str| facts["counts"][0][name].as_f64().unwrap();
    assert!(number("low") <= number("count") && number("count") <= number("high"));
    assert!(number("low") < 501.0 && 501.0 < number("high"), "{facts}");
    assert_eq!((&facts["revealed"]["classes"], &facts["revealed"]["class_bits"]), (&1.into(), &4.into()));
    assert_eq!((&facts["revealed"]["keys"], &facts["revealed"]["expected"]), (&2000.into(), &125.0.into()));
    assert!((70..180).contains(&facts["revealed"]["listed"].as_u64().unwrap()));
    // A question that is written has no counts yet, from a multiset and from its shape.
    shell.run("count answer --shape store -o shape").ok();
    for from in ["store", "shape"] {
        let line = format!("count ask --cover 100 --universe list {from} host7 -f -o question --json");
        let written = shell.run(&line).ok().json();
        assert_eq!(written["revealed"], facts["revealed"], "{from}");
        assert!(written.get("counts").is_none(), "{written}");
    }
    let warned = shell.run("count ask --cover 5000 shape host7 -f -o question --json").code(0);
    assert!(warned.stderr.contains("a cover of 5000"), "{}", warned.stderr);
    assert_eq!(warned.json()["revealed"]["class_bits"], 0);
}

#[test]
fn a_single_key_is_counted_in_the_singular() {
    let shell = counted();
    shell.write("one", "host7\n");
    shell.run("count ask --cover 1 --universe one store host7 -o question").code(0);
    shell.run("count answer --max-keys 0 store question -o answer").failed(&["asks for 1 key, and"]);
    let answered = shell.run("count answer store question -o answer").code(0);
    assert!(answered.stderr.contains("the counts of 1 key;"), "{}", answered.stderr);
}

#[test]
fn questions_that_reveal_too_much_are_refused() {
    let shell = counted();
    shell.run("count answer --shape store -o shape").ok();
    shell.run("count ask --cover 100 --universe list shape stranger -o q").failed(&[
        "stranger",
        "list",
        "would stand out among the keys of the list",
    ]);
    shell.run("count ask store host7").failed(&["--cover"]);
    shell.run("count ask --cover 0 store host7").refused(&[]);
    shell.run("count ask --cover 10 shape host7").failed(&["shape", "-o"]);
    shell.run("count ask --cover 10 store").refused(&["KEY"]);
    shell.run("count ask --cover 2000 --universe list shape host7 -o all").code(0);
    shell.run("count answer --max-keys 1999 store all -o a").failed(&[
        "2000",
        "an answer is limited to 1999",
        "--max-keys",
    ]);
    shell.run("count answer --max-keys 2000 store all -o a").code(0);
    shell.run("count ask --cover 10 a host7").failed(&["is an answer"]);
    shell.run("count ask --cover 10 all host7").failed(&["is a question", "count answer"]);
    let warned = shell.run("count ask --cover 5000 store host7").code(0);
    assert!(warned.stderr.contains("nothing") && warned.stderr.contains("5000"), "{}", warned.stderr);
    // A key that the answer does not have.
    shell.run("count ask --cover 100 --universe list shape host7 -o q").code(0);
    shell.run("count answer store q -o one").code(0);
    let missing = shell.run("count ask one nobody").code(1);
    assert!(missing.stderr.contains("nobody is not in the answer"), "{}", missing.stderr);
    // Nothing is overwritten by mistake.
    shell.run("count answer store q -o one").failed(&["one exists"]);
    shell.run("count answer store q -f -o q").failed(&["q"]);
    shell.run("count answer store").refused(&["QUESTION"]);
    shell.run("count answer store q").failed(&["-o"]);
}

#[test]
fn a_multiset_with_a_secret_cannot_be_asked_by_others() {
    let shell = Shell::new();
    shell.run("key new secret --hash keyed").ok();
    shell.pipe("count build --hash keyed --key-file secret -o store", lines(1, 0..100)).ok();
    for command in ["ask --cover 10 store k", "answer --shape store -o shape"] {
        shell.run(&format!("count {command}")).failed(&["store", "without which nobody can ask for a key"]);
    }
    shell.pipe("build -o set", "a\n").ok();
    shell.run("count ask --cover 10 set a").failed(&["set", "umbel check"]);
}

#[test]
fn damaged_messages_are_named() {
    let shell = counted();
    shell.run("count answer --shape store -o shape").ok();
    shell.run("count ask --cover 100 --universe list shape host7 -o question").code(0);
    let mut bytes = fs::read(shell.path("question")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    shell.write("damaged", &bytes);
    shell.run("count answer store damaged -o a").failed(&["damaged", "checksum"]);
    shell.write("cut", &bytes[..middle]);
    shell.run("count answer store cut -o a").failed(&["cannot use cut: the file is truncated"]);
    shell.run("count ask cut host7").failed(&["cannot use cut: the file is truncated"]);
    shell.run("count answer store list -o a").failed(&["list", "not a question"]);
    shell.run("count answer store nowhere -o a").failed(&["nowhere"]);
    assert!(!shell.path("a").exists());
}
