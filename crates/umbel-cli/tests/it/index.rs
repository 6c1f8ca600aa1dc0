//! `umbel index`: the first steps with a directory of logs, and common mistakes.

use crate::shell::{Shell, number};
use std::fs;

fn logs() -> Shell {
    let shell = Shell::new();
    fs::create_dir(shell.path("logs")).unwrap();
    for day in 1..=20 {
        shell.write(&format!("logs/day{day:02}.log"), format!("all quiet on day{day}\n").repeat(day));
    }
    shell.write("logs/day07.log", "disk full on node7, see error_log\n");
    shell
}

#[test]
fn first_steps() {
    let shell = logs();
    shell.run("index build logs").ok();
    assert_eq!(shell.run("index which logs.idx error_log").ok().text(), "logs/day07.log\n");
    assert_eq!(
        shell.run("grep -w node7 logs").ok().text(),
        "logs/day07.log:disk full on node7, see error_log\n"
    );
    assert!(shell.run("index which logs.idx nowhere").code(1).text().is_empty());
    // A day later.
    shell.write("logs/day21.log", "disk full again\n");
    fs::remove_file(shell.path("logs/day01.log")).unwrap();
    assert_eq!(shell.run("index which logs.idx disk").ok().text(), "logs/day07.log\nlogs/day21.log\n");
    assert_eq!(shell.run("index update logs.idx").ok().text(), "1 read, 19 kept, 1 dropped\n");
    assert_eq!(shell.run("index update logs.idx").ok().text(), "0 read, 20 kept, 0 dropped\n");
    assert_eq!(shell.run("index which logs.idx again").ok().text(), "logs/day21.log\n");
    let info = shell.run("index info logs.idx").ok();
    assert!(info.text().contains("20, with") && info.text().contains("measured"), "{}", info.text());
    let facts = shell.run("index info logs.idx --json").ok().json();
    assert_eq!((number(&facts, "files"), number(&facts, "filters")), (20.0, 20.0));
    assert!(number(&facts, "reads_saved") > 0.98);
    assert_eq!(number(&facts, "index_bytes"), shell.read("logs.idx").len() as f64);
    assert_eq!(shell.run("index info logs.idx --files").ok().text().lines().count(), 21);
}

#[test]
fn which_finds_files_with_all_or_any_of_the_words() {
    let shell = logs();
    shell.run("index build logs -o x.idx").ok();
    assert_eq!(shell.run("index which x.idx disk node7").ok().text(), "logs/day07.log\n");
    assert_eq!(shell.run(&["index", "which", "x.idx", "Disk full!"]).ok().text(), "logs/day07.log\n");
    shell.run("index which x.idx disk day3").code(1);
    assert_eq!(
        shell.run("index which x.idx --any disk day3").ok().text(),
        "logs/day03.log\nlogs/day07.log\n"
    );
    assert_eq!(shell.run("index which x.idx -0 disk").ok().text(), "logs/day07.log\0");
    let all = shell.run(&["index", "which", "x.idx", "--", "--"]).code(0);
    assert_eq!(all.text().lines().count(), 20);
    assert!(all.stderr.contains("every file may hold it"), "{}", all.stderr);
    shell.run("index which x.idx -s isk").refused(&["whole words only", "--substrings"]);
    shell.run("index build logs -o s.idx -s").ok();
    assert_eq!(shell.run(&["index", "which", "s.idx", "-s", "isk ful"]).ok().text(), "logs/day07.log\n");
    // An index that was moved away from its files.
    fs::rename(shell.path("logs"), shell.path("gone")).unwrap();
    assert_eq!(shell.run("index which x.idx --offline disk").ok().text(), "logs/day07.log\n");
    shell.run("index which x.idx disk").failed(&["logs"]);
}

#[test]
fn an_index_is_not_replaced_by_mistake() {
    let shell = logs();
    shell.run("index build logs").ok();
    let before = shell.read("logs.idx");
    shell.run("index build logs").refused(&["logs.idx exists", "-f"]);
    assert_eq!(shell.read("logs.idx"), before);
    shell.run("index build logs -f").ok();
    assert_eq!(shell.read("logs.idx"), before);
    shell.run("index build logs/day01.log logs/day02.log").refused(&["-o"]);
    shell.run("index build logs/day01.log logs/day02.log -o two.idx").ok();
    assert_eq!(shell.run("index which two.idx quiet").ok().text(), "logs/day01.log\nlogs/day02.log\n");
    shell.run("index build nowhere -o no.idx").failed(&["nowhere"]);
    shell.run("index build nowhere").refused(&["cannot open nowhere", "No such file"]);
    shell.run("index build logs nowhere").refused(&["cannot open nowhere", "No such file"]);
    shell.run("index build logs --rate 2 -o x.idx").refused(&["rate"]);
    shell.run("index build logs --grams 9 -o x.idx").refused(&["grams", "2 to 8"]);
    shell.run("index build logs --block 3 -o x.idx").refused(&["block"]);
    shell.run("index which logs/day01.log quiet").refused(&["logs/day01.log", "not an index"]);
    shell.run("index info nowhere.idx").refused(&["nowhere.idx"]);
    let mut damaged = before.clone();
    damaged[100] ^= 1;
    shell.write("damaged.idx", damaged);
    shell.run("index which damaged.idx quiet").refused(&["damaged.idx", "checksum"]);
    shell.run("index update damaged.idx").refused(&["damaged.idx", "checksum"]);
}

#[test]
fn the_index_in_its_own_directory_is_not_indexed() {
    let shell = logs();
    shell.run("index build logs -o logs/own.idx").ok();
    shell.run("index build logs -o logs/own.idx -f").ok();
    let facts = shell.run("index info logs/own.idx --json").ok().json();
    assert_eq!(number(&facts, "files"), 20.0);
    assert!(shell.run("grep -w UMBELIDX logs --index logs/own.idx").code(1).text().is_empty());
}

#[test]
fn a_directory_named_instead_of_its_index_is_explained() {
    let shell = logs();
    shell
        .run("index update logs")
        .refused(&["logs is a directory without an index", "`umbel index build logs`"]);
    shell.run("index update logs.idx").refused(&["there is no index logs.idx", "`umbel index build logs`"]);
    shell.run("index update other").refused(&["there is no index other", "`umbel index build` makes one"]);
    shell.run("index build logs").ok();
    shell.run("index update logs").refused(&["its index is logs.idx", "`umbel index update logs.idx`"]);
}

#[test]
fn an_update_without_the_disk_keeps_the_index() {
    let shell = logs();
    shell.run("index build logs").ok();
    let before = shell.read("logs.idx");
    fs::rename(shell.path("logs"), shell.path("unmounted")).unwrap();
    fs::create_dir(shell.path("logs")).unwrap();
    let update = shell.run("index update logs.idx").code(2);
    for said in
        ["logs: it is empty, but the index has files of it (20)", "stay in the index as they were (20)"]
    {
        assert!(update.stderr.contains(said), "{}", update.stderr);
    }
    assert_eq!(update.text(), "0 read, 20 kept, 0 dropped\n");
    assert!(shell.read("logs.idx") == before);
    fs::remove_dir(shell.path("logs")).unwrap();
    shell.run("index update logs.idx").failed(&["cannot open", "logs"]);
    assert!(shell.read("logs.idx") == before);
    fs::rename(shell.path("unmounted"), shell.path("logs")).unwrap();
    assert_eq!(shell.run("index update logs.idx").ok().text(), "0 read, 20 kept, 0 dropped\n");
}
