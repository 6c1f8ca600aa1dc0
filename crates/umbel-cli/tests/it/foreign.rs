//! Filters of other programs: commands answer from them, describe, build and copy them, and refuse
//! with a remedy what cannot be done with them.

use crate::debian;
use crate::shell::{Shell, gzip, line, lines, number, split, text};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The files that the original programs wrote, with the lines that those accept.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../umbel/tests/golden_foreign");

/// The formats that umbel builds.
const FORMATS: [&str; 7] = ["guava", "spark", "spark2", "dcso", "sbbf", "datasketches", "redisbloom"];

/// The filters among the golden files: path, format and funnel.
fn golden() -> Vec<(PathBuf, String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(GOLDEN).expect("the golden files") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let plain = name.strip_suffix(".gz").unwrap_or(&name);
        let Some((stem, format)) = plain.rsplit_once('.').filter(|(_, end)| FORMATS.contains(end)) else {
            continue;
        };
        let funnel = stem.split('-').next().expect("a funnel").replace("empty", "utf8");
        found.push((path.clone(), format.to_owned(), funnel));
    }
    assert!(found.len() > 40, "{} golden files", found.len());
    found
}

/// Returns a golden file whose name has this ending in place of that of a filter.
fn beside(funnel: &str, end: &str) -> Vec<u8> {
    fs::read(Path::new(GOLDEN).join(format!("{funnel}.{end}"))).expect("a golden file")
}

/// The options that describe a filter. Formats without types of keys have no funnel.
fn described<'a>(format: &'a str, funnel: &'a str) -> Vec<&'a str> {
    match format {
        "dcso" | "redisbloom" => vec!["--format", format],
        _ => vec!["--format", format, "--funnel", funnel],
    }
}

/// The number of hash functions that each program chooses for a rate of 3 %. RedisBloom halves the
/// rate of a chain.
fn hashes(format: &str) -> usize {
    match format {
        "dcso" | "datasketches" => 6,
        "redisbloom" => 7,
        "sbbf" => 8,
        _ => 5,
    }
}

/// Returns a folder with a filter of each format, built from the same 2000 lines.
fn filled() -> Shell {
    let shell = Shell::new();
    shell.write("members", lines(1, 0..2000));
    shell.write("absent", lines(2, 0..20_000));
    for format in FORMATS {
        let args = ["build", "-n", "2000", "-p", "3%", "-o", format, "members"];
        shell.run(&[&args[..], &described(format, "utf8")].concat()).ok();
    }
    shell
}

#[test]
fn check_prints_the_lines_that_the_original_program_accepts() {
    let shell = Shell::new();
    for (path, format, funnel) in golden() {
        let path = path.to_str().expect("a path in UTF-8");
        let accepted = fs::read(format!("{path}.yes")).expect("the accepted lines");
        shell.write("questions", beside(&funnel, "questions"));
        let code = i32::from(accepted.is_empty());
        let options = described(format.trim_end_matches('2'), &funnel);
        let answer = shell.run(&[&["check", path, "questions"], &options[..]].concat()).code(code);
        assert!(answer.stdout == accepted && answer.stderr.is_empty(), "{path}: {}", answer.stderr);
        let recognised = ["dcso", "spark", "spark2", "datasketches"].contains(&&format[..]);
        if recognised && funnel == "utf8" {
            let answer = shell.run(&["check", path, "questions"]).code(code);
            assert!(answer.stdout == accepted, "{path} is recognised: {}", answer.stderr);
        }
        // Single keys take another way than batches.
        for line in split(&accepted).into_iter().take(3) {
            let Ok(line) = str::from_utf8(line) else { continue };
            if !line.contains('\0') {
                shell.run(&[&["why", path], &options[..], &["--", line]].concat()).ok();
            }
        }
    }
}

#[test]
fn build_writes_the_file_that_the_original_program_writes() {
    let shell = Shell::new();
    let mut compared = 0;
    for (path, format, funnel) in golden() {
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if stem != funnel || path.extension().is_some_and(|end| end == "gz") {
            continue;
        }
        shell.write("members", beside(&funnel, "members"));
        let mut args = vec!["build", "-f", "-n", "80", "-p", "10%", "-o", "made", "members"];
        args.extend(described(&format, &funnel));
        shell.run(&args).ok();
        let (mut made, mut wanted) = (shell.read("made"), fs::read(&path).expect("a golden file"));
        if format == "datasketches" {
            // The number of set bits may stand in the file, or be left to be counted.
            made[24..32].fill(0);
            wanted[24..32].fill(0);
        }
        if format != "redisbloom" {
            assert!(made == wanted, "{}", path.display());
            compared += 1;
        }
        // From a pipe, and with any number of threads.
        let args: Vec<&str> = args.into_iter().filter(|arg| *arg != "members").chain(["-j", "3"]).collect();
        let before = shell.read("made");
        shell.pipe(&args, beside(&funnel, "members")).ok();
        assert!(shell.read("made") == before, "{}", path.display());
    }
    assert!(compared > 15, "{compared} files were compared");
}

#[test]
fn the_program_bloom_reads_files_of_umbel_and_umbel_those_of_bloom() {
    let program = debian::unpacked("golang-github-dcso-bloom-cli", "usr/bin/bloom");
    let shell = Shell::new();
    let (members, all) = (lines(1, 0..5000), lines(1, 0..60_000));
    let bloom = |args: &[&str], input: &[u8]| {
        let mut command: Command = shell.program(&program);
        let mut child = command.args(args).stderr(Stdio::null()).spawn().expect("bloom starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let input = input.to_owned();
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let answer = child.wait_with_output().expect("bloom ends");
        writer.join().expect("no panic").expect("bloom reads its input");
        answer.stdout
    };
    bloom(&["create", "-n", "5000", "-p", "0.02", "theirs"], &members);
    bloom(&["--gzip", "create", "-n", "5000", "-p", "0.02", "theirs.gz"], &members);
    shell.pipe("build --format dcso -n 5000 -p 2% -o ours", &members).ok();
    assert!(shell.read("ours") == shell.read("theirs"), "the same file");
    let accepted = bloom(&["check", "theirs"], &all);
    assert!(split(&accepted).len() > 5500, "members and strangers");
    assert!(bloom(&["check", "ours"], &all) == accepted);
    for name in ["theirs", "theirs.gz"] {
        assert!(shell.pipe(&["check", name], &all).ok().stdout == accepted, "{name}");
    }
}

#[test]
fn without_a_number_of_keys_the_distinct_ones_are_counted() {
    let shell = Shell::new();
    let repeated = [lines(1, 0..3000), lines(1, 0..1000)].concat();
    shell.write("lines", &repeated);
    shell.run("build --format dcso -o counted lines").ok();
    let capacity = shell.info("counted")["capacity"].as_u64().expect("a capacity");
    assert!((2990..3010).contains(&capacity), "{capacity}");
    for format in FORMATS {
        let options = described(format, "utf8").join(" ");
        fs::remove_file(shell.path("counted")).expect("the last filter");
        shell.run(&format!("build -f {options} -p 1% -n {capacity} -o known lines")).ok();
        shell.run(&format!("build {options} -o counted lines")).ok();
        shell.pipe(&format!("build -f {options} -o piped"), &repeated).ok();
        let [known, counted, piped] = ["known", "counted", "piped"].map(|name| shell.read(name));
        assert!(known == counted && counted == piped, "{format}");
    }
    // More keys than the filter was made for are a warning, as for filters of umbel.
    let answer = shell.run("build --format dcso -n 100 -o small lines").code(0);
    assert!(answer.stderr.contains("more than the 100 it was made for"), "{}", answer.stderr);
    let answer = shell.run("build --format redisbloom -n 100 -o grown lines").ok();
    assert!(answer.stdout.is_empty());
    assert!(shell.run("info --format redisbloom grown --json").ok().json()["links"].as_u64() > Some(3));
}

#[test]
fn info_counts_the_bits_of_a_file() {
    let shell = filled();
    for (format, header) in [("dcso", 48), ("guava", 6), ("spark", 12), ("spark2", 16), ("datasketches", 32)]
    {
        let facts = shell.run(&["info", "--json", "--format", format, format]).ok().json();
        let bits = &shell.read(format)[header..];
        let set: u32 = bits.iter().map(|byte| byte.count_ones()).sum();
        assert_eq!(facts["format"], format);
        assert!((number(&facts, "fill") * number(&facts, "bits") - f64::from(set)).abs() < 1e-6, "{facts}");
        assert!(number(&facts, "bits") > 8.0 * bits.len() as f64 - 64.0, "{facts}");
        assert_eq!(facts["hashes"], hashes(format), "{facts}");
        let (keys, error) = (number(&facts, "estimated_count"), number(&facts, "estimated_count_error"));
        assert!((keys - 2000.0).abs() < 5.0 * error, "{facts}");
    }
    let facts = shell.info("dcso");
    assert_eq!((&facts["capacity"], &facts["fpr_target"]), (&2000.into(), &0.03.into()));
    shell.build("own", "-n 2000", lines(1, 0..2000));
    assert_eq!(shell.info("own")["format"], "umbel");
    // Formats may be mixed, and a file that cannot be read does not hide the others.
    let answer = shell.run("info --json --format guava own dcso guava members").code(2);
    let formats: Vec<Value> = answer
        .text()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["format"].clone())
        .collect();
    assert_eq!(formats, ["umbel", "dcso", "guava"]);
    let told = shell.run("info spark").ok();
    for words in ["spark", "5 per key", "Murmur3-32", "estimated from the bits", "without checksums"] {
        assert!(told.text().contains(words), "{words}: {}", told.text());
    }
    assert_eq!(shell.run("info --verify dcso").ok().text(), "dcso: valid as dcso, which has no checksums\n");
}

#[test]
fn why_shows_the_bits_of_a_key_up_to_the_first_zero() {
    let shell = filled();
    let member = String::from_utf8(line(1, 7)).expect("text");
    for format in FORMATS {
        let options = described(format.trim_end_matches('2'), "utf8");
        let told = shell.run(&[&["why", "--json", format, &member], &options[..]].concat()).ok().json();
        assert_eq!((&told["member"], &told["format"]), (&true.into(), &format.into()));
        let probes = told["probes"].as_array().expect("probes");
        assert_eq!(probes.len(), hashes(format), "{told}");
        assert!(probes.iter().all(|probe| probe["value"] == 1), "{told}");
        shell.run(&[&["why", format, &member], &options[..]].concat()).ok();
    }
    let absent = lines(2, 0..200);
    let stranger = split(&absent).into_iter().find(|line| {
        let line = str::from_utf8(line).expect("text");
        shell.run(&["check", "-q", "dcso", "--key", line]).code == Some(1)
    });
    let stranger = str::from_utf8(stranger.expect("a stranger")).expect("text");
    let told = shell.run(&["why", "--json", "dcso", stranger]).code(1).json();
    let probes = told["probes"].as_array().expect("probes");
    assert_eq!((&told["member"], &told["first_zero"]), (&false.into(), &probes.len().into()));
    let last = probes.last().expect("a probe");
    assert_eq!(last["value"], 0);
    let at = last["bit"].as_u64().expect("a number") as usize;
    assert_eq!(shell.read("dcso")[48 + at / 8] >> (at % 8) & 1, 0, "the bit of the file");
}

#[test]
fn lab_fpr_counts_the_lines_that_check_prints() {
    let shell = filled();
    for format in FORMATS {
        let options = described(format.trim_end_matches('2'), "utf8").join(" ");
        let answer = shell.run(&format!("lab fpr --json {options} --absent absent {format}"));
        let told = answer.json();
        let found = shell.run(&format!("check -c {options} {format} absent"));
        assert_eq!(found.text().trim(), told["positives"].to_string(), "{format}");
        assert_eq!((&told["format"], &told["queries"]), (&format.into(), &20_000.into()));
        assert!(number(&told, "measured") < 0.05, "{told}");
    }
}

#[test]
fn plan_like_takes_keys_and_rate_from_a_filter() {
    let shell = filled();
    let plan = shell.run("plan --like dcso --kind standard --json").ok().json();
    assert_eq!(plan, shell.run("plan -n 2000 -p 3% --kind standard --json").ok().json());
    let plan = shell.run("plan --like guava --format guava --json").ok().json();
    assert!((number(&plan, "capacity") / 2000.0 - 1.0).abs() < 0.05, "{plan}");
    assert!((number(&plan, "fpr_target") / 0.03 - 1.0).abs() < 0.1, "{plan}");
    shell.build("own", "-n 90000 -p 0.2% --kind counting", lines(1, 0..10));
    let plan = shell.run("plan --like own --json").ok().json();
    assert_eq!(plan, shell.run("plan -n 90000 -p 0.2% --kind counting --json").ok().json());
    assert_eq!(shell.run("plan --like own -n 5 --json").ok().json()["capacity"], 5);
    let told = shell.run("plan --like spark").ok();
    assert!(
        told.text().starts_with("like spark: spark, ") && told.text().contains("\nkind "),
        "{}",
        told.text()
    );
    shell.run("plan --format dcso -n 10").refused(&["--format names the format of the filter of --like"]);
}

#[test]
fn filters_of_several_programs_are_asked_together() {
    let shell = filled();
    shell.build("own", "-n 2000 -p 1e-9", lines(1, 0..1000));
    shell.write("asked", lines(1, 900..1100));
    let args = "check --tag --format guava --funnel utf8 guava --with own --with dcso --with spark asked";
    let answer = shell.run(args).ok();
    let told = split(&answer.stdout);
    assert_eq!(told.len(), 200);
    assert!(told[..100].iter().all(|line| line.ends_with(b"\tguava,own,dcso,spark")));
    assert!(told[100..].iter().all(|line| line.ends_with(b"\tguava,dcso,spark")));
    let both = shell.run("check --all own --with dcso asked").ok();
    assert!(both.stdout == lines(1, 900..1000));
}

#[test]
fn options_for_lines_apply_as_with_filters_of_umbel() {
    let shell = filled();
    let [member, stranger] = [line(1, 3), b"certainly not in it".to_vec()];
    let [member, stranger] = [member, stranger].map(|line| String::from_utf8(line).expect("text"));
    shell.write("table.csv", format!("id,name\n1,\"{member}\"\n2,{stranger}\n"));
    shell.write("packed.gz", gzip(format!("{member}\n")));
    for (args, printed) in [
        ("check dcso --csv --header -F name table.csv", format!("1,\"{member}\"\n")),
        ("check -v dcso --csv --header -F name table.csv", format!("2,{stranger}\n")),
        ("check -c spark packed.gz", "1\n".to_string()),
        ("check --label datasketches packed.gz", format!("{member}\tmaybe\n")),
    ] {
        assert_eq!(shell.run(args).ok().text(), printed, "{args}");
    }
    assert_eq!(
        shell.pipe("check -0 dcso", format!("{member}\0{stranger}\0")).ok().text(),
        format!("{member}\0")
    );
    assert_eq!(
        shell.pipe("check --trim dcso", format!("  {member}\r\n")).ok().text(),
        format!("  {member}\r\n")
    );
}

#[test]
fn lines_that_the_funnel_does_not_take_are_skipped_with_a_warning() {
    let shell = Shell::new();
    let numbers: Vec<String> = (0..100).map(|number| (number * 7919 - 4000i64).to_string()).collect();
    let answer = shell.pipe(
        "build --format guava --funnel long -n 100 -o f",
        [text(&numbers), b"x\n1.5\n9223372036854775808\n".to_vec()].concat(),
    );
    let warning =
        "umbel: skipped 3 lines that are not whole numbers of 64 bits; the first is line 101 of the input\n";
    assert_eq!((answer.code, &answer.stderr[..]), (Some(0), warning));
    let asked = [b"seven\n".to_vec(), text(&numbers)].concat();
    let answer = shell.pipe("check --format guava --funnel long f", asked).code(0);
    assert!(answer.stdout == text(&numbers));
    assert!(
        answer.stderr.contains("skipped 1 line that is not a whole number of 64 bits"),
        "{}",
        answer.stderr
    );
    let all = "all 2 lines are not whole numbers of 32 bits: see --funnel";
    shell.pipe("check --format guava --funnel int f", "a\nb\n").refused(&[all]);
    shell.pipe("check --format guava --funnel unencoded f", b"\xff\n").refused(&["not UTF-8"]);
    shell.run("why --format guava --funnel long f -4000").ok();
    shell.run("why --format guava --funnel long f seven").refused(&["whole number"]);
}

#[test]
fn convert_copies_within_a_format_and_names_the_hash_otherwise() {
    let shell = filled();
    shell.write("packed", gzip(shell.read("dcso")));
    shell.run("convert packed --to dcso -o plain").ok();
    assert!(shell.read("plain") == shell.read("dcso"));
    for format in FORMATS {
        shell.run(&["convert", "--format", format, "--to", format, format, "-o", "copy"]).ok();
        assert!(shell.read("copy") == shell.read(format), "{format}");
        fs::remove_file(shell.path("copy")).expect("a copy");
        for to in FORMATS.into_iter().filter(|to| *to != format) {
            let answer = shell.run(&["convert", "--format", format, "--to", to, format, "-o", "copy"]);
            answer.refused(&["hash", "build it from the keys", &format!("--format {to}")]);
            assert!(!shell.path("copy").exists());
        }
    }
    let answer = shell.run("convert dcso --kind standard -o copy");
    answer.refused(&["the hash of dcso is FNV-1", "--kind standard"]);
    shell.build("own", "", "a\n");
    shell.run("convert own --to spark -o copy").refused(&["the hash of umbel is", "Murmur3-32"]);
    shell.run("convert own -o copy").failed(&["--kind"]);
    shell.run("convert dcso --to dcso -o dcso").refused(&["is both an input and the output"]);
    assert!(!shell.path("copy").exists());
}

#[test]
fn build_refuses_options_that_mean_nothing_for_the_format() {
    let shell = Shell::new();
    shell.run("key new k").ok();
    shell.build("own", "", "a\n");
    for (format, options, says) in [
        ("dcso", "--kind standard", "--kind"),
        ("dcso", "-m 1000", "--bits (-m)"),
        ("dcso", "-k 3", "--hashes (-k)"),
        ("dcso", "--max-bytes 1000", "--max-bytes"),
        ("dcso", "--policy best", "--policy"),
        ("dcso", "--like own", "--like"),
        ("dcso", "--hash keyed", "--hash"),
        ("dcso", "--key-file k", "--key-file"),
        ("dcso", "--embed-key", "--embed-key"),
        ("dcso", "--seed 5", "--seed"),
        ("spark", "--seed 5", "--seed"),
        ("dcso", "--meta a=b", "--meta"),
        ("dcso", "--window 5", "--window"),
        ("dcso", "--semi-sorted", "--semi-sorted"),
        ("redisbloom", "--funnel long", "--funnel"),
    ] {
        let answer = shell.pipe(&format!("build -o f --format {format} {options}"), "a\n");
        answer.refused(&[&format!("{says} is not for the format {format}, "), "leave it out"]);
        assert!(!shell.path("f").exists());
    }
    shell.pipe("build -o f --funnel utf8", "a\n").refused(&["add --format"]);
    shell
        .pipe("build -o f --format guava", "a\n")
        .refused(&["does not store how keys are hashed", "--funnel"]);
    shell.pipe("build -o f --format spark --funnel unencoded", "a\n").refused(&["funnel"]);
    shell.pipe("build -o f --format xls", "a\n").failed(&["guava", "redisbloom"]);
    assert!(!shell.path("f").exists());
    shell.pipe("build -n 5 --format datasketches --seed 77 -o f", "a\n").ok();
    assert_eq!(shell.info("f")["seed"], 77);
}

#[test]
fn a_missing_or_wrong_description_is_refused_with_a_remedy() {
    let shell = filled();
    shell.build("own", "", "a\n");
    for (args, says) in [
        (
            "check guava --key a",
            &["not a filter file", "if another program wrote it, name its format with --format"][..],
        ),
        ("check --format guava guava --key a", &["does not store how keys are hashed", "--funnel"]),
        ("check --format guava --funnel utf8 dcso --key a", &["is a filter in the format dcso, not guava"]),
        (
            "check --format dcso own --key a",
            &["--format is for filters that other programs wrote", "leave it out"],
        ),
        ("check --funnel long own --key 1", &["--funnel is for filters that other programs wrote"]),
        ("check --funnel long dcso --key 1", &["--funnel is not for the format dcso", "leave it out"]),
        ("why --format sbbf guava a", &["32"]),
        ("info guava", &["name its format with --format"]),
        ("info --bits dcso", &["--bits draws filters of umbel only"]),
        ("plan --like guava", &["name its format with --format"]),
        ("lab fpr guava --absent absent", &["name its format with --format"]),
        ("convert guava --to guava -o x", &["name its format with --format"]),
        ("check nowhere --format dcso --key a", &["cannot open nowhere"]),
    ] {
        shell.run(args).refused(says);
    }
}

#[test]
fn other_commands_name_the_format_and_the_commands_that_take_it() {
    let shell = filled();
    shell.build("own", "-n 2000", "a\n");
    for (args, format) in [
        ("add dcso members", "dcso"),
        ("remove dcso members", "dcso"),
        ("union own dcso -o x", "dcso"),
        ("intersect spark own -o x", "spark"),
        ("compare datasketches own", "datasketches"),
        ("fold dcso -o x", "dcso"),
        ("resize dcso -n 10 -o x", "dcso"),
        ("meta dcso a=b", "dcso"),
        ("build --like dcso -o x members", "dcso"),
        ("map get dcso members", "dcso"),
        ("count get spark2 members", "spark2"),
    ] {
        let before = shell.read(format);
        let says = format!("{format} is a filter in the format {format}, which this command does not take");
        shell.run(args).refused(&[&says, "`umbel check`", "`umbel info`"]);
        assert!(shell.read(format) == before && !shell.path("x").exists(), "{args}");
    }
}

#[test]
fn a_filter_among_the_lines_is_not_read_as_lines() {
    let shell = filled();
    shell.write("packed.gz", gzip(shell.read("dcso")));
    for (args, says) in [
        ("build -o x dcso", "dcso is a filter in the format dcso, not a list of keys"),
        ("build -o x members spark", "spark is a filter in the format spark, not a list of keys"),
        ("check dcso packed.gz", "packed.gz is a filter in the format dcso, not a list of keys"),
        ("check members dcso", "the filter comes first, then the lines"),
    ] {
        shell.run(args).failed(&[says]);
        assert!(!shell.path("x").exists());
    }
}

/// A header that claims far more than the file has, for each format.
#[test]
fn files_that_claim_more_than_they_hold_are_refused() {
    let shell = filled();
    for format in FORMATS {
        let bytes = shell.read(format);
        for length in [0, 5, 20, 60, bytes.len() - 1] {
            shell.write("cut", &bytes[..length]);
            let options = described(format.trim_end_matches('2'), "utf8");
            let answer = shell.run(&[&["check", "cut", "members"], &options[..]].concat());
            answer.refused(&["cut"]);
            assert!(!answer.stderr.contains("Usage"), "{}", answer.stderr);
        }
    }
    let mut huge = shell.read("dcso");
    huge[32..40].copy_from_slice(&(1u64 << 46).to_le_bytes());
    shell.write("huge", huge);
    shell.run("check huge members").refused(&["huge", "truncated"]);
}
