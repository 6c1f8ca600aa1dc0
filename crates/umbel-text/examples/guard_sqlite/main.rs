//! Puts a guard in front of an SQLite table, measures the time saved, and shows that the guard
//! notices writes by others.
//!
//! `cargo run --release -p umbel-text --example guard_sqlite`

mod store;

use std::time::Instant;
use store::Words;
use umbel_text::guard::{Change, Guard, Lookup};

const WORDS: u64 = 500_000;
const LOOKUPS: u64 = 500_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("words.db");
    let mut plain = Words::open(&path)?;
    plain.connection().execute_batch("BEGIN")?;
    for number in 0..WORDS {
        plain.insert(&format!("word {number}"), vec![0; 100])?;
    }
    plain.connection().execute_batch("COMMIT")?;

    // Every tenth key exists.
    let ask = |number: u64| {
        format!("word {}", number * 7919 % WORDS + if number.is_multiple_of(10) { 0 } else { WORDS })
    };
    let start = Instant::now();
    let without =
        (0..LOOKUPS).map(|number| plain.get(&ask(number))).filter(|found| matches!(found, Ok(Some(_))));
    println!("without: {} found in {:.2} s", without.count(), start.elapsed().as_secs_f64());

    let mut guard = Guard::with_rate(Words::open(&path)?, 0.01)?;
    println!("made a filter of {WORDS} words in {:.2} s", guard.stats().renewal_nanos as f64 / 1e9);
    let start = Instant::now();
    let with =
        (0..LOOKUPS).map(|number| guard.get(&ask(number))).filter(|found| matches!(found, Ok(Some(_))));
    println!("with:    {} found in {:.2} s", with.count(), start.elapsed().as_secs_f64());
    let stats = guard.stats();
    println!(
        "asked {}: skipped {}, found {}, wasted {}; about {:.2} s saved",
        stats.asked,
        stats.skipped,
        stats.found,
        stats.wasted,
        stats.seconds_saved()
    );

    plain.insert("a new word", b"by another connection".to_vec())?;
    println!("what another connection wrote is found: {}", guard.get("a new word")?.is_some());
    Ok(())
}
