//! Real data: the promised rate on words of one language asked of a filter of another, and no word lost.

mod words;

use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Output};

fn umbel(args: &[&str], inputs: &[&Path]) -> Output {
    let output =
        Command::new(env!("CARGO_BIN_EXE_umbel")).args(args).args(inputs).output().expect("umbel runs");
    assert!(output.stderr.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn lines(bytes: &[u8]) -> HashSet<&[u8]> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect()
}

/// The rate of a build at its capacity differs from 1 % by 0.3 % of it, that of 660 000 questions by 1.2 % of it, so
/// that 0.05 % of all words, 5 % of the rate, are four standard deviations.
#[test]
fn english_words_are_taken_for_polish_ones_at_the_promised_rate_and_none_is_lost() {
    let (polish, english) =
        (words::list("wpolish", "polish"), words::list("wamerican-insane", "american-english-insane"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let filter = folder.path().join("polish.umbel");
    let name = filter.to_str().expect("a path of text");
    assert!(umbel(&["build", "-p", "1%", "-o", name], &[&polish]).status.success());

    let [polish, asked] = [&polish, &english].map(|path| std::fs::read(path).expect("a word list"));
    let [polish, asked] = [&polish, &asked].map(|words| lines(words));
    let answered = umbel(&["check", name], &[&english]).stdout;
    let answered = lines(&answered);
    let absent: HashSet<&[u8]> = asked.difference(&polish).copied().collect();
    assert!(absent.len() > 600_000, "there are {} English words that are not Polish", absent.len());
    let rate = answered.intersection(&absent).count() as f64 / absent.len() as f64;
    assert!((rate - 0.01).abs() <= 0.0005, "the rate is {rate}");
    assert!(asked.intersection(&polish).all(|word| answered.contains(word)), "a common word was lost");
}
