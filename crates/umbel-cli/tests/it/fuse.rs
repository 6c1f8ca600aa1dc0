//! Static sets from the shell: built from all keys at once, in the least memory, with a clear error
//! when keys are added.

use crate::shell::{Shell, gzip, line, lines, number, split};

#[test]
fn every_key_is_found_and_strangers_rarely() {
    let shell = Shell::new();
    for (rate, least, most) in [("1%", 7.0, 8.6), ("0.1%", 10.0, 12.0), ("1e-4", 14.0, 16.5)] {
        shell.build("f", &["-f", "--kind", "fuse", "-p", rate], lines(1, 0..200_000));
        assert_eq!(shell.pipe("check -c f", lines(1, 0..200_000)).ok().text(), "200000\n", "{rate}");
        let facts = shell.info("f");
        let asked = number(&facts, "fpr_target");
        let strangers = shell.pipe("check -c f", lines(2, 0..200_000)).text().trim().parse::<f64>().unwrap();
        let found = strangers / 200_000.0;
        assert!(found <= asked * 1.05 + 4.0 * (asked / 200_000.0).sqrt(), "{rate}: {found}");
        assert!((least..most).contains(&number(&facts, "bits_per_key")), "{facts}");
        assert_eq!((&facts["holds"], &facts["count"]), (&"set".into(), &200_000.into()));
    }
}

#[test]
fn construction_succeeds_at_sizes_that_are_known_to_be_hard() {
    let shell = Shell::new();
    for count in [1, 2, 3, 10, 100, 1000, 11_500, 11_501, 11_777, 23_000] {
        shell.build("f", "-f --kind fuse", lines(3, 0..count));
        assert_eq!(shell.pipe("check -c f", lines(3, 0..count)).ok().text(), format!("{count}\n"));
    }
}

#[test]
fn threads_repetitions_capacity_and_compression_make_no_difference() {
    let shell = Shell::new();
    let text = lines(1, 0..100_000);
    shell.write("lines", &text);
    shell.write("again", [&text[..], &text, &lines(1, 5..70)].concat());
    shell.write("lines.gz", gzip(&text));
    shell.run("build --kind fuse -j 1 -o one lines").ok();
    let one = shell.read("one");
    for args in ["-j 4 lines", "again", "-j 3 again lines", "-n 100000 lines", "-n 5 lines", "lines.gz"] {
        shell.run(&format!("build -f --kind fuse -o other {args}")).ok();
        assert!(shell.read("other") == one, "{args}");
    }
}

#[test]
fn no_lines_make_an_empty_filter_and_a_warning() {
    let shell = Shell::new();
    let answer = shell.pipe("build --kind fuse -o f", "").code(0);
    assert!(answer.stderr.contains("there were no lines: the filter is empty"), "{}", answer.stderr);
    assert_eq!(shell.info("f")["count"], 0);
    // The filter is empty, but a fingerprint of zero can match by chance.
    let found = split(&shell.pipe("check f", lines(1, 0..10_000)).stdout).len();
    assert!(found < 200, "{found}");
}

#[test]
fn a_memory_limit_or_the_fingerprint_bits_determine_the_rate() {
    let shell = Shell::new();
    let text = lines(1, 0..100_000);
    let build = |args: &str| shell.pipe(&format!("build -f --kind fuse -o f {args}"), &text);
    let answer = build("--max-bytes 80KiB").code(0);
    assert!(answer.stderr.contains("the rate is 3.125 %"), "{}", answer.stderr);
    assert!(number(&shell.info("f"), "bytes") <= 81_920.0);
    let limited = shell.read("f");
    // Repeated lines take no memory.
    shell.pipe("build -f --kind fuse -o f --max-bytes 80KiB", [&text[..], &text].concat()).code(0);
    assert!(shell.read("f") == limited);
    build("-p 1% --max-bytes 80KiB").refused(&["100000 keys at a rate of 1 % need", "leave -p out"]);
    build("--fingerprint-bits 12").ok();
    let facts = shell.info("f");
    assert_eq!(number(&facts, "fpr_now"), 1.0 / 4096.0);
    assert_eq!(facts["details"]["fingerprint bits"], 12.0);
    build("--fingerprint-bits 99").refused(&["99"]);
    build("--generations 4").refused(&["--generations is for the kind aging"]);
}

#[test]
fn unsupported_operations_are_refused_and_change_nothing() {
    let shell = Shell::new();
    shell.build("f", "--kind fuse", lines(1, 0..1000));
    shell.write("lines", lines(1, 0..10));
    let before = shell.read("f");
    let made = "it was made from all its keys at once";
    for args in ["add f lines", "add --new f lines", "build --like f -o g lines"] {
        shell.run(args).refused(&["f is a fuse filter, to which no keys can be added", made, "--kind fuse"]);
    }
    shell.run("remove f lines").refused(&["f is a fuse filter, which cannot remove keys", made]);
    shell.run("union f f -o g").refused(&["a fuse filter cannot be united"]);
    shell.run("intersect f f -o g").refused(&["a fuse filter cannot be"]);
    shell.run("compare f f").refused(&["a fuse filter cannot be compared"]);
    shell.run("fold f -o g").refused(&["a fuse filter cannot be", "all its keys at once"]);
    shell.run("convert f --kind standard -o g").refused(&["a fuse filter cannot become a standard one"]);
    assert!(shell.read("f") == before && !shell.path("g").exists());
}

#[test]
fn info_plan_and_why_describe_a_fuse_filter() {
    let shell = Shell::new();
    shell.build("f", "--kind fuse --meta a=b", lines(1, 0..1000));
    let told = shell.run("info --bits f").ok();
    for word in ["kind ", "fuse", "keys ", "1000", "fingerprint bits", "and 1 % was asked for"] {
        assert!(told.text().contains(word), "{word}: {}", told.text());
    }
    assert!(!told.text().contains("room for") && !told.text().contains("capacity"), "{}", told.text());
    assert_eq!(shell.run("meta f a").ok().text(), "b\n");
    let key = String::from_utf8(line(1, 7)).unwrap();
    // No cell decides alone, so all cells are read in either case.
    let told = shell.run(&["why", "f", &key]).ok();
    let says = "may be a member: its 3 cells and its mask, xored, are 0\n";
    assert!(told.text().ends_with(says), "{}", told.text());
    let told = shell.run("why f certainly-not").code(1);
    let says = "certainly not a member: its 3 cells and its mask, xored, are not 0\n";
    assert!(told.text().ends_with(says), "{}", told.text());
    let planned = shell.run("plan --kind fuse -n 1e6").ok();
    assert!(planned.text().contains("3 cells of each key") && planned.text().contains("answer only"));
    shell.build("keyed", "--kind fuse --seed 9", lines(1, 0..1000));
    assert_eq!(shell.info("keyed")["seed"], 9);
}
