//! Hyphenation inserts marks and changes nothing else, and reads the list of exceptions only for the
//! words that the filter lets pass.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::sync::OnceLock;
use umbel_text::Error;
use umbel_text::hyphenation::{Counts, Hyphenator, Language};

fn hyphenator(language: Language) -> &'static Hyphenator {
    static ALL: [OnceLock<Hyphenator>; 2] = [const { OnceLock::new() }; 2];
    ALL[language as usize].get_or_init(|| Hyphenator::new(language).expect("a language"))
}

fn marked(language: Language, text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    hyphenator(language).hyphenate(text.as_ref(), &mut out, "-").unwrap();
    out
}

#[track_caller]
fn assert_marked(language: Language, expected: &str) {
    let text = expected.replace('-', "");
    assert_eq!(String::from_utf8(marked(language, text)).unwrap(), expected);
}

#[test]
fn words_are_broken_as_in_dictionaries() {
    for expected in [
        "hy-phen-a-tion",
        "com-puter",
        "pro-grams",
        "ta-ble",
        "as-so-ciate",
        "present",
        "project",
        "process",
        "Ar-kan-sas",
        "PHE-NOM-E-NON",
        "man-u-scripts",
        "a",
        "an",
        "the",
    ] {
        assert_marked(Language::English, expected);
    }
    for expected in [
        "Sil-ben-tren-nung",
        "fin-det",
        "Ver-bin-dun-gen",
        "Sü-ße",
        "Grö-ße",
        "STRAS-SE",
        "Ur-instinkt",
        "Do-nau-dampf-schiff",
        "ab",
        "Äp-fel",
        "ÄP-FEL",
    ] {
        assert_marked(Language::German, expected);
    }
}

#[test]
fn texts_keep_everything_but_their_words() {
    for (text, expected) in [
        ("The computer's programs,\r\n\tprograms.\n\n", "The com-puter's pro-grams,\r\n\tpro-grams.\n\n"),
        ("well-known programs-to-be", "well-known programs-to-be"),
        ("pro\u{ad}grams pro\u{2010}grams", "pro\u{ad}grams pro\u{2010}grams"),
        (
            "see https://example.org/computer/programs or programs",
            "see https://example.org/computer/programs or pro-grams",
        ),
        (
            "ada.lovelace@computer.example /usr/programs computer.programs.rs",
            "ada.lovelace@computer.example /usr/programs computer.programs.rs",
        ),
        ("programs2 snake_case_programs 4programs", "programs2 snake_case_programs 4programs"),
        ("‘programs’ (programs) \"programs\"", "‘pro-grams’ (pro-grams) \"pro-grams\""),
        ("", ""),
    ] {
        assert_eq!(String::from_utf8(marked(Language::English, text)).unwrap(), expected);
    }
    let torn = b"programs \xffprograms programs\xfe \xff programs\0";
    assert_eq!(marked(Language::English, torn), b"pro-grams \xffprograms programs\xfe \xff pro-grams\0");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300, rng_seed: RngSeed::Fixed(70), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn without_its_marks_a_text_is_the_old_one(
        parts in prop::collection::vec(
            prop_oneof![
                prop::sample::select(vec!["programs", "Silbentrennung", "table's", " ", "\n", "Größe", "\u{ad}", "İstanbul", "a\u{308}pfel"])
                    .prop_map(|part| part.as_bytes().to_vec()),
                prop::collection::vec(any::<u8>(), 0..6),
                any::<String>().prop_map(String::into_bytes),
            ],
            0..12,
        ),
    ) {
        // A mark that no text has.
        const MARK: &str = "\u{10ffff}";
        let text = parts.concat();
        let as_text = String::from_utf8_lossy(&text);
        prop_assume!(!as_text.contains(MARK));
        for language in Language::ALL {
            let mut out = Vec::new();
            let counts = hyphenator(language).hyphenate(&text[..], &mut out, MARK).unwrap();
            prop_assert_eq!(bstr::ByteSlice::replace(&out[..], MARK, ""), text.clone());
            prop_assert!(counts.found <= counts.read && counts.read <= counts.words);
        }
    }
}

#[test]
fn a_line_of_any_length_is_hyphenated() {
    let text = "programs ".repeat(300_000);
    let out = marked(Language::English, &text);
    assert!(out == "pro-grams ".repeat(300_000).into_bytes());
    let long = "x".repeat(3 << 20);
    assert!(marked(Language::English, &long) == long.into_bytes());
}

#[test]
fn own_exceptions_take_precedence() {
    let mut english = Hyphenator::new(Language::English).unwrap();
    let known = english.exceptions();
    english.add_exceptions("# mine\nta-b-le\r\n\nPro\u{ad}grams\nnaï-ve-té\ncomputer\n").unwrap();
    assert_eq!(english.exceptions(), known + 3, "table was known");
    assert_eq!(english.breaks("TABLE"), [2], "the last letters stay together");
    assert_eq!(english.breaks("naïveté"), [4], "a byte offset, and three letters at the end");
    assert!(english.breaks("computer").is_empty());
    for (text, wrong) in [("a-b\ntwo words\n", 2), ("x1\n", 1), ("\n\n---\n", 3), ("isn't", 1)] {
        let error = english.add_exceptions(text).unwrap_err();
        assert!(matches!(error, Error::NotAnException { line } if line == wrong), "{error}");
        assert!(error.to_string().contains("ta-ble"), "{error}");
    }
    assert_eq!(english.breaks("Arkansas"), [2, 5], "the others are still there");
}

/// With k false positives expected among n words, fewer than 6 standard deviations more occur; the
/// chance of a failure is below one in a million.
#[test]
fn the_list_is_read_for_exceptions_and_rarely_for_others() {
    let english = hyphenator(Language::English);
    let words: Vec<String> = (0..50_000u32).map(|n| format!("xq{}", letters(n))).collect();
    let counts = english.hyphenate(words.join(" ").as_bytes(), std::io::sink(), "-").unwrap();
    assert_eq!((counts.words, counts.found), (50_000, 0));
    let expected = english.filter().stats().rate_now * 50_000.0;
    assert!((counts.wasted() as f64) < 1.2 * expected + 6.0 * expected.sqrt(), "{counts:?}, {expected}");
    assert_eq!(counts.saved() + counts.read, counts.words);
    let counts = english.hyphenate(&b"table tables project hyphenation"[..], std::io::sink(), "-").unwrap();
    assert_eq!(counts.found, 3, "tables is regular");
    let german = hyphenator(Language::German).hyphenate(&b"Tabellen"[..], std::io::sink(), "-").unwrap();
    assert_eq!(german, Counts { words: 1, read: 0, found: 0 }, "an empty filter says no");
}

fn letters(mut n: u32) -> String {
    let mut word = String::new();
    for _ in 0..5 {
        word.push(char::from(b'a' + (n % 26) as u8));
        n /= 26;
    }
    word
}
