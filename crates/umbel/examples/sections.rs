//! Compares a Bloomier filter with a hash map: reads lines `key<TAB>value`, and prints the memory
//! of each and how often the filter has a value for a key that it does not contain.
//!
//! On Debian, this maps the path of every file of every package to the package's section:
//!
//! ```sh
//! apt-get install apt-file && apt-file update
//! /usr/lib/apt/apt-helper cat-file /var/lib/apt/lists/*_main_Contents-a*.lz4 |
//!     awk '{ sub(/.*,/, "", $NF); split($NF, of, "/"); sub(/[ \t]+[^ \t]*$/, ""); print $0 "\t" of[1] }' |
//!     sort -u -t "$(printf '\t')" -k 1,1 > sections.tsv
//! cargo run --release --example sections -- sections.tsv
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use umbel::bloomier::CodeBook;
use umbel::spec::Construction;
use umbel::{Bloomier, Spec};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("name a file of lines `key<TAB>value`")?;
    let text = fs::read(&path)?;
    let mut numbers: HashMap<&[u8], u64> = HashMap::new();
    let mut names: Vec<&[u8]> = Vec::new();
    let (mut keys, mut values): (Vec<&[u8]>, Vec<u64>) = (Vec::new(), Vec::new());
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let tab = line.iter().position(|byte| *byte == b'\t').ok_or("a line without a tab")?;
        let number = *numbers.entry(&line[tab + 1..]).or_insert_with(|| {
            names.push(&line[tab + 1..]);
            names.len() as u64 - 1
        });
        keys.push(&line[..tab]);
        values.push(number);
    }

    let spec = Spec::new(keys.len() as u64, 0.01)?;
    let pairs = spec.hasher().digest_batch(&keys[..]).into_iter().zip(values.iter().copied()).collect();
    let map = Bloomier::from_pairs(&spec, pairs, Some(CodeBook::new(&names)?), &Construction::default())?;
    let stats = map.stats();

    let before = resident()?;
    let exact: HashMap<Box<[u8]>, u8> =
        keys.iter().zip(&values).map(|(key, value)| ((*key).into(), *value as u8)).collect();
    let exact_bytes = resident()?.saturating_sub(before);

    let right = map
        .get_batch(&keys[..])
        .iter()
        .zip(&values)
        .filter(|(found, value)| **found == Some(**value))
        .count();
    let strangers: Vec<Vec<u8>> = keys.iter().map(|key| [key, &b"~"[..]].concat()).collect();
    let strangers: Vec<&[u8]> =
        strangers.iter().map(|key| &key[..]).filter(|key| !exact.contains_key(*key)).collect();
    let wrong = map.get_batch(&strangers[..]).iter().flatten().count();

    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!("{} keys, {} values", exact.len(), names.len());
    println!(
        "map       {:7.1} MiB, {:.2} bits per key",
        mib(stats.bytes),
        stats.bytes as f64 * 8.0 / keys.len() as f64
    );
    println!(
        "hash map  {:7.1} MiB, {:.0} times as much",
        mib(exact_bytes),
        exact_bytes as f64 / stats.bytes as f64
    );
    println!("{right} of {} keys have their value", keys.len());
    println!(
        "{wrong} of {} unknown keys have one, {:.3} % where {:.3} % were expected",
        strangers.len(),
        100.0 * wrong as f64 / strangers.len() as f64,
        100.0 * stats.rate_now
    );
    Ok(())
}

/// Returns the resident memory of this process in bytes.
fn resident() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS in /proc")?;
    Ok(1024 * line.trim().trim_end_matches(" kB").parse::<u64>()?)
}
