//! Measures the speed of winnowing.
//!
//! `cargo run --release -p umbel-net --example winnowing_speed -- [MiB of data]`
//!
//! Windows have 64 positions, and blocks overlap by 8 bytes. The data is random, or words of a
//! small vocabulary, or a single byte repeated. It is cut whole, as packets of 1460 bytes, or as a
//! stream of such pieces. Each time is the best of five.

use std::env;
use std::error::Error;
use std::time::{Duration, Instant};
use umbel::{Digest, Hasher};
use umbel_net::payload::winnowing::{Cutter, Winnowing};

fn random(count: usize) -> Vec<u8> {
    (0..count.div_ceil(8) as u64)
        .flat_map(|number| Digest::from_hash(number).salted(0x5eed).get().to_le_bytes())
        .collect()
}

fn words(count: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(count + 32);
    for letters in random(count) {
        text.extend_from_slice(format!("{:x} ", u64::from(letters) * 0x9e37_79b9).as_bytes());
        if text.len() >= count {
            break;
        }
    }
    text
}

/// Returns the shortest time of a run, and the number of blocks.
fn best(mut run: impl FnMut(&mut u64)) -> (Duration, u64) {
    let rounds = (0..5).map(|_| {
        let (mut count, start) = (0, Instant::now());
        run(&mut count);
        (start.elapsed(), count)
    });
    rounds.min().unwrap_or_default()
}

fn main() -> Result<(), Box<dyn Error>> {
    let size = env::args().nth(1).map_or(Ok(32), |text| text.parse::<usize>())? << 20;
    println!(
        "{:>8} {:>9} {:>12} {:>12} {:>12} {:>14}",
        "data", "instances", "whole MB/s", "packets", "stream", "blocks a KiB"
    );
    for (name, data) in [("random", random(size)), ("words", words(size)), ("one byte", vec![0; size])] {
        for instances in 1..=3 {
            let mut cutter: Cutter = Winnowing::new(64, instances, 8, Hasher::default())?.cutter();
            let whole = best(|count| cutter.cut(&data, |_| *count += 1));
            let packets = best(|count| {
                data.chunks(1460).for_each(|packet| cutter.cut(packet, |_| *count += 1));
            });
            let stream = best(|count| {
                cutter.end();
                data.chunks(1460).for_each(|piece| cutter.push(piece, |_| *count += 1));
            });
            let speed = |(time, _): (Duration, u64)| data.len() as f64 / time.as_secs_f64() / 1e6;
            println!(
                "{name:>8} {instances:>9} {:>12.0} {:>12.0} {:>12.0} {:>14.2}",
                speed(whole),
                speed(packets),
                speed(stream),
                whole.1 as f64 / (data.len() as f64 / 1024.0)
            );
        }
    }
    Ok(())
}
