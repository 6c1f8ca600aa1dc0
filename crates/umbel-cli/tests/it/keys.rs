//! Keys on the command line are looked up, added and removed as if they were lines of the input.

use crate::shell::{Shell, text};

/// Returns a folder with a filter, a map, a multiset and a table.
fn prepared() -> Shell {
    let shell = Shell::new();
    shell.build("filter", "--kind counting -n 100", "apple\nbanana\n17\ttabbed\n-v\n\n");
    shell.pipe("map build -o map", "sun\tyellow\nsea\tblue\n").ok();
    shell.pipe("count build -o count", "sun\nsun\nsun\nsea\n").ok();
    shell.pipe("table put table", "apple\tred\nbanana\tyellow\n").ok();
    shell
}

#[test]
fn keys_give_the_answers_of_lines() {
    let shell = prepared();
    let keys = ["apple", "cherry", "-v", "17\ttabbed", "", "banana", "apple"];
    let lines = text(&keys);
    let options: Vec<String> = keys.iter().map(|key| format!("--key={key}")).collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    for command in [
        &["check", "filter"][..],
        &["check", "-v", "filter"],
        &["check", "-c", "filter"],
        &["check", "-q", "filter"],
        &["check", "--label", "filter"],
        &["check", "--tag", "filter", "--with", "filter"],
        &["check", "-F", "2", "filter"],
        &["check", "-j", "1", "filter"],
        &["map", "get", "map"],
        &["map", "get", "-v", "map"],
        &["count", "get", "count"],
        &["table", "get", "table"],
        &["table", "get", "-v", "table"],
        &["add", "--new", "filter"],
        &["add", "--json", "filter"],
        &["remove", "filter"],
    ] {
        println!("umbel {command:?}");
        let before = shell.read("filter");
        let expected = shell.pipe(command, &lines);
        let after = shell.read("filter");
        shell.write("filter", before);
        // Standard input has other lines, which are not read.
        let answer = shell.pipe(&[command, &options[..]].concat(), "banana\nsea\n");
        assert_eq!(answer.text(), expected.text());
        assert_eq!(answer.stderr, expected.stderr);
        assert_eq!(answer.code, expected.code);
        assert_eq!(shell.read("filter"), after);
    }
}

#[test]
fn a_key_may_begin_with_a_dash_and_hold_newlines_if_lines_end_with_zero_bytes() {
    let shell = prepared();
    assert_eq!(shell.run(&["check", "filter", "--key", "-v"]).ok().text(), "-v\n");
    shell.run(&["check", "filter", "--key", "two\nlines"]).refused(&["has several lines", "-0"]);
    shell.run(&["add", "-0", "filter", "--key", "two\nlines"]).ok();
    assert_eq!(shell.run(&["check", "-0", "filter", "--key", "two\nlines"]).ok().text(), "two\nlines\0");
}

#[test]
fn keys_exclude_files_and_headers() {
    let shell = prepared();
    shell.write("lines", "apple\n");
    for command in
        ["check filter", "add filter", "remove filter", "map get map", "count get count", "table get table"]
    {
        shell.run(&format!("{command} lines --key apple")).code(2);
        shell.run(&format!("{command} --header --key apple")).code(2);
    }
    // The filter may be standard input, since that is not read.
    assert_eq!(shell.redirect("add filter --key cherry", "filter").code(0).stderr, "");
    shell.run("check -q filter --key cherry").ok();
}

#[test]
fn the_error_for_a_missing_file_names_the_option_for_a_key() {
    let shell = prepared();
    for command in
        ["check filter", "add filter", "remove filter", "map get map", "count get count", "table get table"]
    {
        shell.run(&format!("{command} cherry")).refused(&[
            "cannot open cherry",
            "if it is a key and not a file of keys",
            "write --key cherry",
        ]);
    }
    let answer = shell.run(&["check", "filter", "it's ripe"]);
    answer.refused(&[r"--key 'it'\''s ripe'"]);
    // Other commands read files only.
    assert!(!shell.run("uniq cherry").code(2).stderr.contains("--key"));
}
