//! `umbel table`: a store answers like a map, one put after the other, and nothing is lost or half
//! done when input, files or other processes get in the way.

use crate::shell::{Shell, gzip, mix};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Returns lines of keys and values.
fn pairs(map: &BTreeMap<String, String>) -> String {
    map.iter().map(|(key, value)| format!("{key}\t{value}\n")).collect()
}

#[test]
fn a_store_answers_like_a_map() {
    let (shell, mut map) = (Shell::new(), BTreeMap::new());
    for round in 0..14u64 {
        let number = |n: u64| mix(round * 1000 + n) % 600;
        let put: Vec<_> = (0..100).map(|n| (format!("key{}", number(n)), format!("{round}.{n}"))).collect();
        shell
            .pipe(
                "table put t",
                put.iter().map(|(key, value)| format!("{key}\t{value}\n")).collect::<String>(),
            )
            .ok();
        map.extend(put);
        let gone: Vec<_> = (100..130).map(|n| format!("key{}", number(n))).collect();
        let any = gone.iter().filter(|key| map.remove(*key).is_some()).count() > 0;
        shell.pipe("table delete t", gone.join("\n")).code(if any { 0 } else { 1 });
        assert_eq!(shell.run("table scan t").ok().text(), pairs(&map), "{round}");
        assert!(shell.run("table stats --json t").ok().json()["tables"].as_array().unwrap().len() <= 8);
    }
    let asked: String = (0..600).rev().map(|n| format!("key{n}\n")).collect();
    let found: String = (0..600)
        .rev()
        .map(|n| format!("key{n}"))
        .filter_map(|key| Some(format!("{key}\t{}\n", map.get(&key)?)))
        .collect();
    for threads in ["1", "3"] {
        assert_eq!(shell.pipe(&format!("table get t -j {threads}"), &asked).ok().text(), found);
    }
    shell.run("table merge t").ok();
    assert_eq!(shell.run("table scan t").ok().text(), pairs(&map));
    let stats = shell.run("table stats --json t").ok().json();
    assert_eq!(stats["tables"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&stats["tables"][0]["entries"], &stats["tables"][0]["deleted"]),
        (&map.len().into(), &0.into())
    );
}

#[test]
fn answers_and_exit_codes_are_those_of_map_get() {
    let shell = Shell::new();
    shell.pipe("table put t", "a\tone\nb\ttwo\nempty\t\n").ok();
    assert_eq!(shell.pipe("table get t", "b\nx\nempty\nb").ok().text(), "b\ttwo\nempty\t\nb\ttwo\n");
    assert_eq!(shell.pipe("table get t", "x\n").code(1).text(), "");
    assert_eq!(shell.pipe("table get -v t", "b\nx\n").ok().text(), "x\n");
    assert_eq!(shell.pipe("table get -c t", "b\nx\na\n").ok().text(), "2\n");
    assert_eq!(shell.pipe("table get -q t", "b\n").ok().text(), "");
    assert_eq!(shell.pipe("table get -F 2 t", "1\tb\n").ok().text(), "1\tb\ttwo\n");
    assert_eq!(shell.run("table scan --from b t").ok().text(), "b\ttwo\nempty\t\n");
    assert_eq!(shell.run("table scan --from a --to b t").ok().text(), "a\tone\n");
    assert_eq!(shell.run("table scan --prefix emp t").ok().text(), "empty\t\n");
    assert_eq!(shell.run("table scan --prefix nothing t").code(1).text(), "");
    assert_eq!(shell.pipe("table delete t", "x\ny\n").code(1).text(), "");
}

#[test]
fn keys_and_values_of_any_bytes_come_back() {
    let shell = Shell::new();
    // A key with a tab and a newline, and a value with a newline and a tab.
    shell.pipe("table put --hex -0 t", b"090a\tone\ntwo\tthree\0ff00\t\xff\0").ok();
    let lines = shell.run("table scan --hex -0 t").ok();
    assert_eq!(lines.stdout, b"090a\tone\ntwo\tthree\0ff00\t\xff\0");
    shell.pipe("table put --hex -0 copy", &lines.stdout).ok();
    assert_eq!(shell.run("table scan --hex -0 copy").ok().stdout, lines.stdout);
    assert_eq!(shell.run("table scan --hex --prefix ff t").ok().stdout, b"ff00\t\xff\n");
    shell.run("table scan --hex --prefix f t").failed(&["f is not pairs of hexadecimal digits"]);
    shell.write("pairs.gz", gzip("k\tv\n"));
    shell.run("table put packed pairs.gz").ok();
    assert_eq!(shell.run("table scan packed").ok().text(), "k\tv\n");
}

#[test]
fn a_put_that_fails_changes_nothing() {
    let shell = Shell::new();
    shell.pipe("table put t", "a\t1\n").ok();
    let before = shell.contents("t");
    shell.write("good", "a\t2\nb\t2\n");
    shell.write("bad", "c\t3\nno tab\n");
    shell.run("table put t good bad").failed(&["bad, line 2", "there is no tab in it"]);
    shell.pipe("table put --hex t", "61\t2\nxyz\t3\n").failed(&["standard input, line 2", "not hexadecimal"]);
    shell
        .pipe("table put t", format!("a\t2\n{}\t3\n", "k".repeat(70_000)))
        .failed(&["line 2", "at most 65536 bytes"]);
    assert_eq!(shell.contents("t"), before);
    shell.pipe("table put new", "no tab\n").failed(&["line 1"]);
    assert!(!shell.path("new").exists(), "no store is left behind");
}

#[test]
fn saved_reads_add_up_over_all_lookups() {
    let shell = Shell::new();
    for table in 0..4 {
        shell.pipe("table put t", (0..200).map(|n| format!("{table}.{n}\tv\n")).collect::<String>()).ok();
    }
    let absent: String = (0..1000).map(|n| format!("absent{n}\n")).collect();
    for _ in 0..2 {
        let answer = shell.pipe("table get t", &absent).code(1);
        assert_eq!(answer.stderr, "", "counting is silent");
    }
    let stats = shell.run("table stats --json t").ok().json();
    assert_eq!((&stats["lookups"], &stats["filter_queries"]), (&2000.into(), &8000.into()));
    let (saved, read) = (stats["reads_saved"].as_u64().unwrap(), stats["reads"].as_u64().unwrap());
    assert!(saved + read == 8000 && read < 400, "a rate of 1 %: {stats}");
    assert!(
        shell.run("table stats t").ok().text().contains(&format!("table reads saved    {saved} of 8000"))
    );
    // Damaged counts are reported and kept, and lookups answer all the same.
    shell.write("t/counts", "damaged");
    assert_eq!(shell.pipe("table get t", "0.7\n").ok().text(), "0.7\tv\n");
    shell.run("table stats t").failed(&["t/counts is damaged", "remove it"]);
    assert_eq!(shell.read("t/counts"), b"damaged");
}

#[test]
fn processes_that_put_at_once_lose_nothing() {
    let shell = Shell::new();
    let mut processes: Vec<_> = (0..8).map(|_| shell.start("table put t")).collect();
    for (number, process) in processes.iter_mut().enumerate() {
        process.send((0..100).map(|n| format!("{number}.{n}\t{n}\n")).collect::<String>());
    }
    let reader = shell.start("table put other");
    processes.into_iter().chain([reader]).for_each(|process| drop(process.finish().ok()));
    assert_eq!(shell.run("table scan t").ok().text().lines().count(), 800);
}

#[test]
fn a_damaged_table_is_named_and_nothing_is_lost() {
    let shell = Shell::new();
    for round in 0..2 {
        shell.pipe("table put t", (0..500).map(|n| format!("{round}.{n}\t{n}\n")).collect::<String>()).ok();
    }
    let name = "t/00000001-00000001.table";
    let whole = shell.read(name);
    let mut damaged = whole.clone();
    damaged[whole.len() / 3] ^= 1;
    for bytes in [damaged, whole[..whole.len() / 2].to_vec()] {
        shell.write(name, &bytes);
        let before = shell.contents("t");
        shell.run("table scan t").failed(&[name, "damaged"]);
        shell.run("table merge t").failed(&[name, "damaged"]);
        assert_eq!(shell.contents("t"), before);
        assert_eq!(shell.pipe("table get t", "1.7\n").ok().text(), "1.7\t7\n", "of another table");
    }
    let stats = shell.run("table stats t");
    assert_eq!(stats.code, Some(2));
    assert!(stats.text().contains("damaged") && stats.stderr.contains(name), "{stats:?}");
    shell.pipe("table put t", "new\tvalue\n").ok();
    shell.write(name, whole);
    assert_eq!(shell.run("table scan t").ok().text().lines().count(), 1001);
}

#[test]
fn only_put_creates_a_store_and_only_where_nothing_else_is() {
    let shell = Shell::new();
    fs::create_dir(shell.path("letters")).unwrap();
    shell.write("letters/ada.txt", "Dear Ada");
    for command in ["table get", "table scan", "table stats", "table delete", "table merge"] {
        for folder in ["nowhere", "letters"] {
            shell.pipe(&format!("{command} {folder}"), "").failed(&[
                "there is no store",
                folder,
                "table put",
            ]);
        }
    }
    shell.pipe("table put letters", "a\tb\n").failed(&["letters holds other files"]);
    assert_eq!(
        (shell.names("."), shell.names("letters")),
        (vec!["letters".to_string()], vec!["ada.txt".to_string()])
    );
    // An empty input makes an empty store.
    shell.pipe("table put empty", "").ok();
    shell.run("table scan empty").code(1);
    assert!(shell.run("table stats empty").ok().text().starts_with("tables               0\n"));
}

#[test]
fn the_secret_of_a_store_is_private_and_no_key_is_lost_without_it() {
    let shell = Shell::new();
    shell.pipe("table put t", "a\t1\n").ok();
    let secret = shell.path("t/filters.key");
    assert_eq!(fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o600);
    shell.write("t/filters.key", "my notes\n");
    shell.pipe("table put t", "b\t2\n").failed(&[
        "t/filters.key",
        "is not a key file",
        "filters are built again",
    ]);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "my notes\n");
    assert_eq!(shell.pipe("table get t", "a\n").ok().text(), "a\t1\n");
    fs::remove_file(&secret).unwrap();
    assert_eq!(shell.pipe("table get t", "a\n").ok().text(), "a\t1\n");
    shell.pipe("table put t", "b\t2\n").ok();
    assert_eq!(shell.run("table scan t").ok().text(), "a\t1\nb\t2\n");
    assert!(fs::read_to_string(&secret).unwrap().starts_with("umbel-key keyed "));
}

#[test]
fn a_store_that_cannot_be_written_to_is_read() {
    let shell = Shell::new();
    shell.pipe("table put t", "a\t1\n").ok();
    shell.allow("t", 0o555);
    assert_eq!(shell.pipe("table get t", "a\n").ok().text(), "a\t1\n");
    assert_eq!(shell.run("table scan t").ok().text(), "a\t1\n");
    shell.run("table stats t").ok();
    shell.allow("t", 0o755);
    // Not even a privileged user can write counts to a directory.
    fs::remove_file(shell.path("t/counts")).ok();
    fs::create_dir(shell.path("t/counts")).unwrap();
    assert_eq!(shell.pipe("table get t", "a\n").ok().text(), "a\t1\n");
}
