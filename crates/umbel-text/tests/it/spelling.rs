//! The speller never reports a word of the list and misses a misspelling with the rate. Its
//! suggestions are in the list and one edit away. It sees every word of any text once, at its
//! position.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeSet;
use std::io::BufReader;
use std::ops::ControlFlow;
use umbel::Hasher;
use umbel_text::spelling::{Dictionary, LANGUAGES, Language, List, each_word};

fn fixed(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..Default::default() }
}

fn dictionary(words: &str) -> Dictionary {
    Dictionary::new(List::parse(&[words.as_bytes()]).unwrap(), 1e-9).unwrap()
}

/// Returns the words of a text with their positions.
fn words(text: &[u8]) -> Vec<(String, u64, u64)> {
    words_in(text, 1 << 16, false)
}

fn words_in(text: &[u8], buffer: usize, addresses: bool) -> Vec<(String, u64, u64)> {
    let mut found = Vec::new();
    let result = each_word(BufReader::with_capacity(buffer, text), addresses, |word| {
        found.push((word.text.to_string(), word.line, word.column));
        ControlFlow::<()>::Continue(())
    });
    let (passed, end) = result.unwrap();
    assert!(end.is_none() && passed.words == found.len() as u64);
    found
}

fn just(text: &str) -> Vec<String> {
    words(text.as_bytes()).into_iter().map(|(word, _, _)| word).collect()
}

/// A bijection that is unrelated to the hashes of the library.
fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 27).wrapping_mul(0x3c79_ac49_2ba7_b653);
    let x = (x ^ x >> 33).wrapping_mul(0x1c69_b3f7_4ac4_ae35);
    x ^ x >> 27
}

#[test]
fn words_are_letters_with_apostrophes_at_their_positions() {
    let text = "The quick,\n  don't “l’amour” naïve\n\nÉté-là";
    let expected = [
        ("The", 1, 1),
        ("quick", 1, 5),
        ("don't", 2, 3),
        ("l'amour", 2, 10),
        ("naïve", 2, 19),
        ("Été", 4, 1),
        ("là", 4, 5),
    ];
    let found = words(text.as_bytes());
    let found: Vec<_> = found.iter().map(|(word, line, column)| (word.as_str(), *line, *column)).collect();
    assert_eq!(found, expected);
    assert_eq!(just("dogs' 'tis rock'n'roll o'"), ["dogs", "tis", "rock'n'roll", "o"]);
    assert_eq!(just("e\u{301}te\u{301} co\u{ad}op"), ["été", "coop"], "composed, without soft hyphens");
    assert_eq!(just("x86 2nd foo_bar 12 don't2"), [""; 0], "numbers and identifiers are not words");
}

#[test]
fn addresses_file_names_and_paths_are_skipped() {
    let text = "see https://example.org/a/b?c=d, (www.exmaple.net) or jon.doe@mail.example, main.rs and /usr/lib/x ./y ok.\nEnd.Next";
    let expected = ["see", "or", "and", "ok", "End", "Next"];
    assert_eq!(just(text), expected);
    let all: Vec<String> = words_in(b"a.txt http://x.y", 64, true).into_iter().map(|word| word.0).collect();
    assert_eq!(all, ["a", "txt", "http", "x", "y"]);
    assert_eq!(
        just("[the page](https://example.org/pgae) and/or this"),
        ["the", "page", "and", "or", "this"]
    );
}

#[test]
fn invalid_utf8_affects_only_adjacent_words() {
    let text = b"caf\xe9 good \xff bad\xfe\xfe end";
    let mut found = Vec::new();
    let (passed, _) = each_word(&text[..], false, |word| {
        found.push((word.text.to_string(), word.column));
        ControlFlow::<()>::Continue(())
    })
    .unwrap();
    assert_eq!(found, [("good".to_string(), 6), ("end".to_string(), 19)]);
    assert_eq!((passed.words, passed.unreadable), (2, 2));
    assert!(each_word(&b"a\0b"[..], false, |_| ControlFlow::<()>::Continue(())).is_err(), "binary");
}

#[test]
fn capitals_possessives_and_elisions_are_known() {
    let known = dictionary("the\nHaus\nNASA\ndog\nl'\namour\niPhone\ndon't\naujourd'hui\n");
    for word in ["the", "The", "THE", "Haus", "HAUS", "NASA", "dog's", "Dog's", "DOG'S", "l'amour", "L'amour"]
    {
        assert!(known.knows(word), "{word}");
    }
    for word in ["iPhone", "don't", "Don't", "DON'T", "Aujourd'hui"] {
        assert!(known.knows(word), "{word}");
    }
    for word in ["haus", "nasa", "tHe", "teh", "dog't", "x'amour", "l'amuor", "iphone", "x", "amour'l"] {
        assert!(!known.knows(word), "{word}");
    }
}

#[test]
fn lists_in_all_formats_are_read() {
    let list =
        List::parse(&["\u{feff}über\r\nvice-versa\n\n42\nword/XYZ\ncafe\u{301}\nit’s\n".as_bytes()]).unwrap();
    assert_eq!(list.iter().collect::<Vec<_>>(), ["café", "it's", "versa", "vice", "word", "über"]);
    assert!(List::parse(&[b"", b"\n\n"]).unwrap().is_empty());
    assert_eq!(Language::from_code("DE").unwrap().package, "wngerman");
    assert!(
        Language::from_code("tlh").is_none()
            && LANGUAGES.iter().all(|language| language.path().is_absolute())
    );
}

#[test]
fn the_likeliest_suggestion_comes_first() {
    let known =
        dictionary("brown\nbrow\nbrawn\nlazy\nlaze\nletter\nlater\ntheir\nthere\nété\nett\nl'\namour\n");
    let of = |word: &str| known.suggest(word, 9).words;
    assert_eq!(of("brwon")[0], "brown");
    assert_eq!(of("lazzy"), ["lazy"]);
    assert_eq!(of("leter")[..2], ["letter", "later"]);
    assert_eq!(of("Thier"), ["Their"]);
    assert_eq!(of("ETE"), ["ETT"].map(String::from), "one edit, not two");
    assert_eq!(of("eté")[0], "été");
    assert_eq!(of("l'amuor"), ["l'amour"]);
    assert_eq!(known.suggest("brwn", 1).words.len(), 1);
    assert!(of("zzzzzz").is_empty() && of(&"a".repeat(1000)).is_empty() && of("").len() < 2);
}

/// Computes the restricted Damerau-Levenshtein distance with the textbook algorithm.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut d = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            d[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let other = usize::from(a[i - 1] != b[j - 1]);
                let mut least = (d[i - 1][j] + 1).min(d[i][j - 1] + 1).min(d[i - 1][j - 1] + other);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    least = least.min(d[i - 2][j - 2] + 1);
                }
                least
            };
        }
    }
    d[a.len()][b.len()]
}

proptest! {
    #![proptest_config(fixed(60))]

    /// A naive search through the whole list is the oracle.
    #[test]
    fn all_words_one_edit_away_are_suggested_and_no_others(
        list in prop::collection::btree_set("[abcé]{1,5}", 1..60),
        word in "[abcéz]{1,6}",
    ) {
        let text = list.iter().cloned().collect::<Vec<_>>().join("\n");
        // The filter has many false positives, which the list has to correct.
        let known = Dictionary::new(List::parse(&[text.as_bytes()]).unwrap(), 0.3).unwrap();
        prop_assert!(list.iter().all(|word| known.knows(word)));
        let suggestions = known.suggest(&word, usize::MAX);
        let expected: BTreeSet<String> = list.iter().filter(|other| distance(&word, other) == 1).cloned().collect();
        let suggested = suggestions.words.iter().cloned().collect::<BTreeSet<_>>();
        if word.chars().count() > 2 {
            prop_assert_eq!(suggested, expected);
        } else {
            prop_assert!(suggested.is_subset(&expected), "not all edits of such a short word are tried");
        }
        prop_assert!(suggestions.read <= suggestions.tried);
    }

    /// Positions are right for any bytes and any buffer size.
    #[test]
    fn every_word_is_at_its_reported_position(
        parts in prop::collection::vec(prop_oneof!["[a-zé']{1,9}", "[ ,.\n-]{1,3}", "\u{2019}|_|7|\u{301}|://|@|ß"], 0..80),
        buffer in 1usize..90,
    ) {
        let text = parts.concat();
        for addresses in [false, true] {
            let found = words_in(text.as_bytes(), buffer, addresses);
            prop_assert_eq!(&found, &words_in(text.as_bytes(), 1 << 20, addresses));
            for (word, line, column) in found {
                let line = text.split('\n').nth(line as usize - 1).unwrap();
                let there: String = line.chars().skip(column as usize - 1).collect();
                let plain: String = there.replace('\u{2019}', "'");
                let composed: String = unicode_normalization::UnicodeNormalization::nfc(plain.chars()).collect();
                prop_assert!(composed.starts_with(&word), "{} in {:?}", word, there);
            }
        }
    }

    /// Nothing panics, and valid text around invalid bytes is still found.
    #[test]
    fn any_bytes_can_be_read(bytes in prop::collection::vec(1u8..=255, 0..300)) {
        let mut text = bytes;
        text.extend_from_slice(b"\nfinally");
        let (last, line, column) = words(&text).pop().unwrap();
        let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        prop_assert_eq!((last.as_str(), line, column), ("finally", lines, 1));
    }
}

#[test]
fn a_line_of_many_megabytes_is_read_in_pieces() {
    let line = "wrod ".repeat(1 << 20);
    let found = words(line.as_bytes());
    assert_eq!(found.len(), 1 << 20);
    assert!(found.iter().enumerate().all(|(i, word)| *word == ("wrod".to_string(), 1, 5 * i as u64 + 1)));
    // Without any space, the line is split somewhere, and nothing is lost.
    let letters = "é".repeat(3 << 19);
    let found = words(letters.as_bytes());
    assert_eq!(found.iter().map(|word| word.0.chars().count()).sum::<usize>(), 3 << 19);
    assert!(found.len() < 5);
}

/// Returns a word of two to four syllables.
fn syllables(number: u64) -> String {
    let mut random = mix(number + 1);
    let mut take = |from: &str| {
        let at = (random % from.len() as u64) as usize;
        random /= from.len() as u64;
        from[at..=at].to_owned()
    };
    let count = 2 + number % 3;
    (0..count).map(|_| take("bcdfghklmnprstvw") + &take("aeiou") + &take("nrstl")).collect()
}

/// Applies one random edit.
fn misspelt(word: &str, random: u64) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let [kind, at, letter] = [0, 1, 2].map(|i| mix(random ^ i << 60));
    let at = (at % letters.len() as u64) as usize;
    let letter = char::from(b'a' + (letter % 26) as u8);
    match kind % 4 {
        0 => drop(letters.remove(at)),
        1 => letters.insert(at, letter),
        2 => letters[at] = letter,
        _ => letters.swap(at, (at + 1).min(word.len() - 1)),
    }
    letters.into_iter().collect()
}

/// Allows four standard deviations of the mean, from counting and from filter to filter. The latter
/// is about 3 % of the rate for a filter of this size.
#[test]
fn misspellings_pass_with_the_promised_rate() {
    let words: BTreeSet<String> = (0..20_000).map(syllables).collect();
    let text = words.iter().cloned().collect::<Vec<_>>().join("\n");
    let list = List::parse(&[text.as_bytes()]).unwrap();
    assert_eq!(list.len(), words.len());
    let wrong: BTreeSet<String> = (0..150_000)
        .map(|i| {
            let once = misspelt(&syllables(mix(i) % 20_000), mix(i + 1));
            if i % 2 == 0 { once } else { misspelt(&once, mix(i + 2)) }
        })
        .filter(|word| !words.contains(word))
        .collect();
    assert!(wrong.len() > 100_000);
    for rate in [0.01, 0.001] {
        let builds = 5;
        let mut missed = 0;
        let mut now = 0.0;
        for seed in 0..builds {
            let dictionary = Dictionary::hashed(list.clone(), rate, Hasher::fast(seed)).unwrap();
            assert!(words.iter().all(|word| dictionary.knows(word)), "a word of the list is never reported");
            missed += wrong.iter().filter(|word| dictionary.knows(word)).count();
            now += dictionary.filter().stats().rate_now / builds as f64;
        }
        let asked = (wrong.len() as u64 * builds) as f64;
        let chance = 4.0 * ((rate / asked).sqrt() + 0.03 * rate / (builds as f64).sqrt());
        let measured = missed as f64 / asked;
        assert!((measured - rate).abs() < 0.02 * rate + chance, "{measured} for {rate}");
        assert!((measured - now).abs() < chance, "{measured}, and the bits say {now}");
    }
}

#[test]
fn a_filter_alone_recognises_words_but_cannot_suggest() {
    let filter = {
        use umbel::{AnyFilter, Kind, Spec};
        let mut filter = AnyFilter::build(Kind::Blocked, &Spec::new(100, 1e-6).unwrap()).unwrap();
        filter.insert("brown").unwrap();
        filter
    };
    let known = Dictionary::from_filter(filter, List::parse(&[b"umbel\n"]).unwrap()).unwrap();
    assert!(known.knows("Brown") && !known.knows("d'brown") && known.knows("umbel") && !known.knows("brwon"));
    assert!(known.suggest("brwon", 5).words.is_empty());
    assert_eq!(known.suggest("umble", 5).words, ["umbel"], "but it can suggest the further words");
}

#[test]
fn no_word_of_a_binary_file_is_reported() {
    let mut words = 0;
    let error = each_word(&b"first line\nsecond line\nthe third has a \0\n"[..], false, |_| {
        words += 1;
        ControlFlow::<()>::Continue(())
    });
    assert!(error.unwrap_err().to_string().contains("binary"));
    assert_eq!(words, 0);
}
