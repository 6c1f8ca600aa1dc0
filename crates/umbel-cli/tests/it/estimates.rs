//! `umbel info` states the number of keys no more precisely than it knows it.

use crate::shell::{Shell, lines, number};

/// Returns the keys and the capacity that `info` prints.
fn rows(shell: &Shell, filter: &str) -> [String; 2] {
    let told = shell.run(&format!("info {filter}")).ok();
    ["keys ", "capacity "].map(|name| {
        let row = told.text().lines().find_map(|row| row.strip_prefix(name));
        row.unwrap_or_else(|| panic!("no {name}in {}", told.text())).trim().to_owned()
    })
}

#[test]
fn a_scalable_filter_counts_keys_that_it_took_for_members() {
    let shell = Shell::new();
    // At 10 % it drops 5000 of 100 000 keys, sixty times the standard error.
    for rate in ["10%", "1%", "30%"] {
        for repeated in [1, 2] {
            let input = lines(1, 0..100_000).repeat(repeated);
            shell.build("s", &format!("-f --kind scalable -n 1000 -p {rate}"), input);
            let facts = shell.info("s");
            let (keys, error) = (number(&facts, "estimated_count"), number(&facts, "estimated_count_error"));
            assert!((keys - 1e5).abs() <= 4.0 * error && error < 500.0, "{rate}: {keys} ± {error}");
        }
    }
}

#[test]
fn a_filter_of_three_keys_is_full_and_says_so() {
    let shell = Shell::new();
    for kind in ["standard", "partitioned", "blocked", "counting", "quotient"] {
        shell.build("f", &format!("-f --kind {kind} -n 3 -p 20%"), "2\n4\n9\n");
        let [keys, capacity] = rows(&shell, "f");
        assert_eq!(capacity, "3, full", "{kind}");
        assert!(keys == "3" || keys.contains(" ± ") && !keys.contains("± 0,"), "{kind}: {keys}");
    }
}

#[test]
fn the_room_is_a_number_of_keys_only_if_they_were_counted() {
    let shell = Shell::new();
    shell.build("f", "-n 70000", lines(1, 0..60_000));
    assert_eq!(rows(&shell, "f")[1], "70000, room for 10000 more");
    // Repeated keys are not counted as such.
    shell.pipe("add f", lines(1, 0..60_000)).ok();
    let room = rows(&shell, "f")[1].clone();
    let more = room.strip_prefix("70000, room for about ").and_then(|room| room.strip_suffix(" more"));
    let more: f64 = more.unwrap_or_else(|| panic!("{room}")).parse().unwrap();
    assert!((more - 10_000.0).abs() < 4.0 * number(&shell.info("f"), "estimated_count_error"), "{room}");
    // After a union, the insertions are unknown.
    shell.build("g", "--like f", lines(1, 0..70_000));
    shell.run("union f g -o both").ok();
    assert_eq!(rows(&shell, "both")[1], "70000, about full");
    // Every copy takes a slot of a quotient filter.
    shell.build("q", "--kind quotient -n 1000", [lines(1, 0..400), lines(1, 0..400)].concat());
    assert_eq!(rows(&shell, "q")[1], "1000, room for 200 more");
}

#[test]
fn small_sets_are_compared_with_the_digits_of_their_errors() {
    let shell = Shell::new();
    shell.build("a", "-n 3", "1\n2\n3\n");
    shell.build("b", "--like a", "3\n4\n5\n");
    let told = shell.run("compare a b").ok();
    assert!(!told.text().contains("± 0\n") && told.text().contains(" ± 0."), "{}", told.text());
    let pair = shell.run("compare --json a b").ok().json();
    for (name, truth) in [("left_count", 3.0), ("union", 5.0), ("intersection", 1.0), ("jaccard", 0.2)] {
        let error = number(&pair, &format!("{name}_error"));
        assert!(error > 0.0 && (number(&pair, name) - truth).abs() <= 4.0 * error, "{name}: {pair}");
    }
}
