//! Filters in shards: the same files whichever processes build them, the answers of one filter, and
//! never an answer without one of the shards.

use crate::shell::{Answer, Process, Shell, UMBEL, lines, number, split, text};
use crate::writers::Random;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Instant;
use umbel::sharded::{ShardPlan, ShardedBuilder};
use umbel::{Kind, Sharded, Spec};

const OPTIONS: &str = "--shards 5 -n 200000 -p 0.1%";

/// Builds a filter in shards of these lines with the library.
fn build_with_library(shell: &Shell, name: &str, lines: &[u8]) {
    let plan = ShardPlan::new(Kind::Blocked, &Spec::new(200_000, 0.001).unwrap(), 5).unwrap();
    let builder = ShardedBuilder::new(plan).unwrap();
    builder.insert_batch(&split(lines)).unwrap();
    builder.save(shell.path(name)).unwrap();
}

/// Returns a shell with a filter in shards of some lines, and the lines.
fn fixture() -> (Shell, Vec<u8>) {
    let (shell, lines) = (Shell::new(), lines(1, 0..50_000));
    shell.write("lines", &lines);
    shell.run(&format!("build {OPTIONS} -o seen lines")).ok();
    (shell, lines)
}

#[test]
fn the_files_are_those_of_the_library_with_any_threads_and_order() {
    let (shell, lines) = fixture();
    build_with_library(&shell, "library", &lines);
    let expected = shell.contents("library");
    assert_eq!(expected.len(), 6, "five shards and a manifest");
    assert!(shell.contents("seen") == expected);
    let reversed: Vec<&[u8]> = split(&lines).into_iter().rev().collect();
    for threads in ["1", "3"] {
        let name = format!("threads{threads}");
        shell.pipe(&format!("build {OPTIONS} -j {threads} -o {name}/"), text(&reversed)).ok();
        assert!(shell.contents(&name) == expected);
    }
    // The options for keys mean what they mean elsewhere.
    let columns: Vec<Vec<u8>> = split(&lines).iter().map(|line| [b"x,", *line, b" "].concat()).collect();
    shell.pipe(&format!("build {OPTIONS} --csv -F 2 --trim -o columns"), text(&columns)).ok();
    assert!(shell.contents("columns") == expected);
    // One that is in the way without a manifest is from a run that was interrupted.
    shell.run("build --shards 9 -n 10 -o left lines").code(0);
    fs::remove_file(shell.path("left/manifest")).unwrap();
    fs::remove_file(shell.path("left/shard-0003.umbel")).unwrap();
    (5..9).for_each(|shard| fs::remove_file(shell.path(&format!("left/shard-000{shard}.umbel"))).unwrap());
    shell.run(&format!("build {OPTIONS} -o left lines")).ok();
    assert!(shell.contents("left") == expected);
}

#[test]
fn one_shard_alone_is_not_changed() {
    let (shell, _) = fixture();
    let before = shell.contents("seen");
    for change in ["add seen/shard-0000.umbel lines", "meta seen/shard-0004.umbel name=value"] {
        shell.run(change).refused(&["is a shard of the filter in seen", "`umbel add`"]);
    }
    assert!(shell.contents("seen") == before);
    // It can be read, and changed once it is elsewhere.
    shell.run("info seen/shard-0000.umbel").ok();
    fs::copy(shell.path("seen/shard-0000.umbel"), shell.path("shard-0000.umbel")).unwrap();
    shell.run("add shard-0000.umbel lines").code(0);
}

#[test]
fn processes_that_build_some_of_the_shards_make_the_same_files() {
    let (shell, _) = fixture();
    for only in ["0-1", "4", "2-3"] {
        shell.run(&format!("build {OPTIONS} -o parts --complete")).refused(&["parts/shard-000"]);
        assert_eq!(shell.run("check parts lines").code, Some(2), "it is not complete");
        shell.run(&format!("build {OPTIONS} -o parts --only {only} lines")).ok();
    }
    // A task that runs again does no harm.
    shell.run(&format!("build {OPTIONS} -o parts --only 4 lines")).ok();
    shell.run("build --shards 5 -n 200001 -p 0.1% -o parts --complete").refused(&["another plan"]);
    shell.run(&format!("build {OPTIONS} -o parts --complete")).ok();
    assert!(shell.contents("parts") == shell.contents("seen"));

    for (arguments, says) in [
        (&format!("{OPTIONS} -o parts --complete")[..], "parts has a manifest"),
        (&format!("{OPTIONS} -o parts --only 1 lines"), "parts has a manifest"),
        (&format!("{OPTIONS} -o x --only 3-5 lines"), "--only 3-5: the shards are 0-4"),
        (&format!("{OPTIONS} -o x --only 3-2 lines"), "not a range of numbers"),
        ("-o x --only 3 lines", "--shards"),
        ("-o x --complete", "--shards"),
    ] {
        shell.run(&format!("build {arguments}")).refused(&[says]);
        assert!(!shell.path("x").exists(), "{arguments}");
    }
}

#[test]
fn answers_are_those_of_one_filter_in_the_order_of_the_input() {
    let (shell, added) = fixture();
    let (few, rest) =
        added.split_at(3000 + added[3000..].iter().position(|byte| *byte == b'\n').unwrap() + 1);
    let mixed = [few, b"\n", &lines(2, 0..60_000), rest, b"banana"].concat();
    shell.write("mixed", &mixed);
    let seen = Sharded::open(shell.path("seen")).unwrap();
    let all = split(&mixed[..mixed.len() - 6]);
    let members: Vec<&[u8]> = all.iter().copied().filter(|line| seen.contains(line).unwrap()).collect();
    let others: Vec<&[u8]> = all.iter().copied().filter(|line| !seen.contains(line).unwrap()).collect();
    let strangers = members.len() - split(&added).len();
    assert!(strangers < 200, "{strangers} of 60000 at a rate of 0.1 %");
    for arguments in ["check seen mixed", "check seen/ -j 3 mixed", "check --all --with seen seen mixed"] {
        assert!(shell.run(arguments).ok().stdout == text(&members), "{arguments}");
    }
    assert!(shell.run("check -v seen mixed").ok().stdout == text(&[&others[..], &[b"banana"]].concat()));
    assert_eq!(shell.run("check -c seen mixed").ok().text(), format!("{}\n", members.len()));
    assert_eq!(shell.run("check -q seen --key banana").code, Some(1));
    // Together with a file, whose hash is another one.
    shell.pipe("build --seed 7 -o file", "banana\n").ok();
    let answer =
        shell.pipe("check --tag --with file seen", [&added[..added.len() / 2], b"\nbanana\n"].concat());
    let last = answer.ok().text().lines().last().map(str::to_string);
    assert_eq!(last.as_deref(), Some("banana\tfile"));
    // Of another program, it is not.
    shell.run("check --format guava --funnel utf8 seen lines").refused(&["--format", "one of umbel"]);
}

/// Returns the answer to `umbel check` after the files were spoilt.
fn check_spoilt(intact: &Shell, spoil: impl Fn(&Shell)) -> [Answer; 2] {
    let shell = Shell::new();
    crate::writers::copy(&intact.path("."), &shell.path("."));
    spoil(&shell);
    ["check seen lines", "info --json seen"].map(|arguments| shell.run(arguments))
}

#[test]
fn damage_is_an_error_that_names_the_file_and_never_an_answer() {
    let (shell, _) = fixture();
    let flip = |name: &str, at: fn(usize) -> usize| {
        let mut bytes = shell.read(&format!("seen/{name}"));
        let at = at(bytes.len());
        bytes[at] ^= 16;
        bytes
    };
    let changed = [
        ("shard-0003.umbel", flip("shard-0003.umbel", |length| length / 2)),
        ("shard-0004.umbel", flip("shard-0004.umbel", |length| length - 1)),
        ("shard-0001.umbel", flip("shard-0001.umbel", |_| 30)),
        ("shard-0002.umbel", shell.read("seen/shard-0001.umbel")),
        ("shard-0000.umbel", shell.read("seen/shard-0000.umbel")[..1000].to_vec()),
        ("manifest", flip("manifest", |length| length / 2)),
        ("manifest", Vec::new()),
    ];
    for (name, bytes) in changed {
        for answer in check_spoilt(&shell, |copy| copy.write(&format!("seen/{name}"), &bytes)) {
            answer.refused(&[&format!("seen/{name}")]);
        }
    }
    for name in shell.names("seen") {
        for answer in
            check_spoilt(&shell, |copy| fs::remove_file(copy.path(&format!("seen/{name}"))).unwrap())
        {
            answer.refused(&[
                &format!("seen/{name}"),
                if name == "manifest" { "there is none" } else { "is missing" },
            ]);
        }
    }
    fs::create_dir(shell.path("empty")).unwrap();
    for command in
        ["check empty lines", "info empty", "add empty lines", "why empty x", "union -o x empty seen"]
    {
        shell.run(command).refused(&["empty/manifest", "it was not built to the end"]);
    }
}

#[test]
fn info_describes_the_whole_filter_and_each_shard() {
    let (shell, _) = fixture();
    let facts = shell.info("seen");
    for (name, value) in [("capacity", 200_000.0), ("count", 50_000.0), ("fpr_target", 0.001)] {
        assert_eq!(number(&facts, name), value);
    }
    assert!((number(&facts, "estimated_count") - 50_000.0).abs() < 500.0, "{facts}");
    assert_eq!(
        (&facts["path"], &facts["kind"], &facts["seed"]),
        (&"seen".into(), &"blocked".into(), &0.into())
    );
    let shards = facts["shards"].as_array().expect("a row for each shard");
    let sum = |name| shards.iter().map(|shard| number(shard, name)).sum::<f64>();
    assert_eq!((shards.len(), sum("count")), (5, 50_000.0));
    assert!((sum("fpr_now") / 5.0 - number(&facts, "fpr_now")).abs() < 1e-12);
    assert_eq!(shards[3]["file"], "shard-0003.umbel");
    assert_eq!(shards[3], {
        let file = shell.info("seen/shard-0003.umbel");
        let names = ["count", "estimated_count", "estimated_count_error", "fill", "fpr_now", "file_bytes"];
        let mut row: BTreeMap<&str, _> = names.map(|name| (name, file[name].clone())).into();
        row.insert("file", "shard-0003.umbel".into());
        serde_json::to_value(row).unwrap()
    });
    let answer = shell.run("info seen").ok();
    let text = answer.text();
    for part in ["kind", "blocked", "50000", "200000, room for", "shard-0004.umbel", "rate now"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(shell.run("info --verify seen").ok().text().starts_with("seen: intact, all "));
    shell.run("info --bits seen").refused(&["--bits", "seen/shard-0000.umbel"]);
}

#[test]
fn a_filter_is_replaced_only_on_request_and_as_a_whole() {
    let (shell, _) = fixture();
    let before = shell.contents("seen");
    shell.run("build --shards 2 -n 1000 -o seen lines").refused(&["seen exists", "-f"]);
    assert!(shell.contents("seen") == before);
    shell.write("few", "a\nb\n");
    shell.run("build --shards 2 -n 1000 -f -o seen few").ok();
    shell.run("build --shards 2 -n 1000 -o new few").ok();
    assert!(shell.contents("seen") == shell.contents("new"), "nothing of five shards is left");
    shell.run(&format!("build {OPTIONS} -f -o seen lines")).ok();
    assert!(shell.contents("seen") == before);

    // An error leaves the old filter, and of a new one nothing.
    shell.write("bad.gz", &crate::shell::gzip("line\n".repeat(10_000))[..40]);
    shell.run("build --shards 2 -n 1000 -f -o seen bad.gz").refused(&["bad.gz"]);
    shell.run("build --shards 2 -n 1000 -o other bad.gz").refused(&["bad.gz"]);
    assert!(shell.contents("seen") == before && !shell.path("other").exists());
    for (arguments, says) in [
        ("--shards 2 -n 10 few", "name it with -o"),
        ("--shards 2 -n 10 -o few few", "few is not a directory"),
        ("--shards 2 -n 10 -o no/where few", "there is no directory no"),
        ("--shards 2 -o other few", "give -n"),
        ("--shards 2 -n 10 -m 1000 -o other few", "--bits (-m)"),
        ("--shards 2 -n 10 --max-bytes 1000 -o other few", "--max-bytes"),
        ("--shards 2 -n 10 --meta a=b -o other few", "--meta"),
        ("--shards 2 --like new/shard-0000.umbel -o other few", "--like"),
        ("--shards 2 -n 10 --kind cuckoo -o other few", "be split into shards"),
        ("--shards 2 -n 10 --kind literature --hash md5-slices -o other few", "literature"),
        ("--shards 0 -n 10 -o other few", "--shards"),
        ("--shards 1025 -n 10 -o other few", "--shards"),
    ] {
        shell.run(&format!("build {arguments}")).refused(&[says]);
        assert!(!shell.path("other").exists(), "{arguments}");
    }
}

#[test]
fn an_overfull_filter_is_warned_of() {
    let (shell, _) = fixture();
    let answer = shell.run("build --shards 2 -n 10000 -p 1% -o small lines").code(0);
    let rate = number(&shell.info("small"), "fpr_now");
    assert!(answer.stderr.contains("more than the 10000 it was made for") && rate > 0.2, "{}", answer.stderr);
    let report = shell.run(&format!("build {OPTIONS} --json -f -o seen lines")).ok().json();
    assert_eq!((&report["count"], report["shards"].as_array().map(Vec::len)), (&50_000.into(), Some(5)));
}

#[test]
fn secrets_are_needed_unless_they_are_embedded() {
    let (shell, _) = fixture();
    shell.run("key new secret").ok();
    shell.run(&format!("build {OPTIONS} --key-file secret -o closed lines")).ok();
    shell.run(&format!("build {OPTIONS} --key-file secret --embed-key -o open lines")).ok();
    shell.run("check -c closed lines").refused(&["closed/shard-0000.umbel", "secret"]);
    assert_eq!(shell.run("check -c --key-file secret closed lines").ok().text(), "50000\n");
    assert_eq!(shell.run("check -c open lines").ok().text(), "50000\n");
    let facts = shell.info("open");
    assert_eq!((&facts["hash"], &facts["key_embedded"]), (&"keyed".into(), &true.into()));
    assert_eq!(shell.info("closed")["key_embedded"], false);
}

#[test]
fn why_names_the_shard_of_a_key() {
    let (shell, lines) = fixture();
    let key = String::from_utf8(split(&lines)[7].to_vec()).unwrap();
    let answer = shell.run(&["why", "--json", "seen", &key]).ok().json();
    let shard = answer["shard"].as_str().expect("a file");
    let alone = shell.run(&["why", "--json", &format!("seen/{shard}"), &key]).ok().json();
    assert_eq!((&answer["probes"], &answer["member"]), (&alone["probes"], &true.into()));
    assert_eq!(
        (shell.run("why seen banana").code, shell.run("check seen --key banana").code),
        (Some(1), Some(1))
    );
    assert!(shell.run(&["why", "seen", &key]).ok().text().contains(shard));
}

#[test]
fn the_union_of_parts_has_the_files_of_one_build() {
    let (shell, lines) = fixture();
    let all = split(&lines);
    for (part, lines) in all.chunks(all.len() / 3 + 1).enumerate() {
        shell.pipe(&format!("build {OPTIONS} -o part{part}"), text(lines)).ok();
    }
    shell.run("union part0 part1/ part2 -o all").ok();
    assert!(shell.contents("all") == shell.contents("seen"));
    shell.run("union part0 part1 -o all").refused(&["all exists"]);
    shell.run("union -f part0 part1 -o all").ok();
    assert_eq!(shell.info("all")["count"], 33_334);
    // In place, too: the result replaces one of its parts once it is complete.
    shell.run("union -f all part2 -o all").ok();
    assert!(shell.contents("all") == shell.contents("seen"));
    shell.run("intersect all part1 -o common").ok();
    assert_eq!(shell.run("check -c common lines").ok().text(), "16667\n");

    shell.run("build --shards 4 -n 200000 -p 0.1% -o four lines").ok();
    shell.run("build --shards 5 -n 300000 -p 0.1% -o large lines").ok();
    shell.run("build --shards 5 -n 200000 -p 0.1% --seed 1 -o seed lines").ok();
    shell.run("build -n 1000 -o file lines");
    for (arguments, says) in [
        ("seen four -o x", "number of shards is 5 in one and 4"),
        ("seen large -o x", "number of keys planned for is 200000 in one and 300000"),
        ("seen seed -o x", "seed is 0 in one and 1"),
        ("seen file -o x", "file is not a directory"),
        ("seen part0 --meta a=b -o x", "--meta"),
        ("seen part0", "name it with -o"),
        ("seen part0 -o lines", "lines is not a directory"),
    ] {
        shell.run(&format!("union {arguments}")).refused(&[says]);
        assert!(!shell.path("x").exists(), "{arguments}");
    }
}

#[test]
fn added_lines_are_those_of_one_build() {
    let (shell, added) = fixture();
    let (first, second) = added.split_at(
        added.len() / 2 + added[added.len() / 2..].iter().position(|byte| *byte == b'\n').unwrap() + 1,
    );
    shell.pipe(&format!("build {OPTIONS} -o some"), first).ok();
    shell.pipe("add some -j 3", second).ok();
    assert!(shell.contents("some") == shell.contents("seen"));
    // A single key changes a single shard.
    let before = shell.contents("seen");
    let report = shell.run("add --json seen --key banana").ok().json();
    assert_eq!(report["count"], 50_001);
    let changed = shell.contents("seen").into_iter().filter(|file| before.get(&file.0) != Some(&file.1));
    let changed: Vec<String> = changed.map(|(name, _)| name).collect();
    let shard = shell.run("why --json seen banana").ok().json()["shard"].as_str().unwrap().to_string();
    assert_eq!(changed, ["manifest".to_string(), shard]);
    assert_eq!(before.len(), shell.contents("seen").len());
    // New lines, in the order of the input and each only once.
    let news = lines(3, 0..3000);
    let twice = [&news[..], &added, &news].concat();
    let printed = shell.pipe("add --new seen", &twice).ok().stdout;
    let missing = split(&news).len() - split(&printed).len();
    assert!(missing < 20, "{missing} of 3000 at a rate of less than 0.1 %");
    assert!(split(&printed).is_sorted_by_key(|line| split(&news).iter().position(|other| other == line)));
    assert_eq!(shell.pipe("add --new seen", &twice).ok().text(), "");
    let answer = shell.pipe("add seen", lines(4, 0..400_000)).code(0);
    assert!(answer.stderr.contains("more than the 200000 it was made for"), "{}", answer.stderr);
    let before = shell.contents("seen");
    shell.write("bad.gz", &crate::shell::gzip("line\n".repeat(10_000))[..40]);
    shell.run("add seen bad.gz").refused(&["bad.gz"]);
    assert!(shell.contents("seen") == before);
}

#[test]
fn commands_that_take_single_files_name_those_that_take_shards() {
    let (shell, _) = fixture();
    for command in [
        "fold seen -o x",
        "remove seen lines",
        "compare seen seen",
        "convert seen --kind standard -o x",
        "resize seen -n 1000 -o x",
        "meta seen",
        "meta seen a=b",
        "build --like seen -o x lines",
        "map get seen lines",
        "count get seen lines",
        "lab fpr seen --absent lines",
        "plan --like seen",
    ] {
        shell.run(command).refused(&["seen is a filter in shards", "`umbel check`"]);
    }
}

/// The number of kills of a process that adds to a filter.
const KILLS: usize = 36;

#[test]
fn after_a_kill_all_shards_are_the_old_or_the_new_ones() {
    let shell = Shell::new();
    shell.write("lines", lines(1, 0..20_000));
    shell.write("more", lines(1, 20_000..40_000));
    // Long enough to be hit while they are written: 10 MB.
    shell.run("build --shards 8 -n 8M -o old lines").ok();
    let old = shell.contents("old");
    let copy = || {
        let _ = fs::remove_dir_all(shell.path("seen"));
        fs::create_dir(shell.path("seen")).unwrap();
        crate::writers::copy(&shell.path("old"), &shell.path("seen"));
    };
    copy();
    let start = Instant::now();
    shell.run("add seen more").ok();
    let (duration, new) = (start.elapsed(), shell.contents("seen"));
    let mut random = Random::new(0);
    let (mut killed, mut changed) = (0, 0);
    for _ in 0..KILLS {
        copy();
        // A little beyond the end, so that the last steps are also hit in a slow run.
        let moment = duration.mul_f64(1.2 * random.share());
        let mut process = shell.start("add seen more");
        thread::sleep(moment);
        process.child().kill().expect("a process that has not been waited for can be killed");
        killed += usize::from(process.finish().signal == Some(9));

        // Of the new lines, either all are members, or a few at a rate far below 1 %.
        let is_new = shell.run("check -c seen more").text() == "20000\n";
        changed += usize::from(is_new);
        shell.run("info --verify seen").ok();
        assert_eq!(shell.run("check -c seen lines").ok().text(), "20000\n");
        assert_eq!(shell.info("seen")["count"], if is_new { 40_000 } else { 20_000 });
        // The next change completes this one, and nothing else is left.
        shell.pipe("add seen", "").ok();
        let found = shell.contents("seen");
        assert!(found == if is_new { new.clone() } else { old.clone() }, "after {moment:?}");
    }
    println!("killed {killed}, changed {changed} of {KILLS}; it takes {duration:?}");
    assert!(killed >= KILLS / 2, "only {killed} of {KILLS} were still running");
}

#[test]
fn readers_find_all_of_a_change_or_nothing_of_it() {
    const ROUNDS: u64 = 30;
    let shell = Shell::new();
    shell.pipe("build --shards 16 -n 1M -o seen", "").ok();
    thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let shell = &shell;
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let first = (2 * round + writer) * 1000;
                        shell.pipe("add seen", lines(1, first..first + 1000)).ok();
                    }
                })
            })
            .collect();
        let (mut last, mut readings) = (0, 0);
        while !writers.iter().all(|writer| writer.is_finished()) {
            let filter = Sharded::open(shell.path("seen")).expect("a whole filter");
            let inserted = filter.inserted().expect("insertions are counted");
            assert!(inserted.is_multiple_of(1000) && inserted >= last, "{inserted} after {last}");
            (last, readings) = (inserted, readings + 1);
        }
        println!("{readings} readings");
    });
    assert_eq!(Sharded::open(shell.path("seen")).unwrap().inserted(), Some(2 * ROUNDS * 1000));
    let added = lines(1, 0..2 * ROUNDS * 1000);
    assert_eq!(shell.pipe("check -c seen", added).ok().text(), "60000\n");
}

#[test]
fn more_shards_than_the_usual_limit_of_open_files_can_be_used() {
    let (shell, _) = fixture();
    shell.run("build --shards 300 -n 200000 -o many lines").ok();
    shell.run("build --shards 300 -n 200000 -o more lines").ok();
    let limited = |arguments: &str| {
        let mut command = shell.script(&format!("ulimit -S -n 256; exec {UMBEL} {arguments}"));
        Process::start(&mut command).finish()
    };
    limited("add many lines").ok();
    limited("union many more -o both").ok();
    assert_eq!(limited("check -c both lines").ok().text(), "50000\n");
}

/// The script of the guide, with a task that is killed when it runs for the first time.
#[test]
fn processes_of_a_batch_make_the_files_of_one_even_if_one_is_killed() {
    let (shell, _) = fixture();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/shards.sh");
    let arguments = "3 5 200000 0.1% lines";
    let run = |name: &str, path: &str| {
        let mut command = shell.script(&format!("{path} sh {} {name} {arguments}", script.display()));
        Process::start(&mut command).finish()
    };
    run("batch", "").ok();
    assert!(shell.contents("batch") == shell.contents("seen"));

    fs::create_dir(shell.path("bin")).unwrap();
    let killing = format!(
        "#!/bin/sh\ncase \"$*\" in *'--only 1-2'*) if mkdir once 2> /dev/null; then\n\
         {UMBEL} \"$@\" & kill -9 $!; wait $!; exit 1; fi;; esac\nexec {UMBEL} \"$@\"\n"
    );
    shell.write("bin/umbel", killing);
    shell.allow("bin/umbel", 0o755);
    let answer = run("again", "PATH=$PWD/bin:$PATH").code(0);
    assert!(answer.stderr.contains("shards 1-2 failed at try 1"), "{}", answer.stderr);
    assert!(shell.contents("again") == shell.contents("seen"));
}
