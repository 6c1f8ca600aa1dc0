//! `umbel lab trace`: the worked examples and the user's own keys are printed and drawn.

use crate::shell::Shell;

#[test]
fn examples_are_listed_with_and_without_an_option() {
    let shell = Shell::new();
    let list = shell.run("lab trace").ok();
    assert_eq!(list.stdout, shell.run("lab trace --list").ok().stdout);
    let names: Vec<&str> = umbel_lab::trace::examples().iter().map(|example| example.name).collect();
    assert!(names.len() > 20);
    for example in umbel_lab::trace::examples() {
        let line = list.text().lines().find(|line| line.split(' ').next() == Some(example.name));
        assert!(line.is_some_and(|line| line.ends_with(example.title)), "{}", example.name);
        assert!(list.text().contains(example.source), "{}", example.name);
    }
    assert!(list.text().lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn an_example_is_printed_step_by_step() {
    let shell = Shell::new();
    let deletion = shell.run("lab trace deletion").ok();
    let expected = "
 2. Delete x0 in the only way there is: its bits at 1, 4 and 9 become 0.
    bits             0     1     2     3     4     5     6     7     8     9
      before         0     1     0     0     1     1     0     0     1     1
      after          0     0     0     0     0     1     0     0     1     0
                         clr               clr                           clr
      keys                                  x1    x1                x1

 3. Ask for x1 at 4, 5 and 8: no, since 4 holds 0; but it was inserted: a false
    negative.
";
    assert!(deletion.text().contains(expected), "{}", deletion.text());
    assert_eq!(deletion.stdout, shell.run("lab trace DELETION").ok().stdout);
    // `all` prints all of them, one after the other.
    let texts: Vec<String> = umbel_lab::trace::examples()
        .iter()
        .map(|example| shell.run(&["lab", "trace", example.name]).ok().text().to_owned())
        .collect();
    assert_eq!(shell.run("lab trace all").ok().text(), texts.join("\n"));
}

#[test]
fn pictures_are_written_completely_and_replace_files_only_on_request() {
    let shell = Shell::new();
    let printed = shell.run("lab trace search --svg picture.svg").ok();
    assert_eq!(printed.stdout, shell.run("lab trace search").ok().stdout, "it is printed as well");
    let picture = String::from_utf8(shell.read("picture.svg")).expect("text");
    assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
    assert!(picture.contains("a false positive") && picture.contains("\nNO\n"), "{picture}");
    assert_eq!(shell.names(""), ["picture.svg"], "nothing is left beside it");
    shell.write("picture.svg", "mine");
    shell.run("lab trace search --svg picture.svg").refused(&["picture.svg exists", "-f"]);
    assert_eq!(shell.read("picture.svg"), b"mine");
    shell.run("lab trace search --svg picture.svg --force").ok();
    assert_eq!(shell.read("picture.svg"), picture.as_bytes());
    shell.run("lab trace all --svg pictures/of/all").ok();
    assert_eq!(shell.names("pictures/of/all").len(), umbel_lab::trace::examples().len());
    assert_eq!(shell.read("pictures/of/all/search.svg"), picture.as_bytes());
}

#[test]
fn an_unknown_example_is_refused_and_the_nearest_is_named() {
    let shell = Shell::new();
    shell.run("lab trace serach").refused(&["'serach'", "possible values: insert, search", "'search'"]);
    shell.run("lab trace search --svg no/folder/x.svg").refused(&["beside no/folder/x.svg", "No such file"]);
    shell.run("lab trace search --svg .").refused(&["."]);
    shell.run("lab trace --svg x.svg").refused(&["EXAMPLE"]);
    shell.write("file", "");
    shell.run("lab trace all --svg file").refused(&["cannot create the folder file"]);
}

#[test]
fn pictures_replace_only_regular_files() {
    let shell = Shell::new();
    std::fs::create_dir(shell.path("folder")).expect("a folder");
    shell.run("lab trace search --svg folder -f").refused(&["cannot write to folder", "directory"]);
    shell.write("old.svg", "old");
    std::os::unix::fs::symlink("old.svg", shell.path("link.svg")).expect("a link");
    shell.run("lab trace search --svg link.svg -f").ok();
    assert!(shell.path("link.svg").is_symlink() && shell.read("old.svg").starts_with(b"<svg"));
}

#[test]
fn own_keys_are_traced_with_own_formulas() {
    let shell = Shell::new();
    let own = ["lab", "trace", "--bits", "10", "--insert", "2,4,9", "--ask", "5,12"];
    let formulas = ["--hash", "x mod 10, 2x+3 mod 10", "--svg", "own.svg"];
    let printed = shell.run(&[&own[..], &formulas].concat()).ok();
    let expected = "
 5. Ask for 5 at 5 and 3: certainly not a member, since 5 and 3 hold 0. By the
    formulas: 5 mod 10 = 5, 13 mod 10 = 3.
    bits           0   1   2   3   4   5   6   7   8   9
                   0   1   1   0   1   0   0   1   0   1
                              NO      NO
      keys           4,9   2       4           2       9

 6. Ask for 12 at 2 and 7: yes, but it was never inserted: a false positive. Its
    cells are those of 2. By the formulas: 12 mod 10 = 2, 27 mod 10 = 7.
    bits           0   1   2   3   4   5   6   7   8   9
                   0   1   1   0   1   0   0   1   0   1
                         yes                 yes
      keys           4,9   2       4           2       9
";
    assert!(printed.text().contains(expected), "{}", printed.text());
    let picture = String::from_utf8(shell.read("own.svg")).expect("text");
    assert!(picture.starts_with("<svg") && picture.contains("a false positive"), "{picture}");
    shell.run(&[&own[..], &formulas].concat()).refused(&["own.svg exists", "-f"]);
    // Blanks around keys, several options, and no modulus mean the same.
    let other = ["lab", "trace", "--bits", "10", "--insert", "2, 4", "--insert", "9", "--ask", "5 ,12"];
    let same = shell.run(&[&other[..], &["--hash", "x%10,(2*x + 3)"]].concat()).ok();
    let steps = |text: &str| text.lines().skip(4).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(steps(same.text()), steps(printed.text()));
}

#[test]
fn a_removal_from_bits_shows_the_false_negative_and_one_from_counters_none() {
    let shell = Shell::new();
    let trace = |kind: &str| {
        let keys = ["--insert", "2,12", "--remove", "2", "--ask", "12,2", "--hash", "x,2x+3"];
        let trace = ["lab", "trace", "--bits", "10", "--kind", kind];
        shell.run(&[&trace[..], &keys].concat()).ok().text().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let bits = trace("standard");
    assert!(bits.contains("The filter loses 12 as well") && bits.contains("a false negative"), "{bits}");
    let counters = trace("counting");
    assert!(counters.contains("it takes 1 from counter 2 and 1 from counter 7"), "{counters}");
    assert!(counters.contains("a false positive") && !counters.contains("false negative"), "{counters}");
}

#[test]
fn mistakes_in_own_keys_are_refused_with_their_place() {
    let shell = Shell::new();
    let refused = |args: &[&str], says: &[&str]| {
        shell.run(&[&["lab", "trace", "--insert", "1", "--bits"], args].concat()).refused(says);
    };
    refused(
        &["10", "--hash", "x, 2x+ mod 10"],
        &["--hash", "character 8, at \"mod 10\"", "a number, x or ("],
    );
    refused(&["10", "--hash", "x mod 11"], &["\"x mod 11\"", "the last of 10 bits is 9", "mod 10 or less"]);
    refused(&["10", "--hash", "x", "--ask", "pear"], &["\"pear\" is not a whole number"]);
    refused(&["10", "--hash", "x", "--hashes", "2"], &["--hash", "--hashes"]);
    refused(&["0"], &["1 to 512 bits, not 0"]);
    refused(&["1e9"], &["1 to 512 bits, not 1000000000"]);
    refused(&["10", "--hashes", "17"], &["1 to 16 hash functions, not 17"]);
    refused(&["10", "--ask", "1,,2"], &["a key is empty"]);
    refused(&["10", "--kind", "cuckoo"], &["cuckoo", "standard, counting"]);
    refused(&["10", "search"], &["--bits", "EXAMPLE"]);
    shell.run("lab trace --insert 1").refused(&["--bits"]);
    shell.run("lab trace --bits 10").refused(&["--insert"]);
}

#[test]
fn own_keys_have_the_positions_and_answers_of_a_filter_file() {
    let shell = Shell::new();
    shell.pipe("build --kind standard -n 5 -p 10% -o f", "rose\nlily\noak\n").ok();
    let facts = shell.run("info --json f").ok().json();
    let (bits, hashes) = (facts["bits"].to_string(), facts["hashes"].to_string());
    let asked: Vec<String> = ["rose", "lily", "tulip"]
        .map(String::from)
        .into_iter()
        .chain((0..40).map(|i| format!("k{i}")))
        .collect();
    let args = ["lab", "trace", "--bits", &bits, "--hashes", &hashes, "--insert", "rose,lily,oak", "--ask"];
    let keys = asked.join(",");
    let traced = shell.run(&[&args[..], &[&keys]].concat()).ok();
    let traced = traced.text().split_whitespace().collect::<Vec<_>>().join(" ");
    for key in &asked {
        let answer = shell.run(&["why", "--json", "f", key]).json();
        let (_, said) = traced.split_once(&format!(" Ask for {key} at ")).expect("every key is asked for");
        let (positions, verdict) = said.split_once(": ").expect("positions and a verdict");
        let positions: Vec<&str> =
            positions.split([',', ' ']).filter(|word| word.parse::<u64>().is_ok()).collect();
        let probes =
            answer["probes"].as_array().expect("probes").iter().map(|probe| probe["bit"].to_string());
        assert_eq!(positions.len().to_string(), hashes);
        // A lookup ends at the first zero.
        assert!(probes.zip(&positions).all(|(bit, position)| bit == **position), "{key}: {positions:?}");
        let is_yes = verdict.starts_with("yes") || verdict.starts_with("probably");
        assert_eq!(answer["member"], is_yes, "{key}");
    }
}
