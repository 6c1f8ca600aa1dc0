//! `umbel lab trace`: the worked examples are listed, printed and drawn.

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
