//! `umbel lab`: experiments are listed, run and reported, and the exit code shows whether they
//! hold.

use crate::shell::Shell;

#[test]
fn experiments_are_listed_run_and_reported() {
    let shell = Shell::new();
    let list = shell.run("lab list").ok().text().to_owned();
    for start in ["Sizing and rates: ", "E1 ", "E1b ", "E1c ", "Privacy and security: ", "E12-vault "] {
        assert!(list.lines().any(|line| line.starts_with(start)), "{list}");
    }
    assert!(list.contains("Try it with umbel vault search"), "{list}");
    let told = shell.run("lab run e1b E1c --quick --out report --seed 7").ok().text().to_owned();
    assert!(told.starts_with("E1b   holds, 104 of 104 criteria"), "{told}");
    for file in ["index.html", "E1b/E1b.json", "E1b/arrays.csv", "E1c/ratio.svg"] {
        assert!(shell.path("report").join(file).is_file(), "{file}");
    }
    assert!(!shell.path("report").join("E1").exists(), "only what was asked for");
}

#[test]
fn unknown_experiments_and_parameters_are_refused() {
    let shell = Shell::new();
    shell.run("lab run E99").refused(&["there is no experiment \"E99\"", "umbel lab list"]);
    shell.run("lab run all --quick --full").refused(&["--quick", "--full"]);
    shell.run("lab run").refused(&["<ID>"]);
    shell.write("file", b"");
    shell.run("lab run E1b --out file").refused(&["cannot write the report to file"]);
    for (parameters, why) in [
        ("n=2", "keys in a filter, in E1: a whole number from 1000"),
        ("leaves=4", "no such parameter"),
        ("n=1e4,n=2e4", "given twice"),
        ("n=", "write it as n=1000"),
        ("n=nan", "write it as n=1000"),
    ] {
        shell.run(&["lab", "run", "E1", "--set", parameters]).refused(&[why]);
    }
    shell.run("lab run all E99").refused(&["there is no experiment \"E99\""]);
    assert!(!shell.path("lab").exists(), "nothing was run");
}

#[test]
fn parameters_change_the_experiment_and_its_report() {
    let shell = Shell::new();
    shell.run(&["lab", "run", "E1", "e1", "--set", "n = 2000, queries=10k"]).ok();
    let page = String::from_utf8(shell.read("lab/index.html")).expect("text");
    assert!(page.contains("n = 2000 (keys in a filter)") && page.matches("<section").count() == 1);
    assert!(shell.run("lab list --parameters").ok().text().contains("strangers for each filter"));
}
