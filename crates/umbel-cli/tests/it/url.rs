//! `umbel url`: no address is reported by the filter alone, and no unsafe one is missed.

use crate::shell::{self, Process, Shell};
use std::collections::HashSet;
use std::io::Write;
use std::process::Stdio;

const LIST: &str =
    "# from a friend\nevil.example\nhttp://host.example/bad/\n\nhttps://shop.example/pay?id=7\n";

#[test]
fn a_new_user_builds_and_checks() {
    let shell = Shell::new();
    shell.write("list.txt", LIST);
    shell.run("url build list.txt -o bad.urls").ok();
    assert_eq!(shell.names("."), ["bad.urls", "bad.urls.exact", "list.txt"]);
    let found = shell.run("url check bad.urls http://www.EVIL.example/any/thing#here").code(1);
    assert_eq!(found.text(), "unsafe\thttp://www.evil.example/any/thing\tevil.example/\n");
    assert_eq!(found.stderr, "");
    let clear = shell.run("url check bad.urls good.example/evil.example").ok();
    assert_eq!(clear.text(), "clear\thttp://good.example/evil.example\n");
    let lines = "host.example/b%61d/x\nhost.example/good/../bad/\nhost.example/badly\nshop.example/pay?id=7\nshop.example/pay?id=8\n";
    let several = shell.pipe("url check bad.urls", lines).code(1);
    let words: Vec<&str> = several.text().lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(words, ["unsafe", "unsafe", "clear", "unsafe", "clear"]);
}

#[test]
fn without_the_exact_list_no_address_is_unsafe() {
    let shell = Shell::new();
    shell.pipe("url build -o bad.urls", LIST).ok();
    std::fs::rename(shell.path("bad.urls.exact"), shell.path("elsewhere")).unwrap();
    let alone = shell.run("url check bad.urls evil.example/x").code(3);
    assert_eq!(alone.text(), "unconfirmed\thttp://evil.example/x\n");
    shell.run("url check bad.urls good.example").ok();
    shell.run("url check bad.urls evil.example/x --confirm elsewhere").code(1);
    shell.run("url check bad.urls evil.example --confirm missing").refused(&["missing"]);
    shell.run("url check bad.urls evil.example --confirm bad.urls").refused(&["not an exact list"]);
    shell.pipe("url build -o other.urls", "good.example\n").ok();
    shell
        .run("url check bad.urls evil.example --confirm other.urls.exact")
        .refused(&["was built with another exact list"]);
    let mut broken = shell.read("elsewhere");
    broken[80] ^= 1;
    shell.write("broken", &broken);
    shell.run("url check bad.urls evil.example --confirm broken").refused(&["broken is damaged"]);
    shell.write("short", &broken[..1000]);
    shell.run("url check bad.urls evil.example --confirm short").refused(&["short is damaged"]);
}

/// Compares every verdict with a set, for a filter so small that it is wrong about every third
/// expression.
#[test]
fn verdicts_follow_the_exact_list_however_bad_the_filter() {
    let shell = Shell::new();
    let host = |number: u64| format!("h{:x}.example", shell::mix(number));
    let listed: HashSet<String> = (0..2000).map(host).collect();
    shell.write("list", listed.iter().map(|host| format!("{host}\n")).collect::<String>());
    shell.run("url build -p 30% list -o bad.urls").ok();
    let asked: String = (1000..5000).map(|number| format!("http://www.{}/page\n", host(number))).collect();
    let answer = shell.pipe("url check --stats bad.urls", &asked).code(1);
    let mut count = 0;
    for (line, number) in answer.text().lines().zip(1000..) {
        let expected = if listed.contains(&host(number)) { "unsafe\t" } else { "clear\t" };
        assert!(line.starts_with(expected), "{line}");
        count += 1;
    }
    assert_eq!(count, 4000);
    let numbers: Vec<f64> = answer.stderr.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
    let [addresses, expressions, asked, in_vain] = numbers[..] else { panic!("{}", answer.stderr) };
    // A page has two expressions, itself and the root, for the host and for its parent; `example`
    // alone is not looked up.
    assert_eq!((addresses, expressions), (4000.0, 16_000.0));
    // Expressions of the listed hosts before the listed one count too: 12 000 to 16 000 at 30 %,
    // and 1000 that are right.
    assert!(asked == in_vain + 1000.0 && (3000.0..5200.0).contains(&in_vain), "{}", answer.stderr);
}

#[test]
fn invalid_addresses_are_reported_and_the_others_checked() {
    let shell = Shell::new();
    shell.pipe("url build -o bad.urls", LIST).ok();
    let mut lines =
        b"mailto:a@b.example\nhttp://\x1b[31m.example/\xff\n\n \nhttp:///\nevil.example\n".to_vec();
    lines.extend(b"a.example/");
    lines.extend(b"a/".repeat(1000));
    let answer = shell.pipe("url check bad.urls", &lines).code(2);
    let told: Vec<&str> = answer.text().lines().collect();
    assert_eq!(told.len(), 5, "{told:?}");
    assert!(told[0].starts_with("invalid\tmailto:a@b.example\tit is not a web address"));
    assert!(told[1].starts_with("invalid\t") && !told[1].contains('\x1b'), "{}", told[1]);
    assert_eq!(told[2], "invalid\thttp:///\tthere is no host");
    assert!(told[3].starts_with("unsafe\t") && told[4].starts_with("clear\t"));
    let garbage = shell.run(&["url", "check", "bad.urls", "garbage", "no address", "good.example"]).code(2);
    assert_eq!(garbage.text().matches("it is not an address: without http:// it needs a host").count(), 2);
    assert!(garbage.text().ends_with("clear\thttp://good.example/\n"), "{}", garbage.text());
    let built = shell.pipe("url build -o some.urls", "evil.example\nmailto:x@y\n").code(0);
    assert!(
        built.stderr.contains("skipped 1 line that is not an address; the first is line 2"),
        "{}",
        built.stderr
    );
    shell.pipe("url build -o none.urls", "mailto:x@y\n").refused(&["there is no address", "line 1"]);
    shell.pipe("url build -o none.urls", "\n").refused(&["there is no address"]);
    shell.pipe("url build -o some.urls", "a.example\n").refused(&["some.urls exists: give -f"]);
    shell.pipe("url build -o .", "a.example\n").refused(&["is a directory"]);
    shell.pipe("url build -o x --prefix 3", "a.example\n").refused(&["from 4 to 32 bytes"]);
    shell.pipe("build -o lines.umbel", "a\n").ok();
    shell.run("url check lines.umbel a.example").refused(&["is not a filter of addresses"]);
    shell.run("url check missing a.example").refused(&["missing"]);
    let quiet = shell.pipe("url check -q bad.urls", "good.example\nevil.example\nmailto:\n").code(1);
    assert_eq!(quiet.text(), "");
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = shell.command("url check bad.urls");
    let answer =
        Process::start(command.stdout(Stdio::from(full))).feed(|mut stdin| stdin.write_all(b"a.example\n"));
    assert_eq!(answer.code, Some(2), "{}", answer.stderr);
}

#[test]
fn a_filter_of_addresses_can_have_a_secret_and_longer_prefixes() {
    let shell = Shell::new();
    shell.run("key new key").ok();
    shell.pipe("url build --key-file key --prefix 32 -o bad.urls", LIST).ok();
    shell.run("url check bad.urls evil.example --key-file key").code(1);
    shell.run("url check bad.urls evil.example").refused(&["built with a secret"]);
}

/// Lists in the formats of hosts files and ad blockers.
#[test]
fn hosts_files_and_rules_that_name_a_host_are_understood() {
    let shell = Shell::new();
    shell.write(
        "hosts",
        "127.0.0.1 localhost\n::1 ip6-localhost ip6-loopback\n255.255.255.255 broadcasthost\nfe80::1%lo0 localhost\n\
         # ads\n0.0.0.0 0.0.0.0\n0.0.0.0 ads.example\n127.0.0.1\ttrk.example # note\n:: six.example SEVEN.example\r\n",
    );
    shell.run("url build hosts -o hosts.urls").ok();
    for host in ["ads.example", "www.trk.example", "six.example", "seven.example"] {
        shell.run(&["url", "check", "hosts.urls", &format!("http://{host}/page")]).code(1);
    }
    for host in ["localhost", "broadcasthost", "ip6-loopback", "0.0.0.0", "127.0.0.1", "note.example"] {
        shell.run(&["url", "check", "hosts.urls", &format!("http://{host}/")]).ok();
    }
    shell.write(
        "rules",
        "! Title: rules\n||evil.example^\n*.wild.example\nplain.example # why\n||path.example/x^\n||opt.example^$script\n\
         @@||good.example^\nhttp://star.example/*\n192.168.0.1 inner.example\ntwo.example words.example\n",
    );
    let built = shell.run("url build rules -o rules.urls").code(0);
    assert_eq!(
        built.stderr,
        "umbel: skipped 6 lines that are not addresses; the first is line 5 of rules, since blanks and the signs * | ^ are not understood in it\n"
    );
    for host in ["evil.example", "a.evil.example", "wild.example", "a.wild.example", "plain.example"] {
        shell.run(&["url", "check", "rules.urls", host]).code(1);
    }
    for host in
        ["path.example", "opt.example", "good.example", "star.example", "inner.example", "two.example"]
    {
        shell.run(&["url", "check", "rules.urls", host]).ok();
    }
    shell.pipe("url build -o x", "127.0.0.1 localhost\n").refused(&["there is no address in the list"]);
}

#[test]
fn only_a_valid_address_is_clear() {
    let shell = Shell::new();
    shell.pipe("url build -o bad.urls", LIST).ok();
    for nothing in ["", "\n \n"] {
        shell.pipe("url check bad.urls", nothing).refused(&["there was no address to check"]);
        shell.pipe("url check -q bad.urls -", nothing).refused(&["there was no address to check"]);
    }
    shell.write("visited.txt", "evil.example\n");
    shell.run("url check bad.urls visited.txt").refused(&[
        "visited.txt is a file",
        "`umbel url check bad.urls < visited.txt`",
        "http://visited.txt",
    ]);
    shell.run("url check bad.urls http://visited.txt").ok();
    let both = shell.pipe("url check bad.urls good.example - fine.example", "evil.example\n").code(1);
    let words: Vec<&str> = both.text().lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(words, ["clear", "unsafe", "clear"]);
    shell.pipe("url build -o -", LIST).refused(&["two files", "name a file with -o"]);
    // Commands that do not know the form of stored addresses refuse the filter.
    for args in ["check bad.urls", "add bad.urls"] {
        shell.pipe(args, "evil.example\n").refused(&["bad.urls holds web addresses", "umbel url check"]);
    }
    assert_eq!(shell.names("."), ["bad.urls", "bad.urls.exact", "visited.txt"]);
}

#[test]
fn two_concurrent_builds_leave_both_files_of_the_same_one() {
    let shell = Shell::new();
    for round in 0..6 {
        // Whether the files exist already or not.
        if round % 2 == 0 {
            for name in shell.names(".") {
                std::fs::remove_file(shell.path(&name)).unwrap();
            }
        }
        let mut building: Vec<Process> = (0..8).map(|_| shell.start("url build -f -o bad.urls")).collect();
        for (number, process) in (0..).zip(&mut building) {
            let list: String = (0..1000).map(|host| format!("h{host}.p{number}.example\n")).collect();
            process.stdin().write_all(list.as_bytes()).expect("a pipe holds a few lines");
        }
        for process in building {
            process.finish().ok();
        }
        shell.run("url check bad.urls other.example h1.p1.example.other").ok();
        let all: String = (0..8).map(|number| format!("h1.p{number}.example\n")).collect();
        let answer = shell.pipe("url check bad.urls", &all).code(1);
        assert_eq!(answer.text().matches("unsafe").count(), 1, "{}", answer.text());
    }
}
