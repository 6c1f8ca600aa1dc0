//! The tabs of `umbel explore` about files and the toy: what they show is what the commands print.

use crate::chromium::Browser;
use crate::explore::Explorer;
use crate::shell::{Shell, lines};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Returns a folder with three filters, of which two can be compared, and one is keyed.
fn filters() -> Shell {
    let shell = Shell::new();
    shell.build("one", "-n 1000 -p 2%", lines(1, 0..1000));
    shell.build("two", "--like one", lines(1, 500..1500));
    shell.run("key new secret.key").ok();
    shell.build("keyed", "-n 2000 --kind cuckoo --hash keyed --key-file secret.key", lines(1, 0..700));
    shell
}

/// Returns a key of the filters as text.
fn key(number: u64) -> String {
    String::from_utf8(crate::shell::line(1, number)).expect("text")
}

#[test]
fn files_are_described_compared_and_asked_as_the_commands_do() {
    let shell = filters();
    let explorer = Explorer::start(&shell, &["--key-file", "secret.key", "one", "two", "keyed"]);
    let names = ["one", "two", "keyed"];
    let facts = explorer.ask("files", &json!({}));
    assert_eq!(facts["files"], json!(names.map(|name| shell.info(name))));

    let compared = explorer.ask("compare", &json!({"left": 0, "right": 1}));
    assert_eq!(compared, shell.run("compare one two --json").ok().json());
    let refused = explorer.ask("compare", &json!({"left": 0, "right": 2}));
    assert!(refused["error"].as_str().expect("an error").contains("keyed"), "{refused}");

    for key in [&key(17), "nobody", "schlüssel", "", " "] {
        let answers = explorer.ask("why", &json!({"key": key}));
        for (number, name) in names.into_iter().enumerate() {
            let mut answer = answers["files"][number].clone();
            answer.as_object_mut().expect("an answer").remove("path");
            let why = shell.run(&["why", "--json", "--key-file", "secret.key", name, key]);
            assert_eq!(answer, why.json(), "{name} {key:?}");
        }
    }
    let asked: Vec<String> = (900..1300).map(key).collect();
    let asked = asked.join("\n");
    let answers = explorer.ask("check", &json!({"keys": asked}));
    for (number, name) in names.into_iter().enumerate() {
        let found = shell.pipe(&["check", "-c", "--key-file", "secret.key", name], &asked);
        let members = answers["files"][number]["members"].to_string();
        assert_eq!(members, found.stdout.trim_ascii_end().escape_ascii().to_string(), "{name}");
    }
    for (text, count) in [("", 0), ("\n", 1), ("a", 1), ("a\n\nb\n", 3)] {
        assert_eq!(explorer.ask("check", &json!({"keys": text}))["keys"], count, "{text:?}");
    }
}

#[test]
fn a_picture_has_the_bits_of_the_filter() {
    let shell = filters();
    let explorer = Explorer::start(&shell, &["one"]);
    let facts = shell.info("one");
    let whole = explorer.ask("picture", &json!({"file": 0, "start": 0, "cells": 1}));
    assert_eq!(whole["bits"], facts["bits"]);
    assert!((whole["fill"][0].as_f64().unwrap() - facts["fill"].as_f64().unwrap()).abs() < 1e-12, "{facts}");
    // At the deepest, each cell is a bit: those that a key reads are set.
    let why = explorer.ask("why", &json!({"key": key(5)}));
    for probe in why["files"][0]["probes"].as_array().expect("probes") {
        let bit = probe["bit"].as_u64().expect("a bit");
        let part = explorer.ask("picture", &json!({"file": 0, "start": bit, "end": bit + 1, "cells": 64}));
        assert_eq!(part["fill"], json!([1.0]));
    }
    for (asked, says) in [
        (json!({"file": 7, "start": 0, "cells": 10}), "no file"),
        (json!({"file": 0, "start": 0, "cells": 0}), "cells"),
        (json!({"file": 0, "start": 0, "cells": 1e9}), "fields"),
        (json!({"file": -1, "start": 0, "cells": 1}), "fields"),
    ] {
        assert!(
            explorer.ask("picture", &asked)["error"].as_str().is_some_and(|error| error.contains(says)),
            "{asked}"
        );
    }
    let beyond = explorer.ask("picture", &json!({"file": 0, "start": u64::MAX, "end": u64::MAX, "cells": 5}));
    assert_eq!(beyond["fill"], json!([]));
}

#[test]
fn a_dropped_file_is_described_and_another_is_refused() {
    let shell = filters();
    let explorer = Explorer::start(&shell, &[]);
    let facts = explorer.drop_file("..%2Fone", &shell.read("one"));
    assert_eq!(facts["bits"], shell.info("one")["bits"]);
    assert!(explorer.drop_file("keys.txt", b"rose\nlily\n")["error"].is_string());
    let files = explorer.ask("files", &json!({}))["files"].as_array().expect("a list").clone();
    assert_eq!(files.len(), 1);
    let path = files[0]["path"].as_str().expect("a path").to_owned();
    assert!(path.ends_with("/.._one") || path.ends_with("/_one"), "{path}");
    explorer.end(Signal::INT);
    assert!(!std::path::Path::new(&path).exists(), "dropped files are removed at the end");
}

#[test]
fn a_damaged_or_missing_file_is_an_error_before_the_page_opens() {
    let shell = filters();
    shell.run("explore --no-open missing").refused(&["missing"]);
    let mut bytes = shell.read("one");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    shell.write("damaged", &bytes);
    shell.run("explore --no-open one damaged").refused(&["damaged"]);
}

/// Plays steps of the toy, and returns the last answer.
fn play(explorer: &Explorer, kind: &str, steps: &[(&str, &str)]) -> Value {
    let hash = "x mod 10, 2x+3 mod 10, 3x+7 mod 10";
    explorer.ask("toy", &json!({"m": "10", "k": "3", "hash": hash, "kind": kind, "steps": steps}))
}

fn bits(answer: &Value) -> String {
    answer["cells"].as_array().expect("cells").iter().map(|cell| cell["value"].to_string()).collect()
}

#[test]
fn the_toy_shows_a_false_positive_a_false_negative_and_the_keys_to_blame() {
    let shell = Shell::new();
    let explorer = Explorer::start(&shell, &[]);
    let inserted = [("insert", "2"), ("insert", "4"), ("insert", "9")];
    let with = |steps: &[(&'static str, &'static str)]| [&inserted[..], steps].concat();
    assert_eq!(bits(&play(&explorer, "standard", &inserted[..1])), "0011000100");
    assert_eq!(bits(&play(&explorer, "standard", &inserted)), "0111100101");
    let no = play(&explorer, "standard", &with(&[("ask", "5")]));
    assert_eq!((&no["last"]["answer"], &no["last"]["refused"]), (&json!("no"), &json!([5])));
    let positive = play(&explorer, "standard", &with(&[("ask", "12")]));
    assert_eq!(
        (&positive["last"]["answer"], &positive["last"]["blame"]),
        (&json!("false-positive"), &json!(["2"]))
    );
    let negative = play(&explorer, "standard", &with(&[("delete", "4"), ("ask", "9")]));
    assert_eq!(bits(&negative), "0011000100");
    assert_eq!(
        (&negative["last"]["answer"], &negative["last"]["blame"]),
        (&json!("false-negative"), &json!(["4"]))
    );
    assert_eq!(negative["members"], json!(["2", "9"]));
    // Counters can delete: 9 stays, and 4 has the same cells.
    let counted = play(&explorer, "counting", &with(&[("delete", "4"), ("ask", "9"), ("ask", "4")]));
    assert_eq!(counted["answers"], json!([null, null, null, null, "yes", "false-positive"]));

    let refused = play(&explorer, "standard", &with(&[("insert", "rose")]));
    assert_eq!((&refused["step"], refused["error"].is_string()), (&json!(3), true), "{refused}");
    for (name, value) in
        [("m", "0"), ("m", "257"), ("m", "x"), ("k", "0"), ("k", "x"), ("kind", "rose"), ("hash", "y")]
    {
        let mut asked = json!({"m": "10", "k": "3", "hash": "", "kind": "standard", "steps": []});
        asked[name] = value.into();
        assert!(explorer.ask("toy", &asked)["error"].is_string(), "{asked}");
    }
}

#[test]
fn a_browser_shows_files_answers_and_the_toy() {
    let Some(mut browser) = Browser::start() else { return };
    let shell = filters();
    let explorer = Explorer::start(&shell, &["one", "two"]);
    let own = format!("http://{}/", explorer.address);
    let mut page = browser.open(&explorer.url, "en", 1200);
    page.click("[data-tab=file]");
    page.wait_for("document.querySelectorAll('[data-panel=file] [data-file] canvas').length === 2");
    let facts = shell.info("one");
    for field in ["kind", "bits", "hashes", "fill", "capacity", "fpr_now", "estimated_count", "file_bytes"] {
        let shown = page.evaluate(&format!(
            "document.querySelector('[data-panel=file] [data-file=one] [data-field={field}]').dataset.value"
        ));
        let shown = shown.as_str().expect("a value");
        let wanted = &facts[field];
        let equal = wanted.as_str() == Some(shown) || wanted.as_f64() == shown.parse().ok();
        assert!(equal, "{field}: {shown}, not {wanted}");
    }
    let compared = shell.run("compare one two --json").ok().json();
    page.wait_for("document.querySelector('[data-panel=file] [data-field=jaccard]') !== null");
    let jaccard = page.evaluate("Number(document.querySelector('[data-field=jaccard]').dataset.value)");
    assert_eq!(jaccard.as_f64(), compared["jaccard"].as_f64());

    page.click("[data-tab=ask]");
    for key in [&key(17), "nobody"] {
        let why = shell.run(&["why", "--json", "one", key]).json();
        page.enter("key", key);
        page.click("[data-action=ask]");
        let here = "document.querySelector('[data-panel=ask] [data-file=one]')";
        page.wait_for(&format!(
            "{here}.querySelector('[data-field=digest]')?.dataset.value === {}",
            why["digest"]
        ));
        let member = page.evaluate(&format!("{here}.querySelector('[data-field=member]').dataset.value"));
        assert_eq!(member.as_str(), Some(&*why["member"].to_string()));
        let probes = format!(
            "[...{here}.querySelectorAll('[data-probe]')].map(e => [Number(e.dataset.bit), Number(e.dataset.value)])"
        );
        let wanted: Vec<Value> = why["probes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|probe| json!([probe["bit"], probe["value"]]))
            .collect();
        assert_eq!(page.evaluate(&probes), json!(wanted));
    }
    page.enter("keys", &[key(1), key(2), "nobody at all".into()].join("\n"));
    page.click("[data-action=ask-many]");
    page.wait_for("document.querySelector('[data-panel=ask] [data-file=one] [data-field=members]')?.dataset.value === '2'");

    page.click("[data-tab=toy]");
    for (input, text) in [("toy-m", "10"), ("toy-k", "3"), ("toy-hash", "x mod 10, 2x+3 mod 10, 3x+7 mod 10")]
    {
        page.enter(input, text);
    }
    let cells =
        "[...document.querySelectorAll('[data-panel=toy] [data-bit]')].map(e => e.dataset.value).join('')";
    for (act, key, expected) in [
        ("insert", "2", "0011000100"),
        ("insert", "4", "0111100101"),
        ("insert", "9", "0111100101"),
        ("ask", "5", "no"),
        ("ask", "12", "false-positive"),
        ("delete", "4", "0011000100"),
        ("ask", "9", "false-negative"),
    ] {
        page.enter("toy-key", key);
        page.click(&format!("[data-action=toy-{act}]"));
        let shown = match act {
            "ask" => "document.querySelector('[data-field=toy-answer]').dataset.value",
            _ => cells,
        };
        page.wait_for(&format!("{shown} === '{expected}'"));
        if key == "12" {
            page.wait_for("/\\b2\\b/.test(document.querySelector('[data-field=toy-why]').textContent)");
        }
    }
    // The address has the toy, for another reader.
    let address = page.evaluate("location.href");
    page.assert_clean(&own);
    let mut page = browser.open(address.as_str().expect("an address"), "de", 360);
    page.wait_for(&format!("{cells} === '0011000100'"));
    for tab in ["plan", "file", "ask", "toy"] {
        page.click(&format!("[data-tab={tab}]"));
        page.wait_for(&format!("document.querySelector('[data-panel={tab}]').getClientRects().length > 0"));
        page.evaluate("new Promise(done => setTimeout(done, 300))");
        assert_eq!(
            page.evaluate("document.scrollingElement.scrollWidth"),
            360,
            "{tab}: a phone need not scroll sideways"
        );
    }
    page.assert_clean(&own);
}

#[test]
fn a_filter_that_fills_follows_theory() {
    let shell = Shell::new();
    let explorer = Explorer::start(&shell, &[]);
    for (kind, own) in [("blocked", ""), ("standard", "rose\nlily\n"), ("scalable", ""), ("quotient", "")] {
        let plan = json!({"n": "20000", "p": "2%", "kind": kind});
        let run = explorer.ask("fill-start", &json!({"plan": plan, "own": own}));
        assert_eq!((&run["capacity"], &run["error"]), (&json!(20_000), &Value::Null), "{run}");
        let step = |keys: u64| explorer.ask("fill-step", &json!({"run": run["run"], "keys": keys}));
        let number = |step: &Value, name: &str| step[name].as_f64().expect("a number");
        for keys in [10_000, 20_000] {
            let step = step(keys);
            assert_eq!(step["keys"], keys, "{kind}: {step}");
            let [low, high, theory] = ["low", "high", "theory"].map(|name| number(&step, name));
            assert!(low <= number(&step, "measured") && number(&step, "measured") <= high, "{step}");
            // 50 000 questions vary, and so do filters.
            assert!(0.7 * low <= theory && theory <= 1.4 * high, "{kind}: {step}");
        }
    }
    // A cuckoo filter is full one day, and says so.
    let run =
        explorer.ask("fill-start", &json!({"plan": {"n": "1000", "p": "1%", "kind": "cuckoo"}, "own": ""}));
    let step = explorer.ask("fill-step", &json!({"run": run["run"], "keys": 4000}));
    assert!(step["full"].is_string() && step["keys"].as_u64().unwrap() < 4000, "{step}");
    for (asked, says) in [
        (json!({"plan": {"n": "1e12", "p": "1%"}, "own": ""}), "64 MiB"),
        (json!({"plan": {"n": "100", "p": "1%", "kind": "fuse"}, "own": ""}), "fuse"),
        (json!({"plan": {"n": "x", "p": "1%"}, "own": ""}), "not a number"),
    ] {
        let error = explorer.ask("fill-start", &asked)["error"].to_string();
        assert!(error.contains(says), "{error}");
    }
    assert!(explorer.ask("fill-step", &json!({"run": 999, "keys": 1}))["error"].is_string());
}
