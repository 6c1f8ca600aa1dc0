//! Runs the benchmark commands of the README with few keys, since the figures do not matter here.

use std::process::Command;

#[test]
fn the_benchmark_commands_of_the_readme_run() {
    let readme = include_str!("../../../README.md");
    let start = "cargo run --release -p umbel-bench -- ";
    let mut found = 0;
    for command in readme.lines().filter_map(|line| line.strip_prefix(start)) {
        let command = command.split("   #").next().unwrap_or(command);
        let small = command.replace("--n 1e7", "--n 1e4");
        assert_ne!(small, command, "the command names a number of keys, which is reduced here");
        let mut bench = Command::new(env!("CARGO_BIN_EXE_umbel-bench"));
        let output = bench.args(small.split_whitespace()).args(["--reps", "1"]).output();
        let output = output.expect("the benchmark starts");
        assert!(output.status.success(), "{small}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("umbel blocked batch"));
        found += 1;
    }
    assert!(found > 0, "the README names no benchmark");
}
