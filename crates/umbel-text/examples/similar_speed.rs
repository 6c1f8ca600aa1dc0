//! Measures how long it takes to find near-duplicates among many documents in memory: `cargo run
//! --release -p umbel-text --example similar_speed [documents] [words]`.

use std::time::Instant;
use umbel_text::similarity::{By, Collection, Elements};

/// A bijection that is unrelated to the hashes of the library.
fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 27).wrapping_mul(0x3c79_ac49_2ba7_b653);
    let x = (x ^ x >> 33).wrapping_mul(0x1c69_b3f7_4ac4_ae35);
    x ^ x >> 27
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u64>());
    let documents = args.next().transpose()?.unwrap_or(10_000);
    let words = args.next().transpose()?.unwrap_or(500);
    let mut collection = Collection::default();
    let (mut bytes, mut read) = (0, 0.0);
    for number in 0..documents {
        // Every hundredth document is a copy of the one before, with a tenth of its words changed.
        let copy = number % 100 == 99;
        let source = if copy { number - 1 } else { number };
        let length = words / 2 + mix(source) % words;
        let word = |i: u64| {
            let other = copy && i.is_multiple_of(10);
            // A few words are in every document, and most are rare.
            let vocabulary = if i.is_multiple_of(4) { 200 } else { 200_000 };
            mix(mix(source << 20 | i) ^ u64::from(other)) % vocabulary
        };
        let text: String = (0..length).map(|i| format!("{:x} ", word(i))).collect();
        bytes += text.len();
        let start = Instant::now();
        collection.add(&Elements::read(text.as_bytes(), By::Words, false)?)?;
        read += start.elapsed().as_secs_f64();
    }
    println!(
        "{documents} documents, {bytes} bytes, filters of {} bytes, made in {read:.2} s",
        collection.bytes()
    );
    for at_least in [0.8, 0.5, 0.2] {
        let start = Instant::now();
        let nearest = collection.nearest(at_least, 20)?;
        println!(
            "at least {at_least}: {} pairs, {} of {} laid over each other, {:.2} s",
            nearest.count,
            nearest.compared,
            documents * (documents - 1) / 2,
            start.elapsed().as_secs_f64()
        );
    }
    Ok(())
}
