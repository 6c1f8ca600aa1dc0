//! Builds a filter from lines, saves it, maps it, and queries it: the main use of the library from
//! end to end.
//!
//! ```sh
//! cargo run --release --example words                       # a million generated lines
//! cargo run --release --example words -- /usr/share/dict/words   # a real word list
//! ```

use std::time::Instant;
use umbel::file::{self, Options};
use umbel::hash::KeyRing;
use umbel::{AnyFilter, Kind, Spec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = match std::env::args_os().nth(1) {
        Some(path) => std::fs::read(path)?,
        None => (1..=1_000_000).map(|i| format!("word-{i}\n")).collect::<String>().into_bytes(),
    };
    let words: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(|word| !word.is_empty()).collect();

    let spec = Spec::new(words.len().max(1) as u64, 0.01)?;
    let mut filter = AnyFilter::build(Kind::Blocked, &spec)?;
    let start = Instant::now();
    filter.insert_batch(&words)?;
    let per_word = start.elapsed().as_nanos() as f64 / words.len().max(1) as f64;
    let stats = filter.stats();
    println!(
        "{} words in a {} filter of {} bytes, {per_word:.1} ns each",
        words.len(),
        stats.kind,
        stats.bytes
    );
    println!("distinct words, estimated from the bits: {}", stats.estimate);

    let path = std::env::temp_dir().join(format!("words-{}.umbel", std::process::id()));
    file::save(&path, &filter, &Options::default())?;
    let mapped = file::map(&path, &KeyRing::new())?;
    println!("saved and mapped: {} bytes", mapped.file_len());

    // Append a byte that no word contains: these keys are certainly absent, so each "yes" is false.
    let absent: Vec<Vec<u8>> = words.iter().map(|word| [word, &b"\x01"[..]].concat()).collect();
    let missed = words.len() as u64 - mapped.contains_batch(&words)?.count();
    let wrong = mapped.contains_batch(&absent)?.count();
    println!("words not found: {missed}");
    println!(
        "absent words found: {wrong}, {:.3} % (asked for 1 %)",
        100.0 * wrong as f64 / absent.len().max(1) as f64
    );
    std::fs::remove_file(&path)?;
    Ok(())
}
