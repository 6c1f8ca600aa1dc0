//! Measures the speed of finding signatures: filters in front of an exact table against the
//! automaton of Aho and Corasick.
//!
//! `cargo run --release -p umbel-net --example scan_speed -- [MiB of data] [signatures...]`
//!
//! Signatures have 8 to 64 bytes. The data is random, or random with a signature in every kilobyte,
//! or consists of starts of signatures only, cut anywhere and concatenated. Both methods search the
//! same data, find the same, and take turns; each time is the best of three. With few signatures
//! the automaton is tried in two forms, and the faster one counts. `plain` is the published method,
//! where every place of the data is tested for every length.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use std::convert::Infallible;
use std::env;
use std::error::Error;
use std::ops::ControlFlow;
use std::time::Instant;
use umbel::Digest;
use umbel_net::signatures::{Scanner, Settings};

/// A fixed stream of random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        Digest::from_hash(self.0).salted(0x5eed).get()
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let words = (0..count.div_ceil(8)).flat_map(|_| self.next().to_le_bytes());
        words.take(count).collect()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = env::args().skip(1).map(|text| text.parse::<usize>());
    let size = numbers.next().transpose()?.unwrap_or(32) << 20;
    let mut counts = numbers.collect::<Result<Vec<_>, _>>()?;
    if counts.is_empty() {
        counts = vec![1_000, 100_000, 1_000_000];
    }
    println!(
        "{:>10} {:>14} {:>12} {:>11} {:>12} {:>8} {:>10} {:>10}",
        "signatures", "data", "filters MB/s", "plain MB/s", "automaton", "ratio", "filters MB", "automaton"
    );
    for count in counts {
        let mut random = Random(count as u64);
        let signatures: Vec<Vec<u8>> = (0..count)
            .map(|_| {
                let length = 8 + random.below(57);
                random.bytes(length)
            })
            .collect();
        let scanner = Scanner::new(&signatures)?;
        let plain = Scanner::with(&signatures, &Settings { gates: false, ..Settings::default() })?;
        let automaton =
            |kind| AhoCorasick::builder().match_kind(MatchKind::Standard).kind(Some(kind)).build(&signatures);
        let mut automata = vec![automaton(AhoCorasickKind::ContiguousNFA)?];
        if count <= 1_000 {
            // With more signatures, a full transition table would take gigabytes.
            automata.push(automaton(AhoCorasickKind::DFA)?);
        }
        let memory = scanner.memory();
        for (name, data) in [
            ("random", random.bytes(size)),
            ("one planted/KB", planted(&mut random, &signatures, size)),
            ("pieces", pieces(&mut random, &signatures, size)),
        ] {
            let (mut filters, mut exact) = (Best::default(), Best::default());
            for _ in 0..3 {
                filters.run(&data, |data| by_filters(&scanner, data));
                for automaton in &automata {
                    exact.run(&data, |data| automaton.find_overlapping_iter(data).count());
                }
            }
            // Testing every byte for every length is slow, so a part of the data is enough.
            let mut slow = Best::default();
            slow.run(&data[..size / 16], |data| by_filters(&plain, data));
            assert_eq!(filters.found, exact.found, "both find the same");
            println!(
                "{count:>10} {name:>14} {:>12.1} {:>11.1} {:>12.1} {:>8.2} {:>10.1} {:>10.1}",
                filters.speed,
                slow.speed,
                exact.speed,
                filters.speed / exact.speed,
                (memory.gates + memory.filters + memory.exact) as f64 / 1e6,
                automata[0].memory_usage() as f64 / 1e6
            );
        }
        let [gates, filters, exact] =
            [memory.gates, memory.filters, memory.exact].map(|bytes| bytes as f64 / 1e6);
        println!("{:>10} gates {gates:.2} MB, filters {filters:.2} MB, exact table {exact:.2} MB", "");
    }
    Ok(())
}

/// Returns random data with a signature in about every kilobyte.
fn planted(random: &mut Random, signatures: &[Vec<u8>], size: usize) -> Vec<u8> {
    let mut data = random.bytes(size);
    for _ in 0..size / 1000 {
        let signature = &signatures[random.below(signatures.len())];
        let start = random.below(size - signature.len());
        data[start..start + signature.len()].copy_from_slice(signature);
    }
    data
}

/// Returns starts of signatures, one after the other.
fn pieces(random: &mut Random, signatures: &[Vec<u8>], size: usize) -> Vec<u8> {
    let mut data = Vec::with_capacity(size + 64);
    while data.len() < size {
        let signature = &signatures[random.below(signatures.len())];
        data.extend_from_slice(&signature[..1 + random.below(signature.len())]);
    }
    data.truncate(size);
    data
}

fn by_filters(scanner: &Scanner, data: &[u8]) -> usize {
    let mut found = 0;
    let _ = scanner.search().whole(data, |_| -> ControlFlow<Infallible> {
        found += 1;
        ControlFlow::Continue(())
    });
    found
}

/// The best speed of several runs in megabytes per second, and the number of findings.
#[derive(Default)]
struct Best {
    speed: f64,
    found: usize,
}

impl Best {
    fn run(&mut self, data: &[u8], search: impl FnOnce(&[u8]) -> usize) {
        let start = Instant::now();
        self.found = search(data);
        self.speed = self.speed.max(data.len() as f64 / start.elapsed().as_secs_f64() / 1e6);
    }
}
