//! Measures the speed of recording payloads, on one core and with the packets in memory, next to a
//! plain read of the same bytes. The cases take turns, and each time is the best of five.
//!
//! ```text
//! cargo run --release -p umbel-net --example record_speed [MiB of payload]
//! ```

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};
use umbel::Hasher;
use umbel_net::attribution::{Epoch, Method, Recorder, Settings};
use umbel_net::capture::{Link, Packet, Timestamp};

const PAYLOAD: usize = 1400;
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let mib: usize = std::env::args().nth(1).map_or(Ok(256), |text| text.parse())?;
    let frames: Vec<Vec<u8>> = (0..(mib << 20) / PAYLOAD).map(|i| frame(i as u32)).collect();
    let mut packets = Vec::new();
    for (i, frame) in frames.iter().enumerate() {
        packets.push(Packet::from_frame(Link::RAW, frame, Timestamp::from_nanos(i as u64 * 10_000), 0)?);
    }
    let bytes: usize = packets.iter().map(|packet| packet.payload.len()).sum();
    let speed = |time: Duration| bytes as f64 / 1e6 / time.as_secs_f64();

    println!("{:<28} {:>8} {:>12} {:>8}", "", "MB/s", "of a read", "kept");
    let mut reads = Vec::new();
    let mut recordings = vec![Vec::new(); 2 * Method::ALL.len()];
    let mut kept = vec![0; recordings.len()];
    // The cases take turns, so that a disturbance affects all of them.
    for _ in 0..ROUNDS {
        let start = Instant::now();
        black_box(packets.iter().map(|packet| read(packet.payload)).fold(0, u64::wrapping_add));
        reads.push(start.elapsed());
        for (case, (times, kept)) in recordings.iter_mut().zip(&mut kept).enumerate() {
            let settings = Settings { streams: case % 2 == 1, ..Settings::for_method(Method::ALL[case / 2]) };
            let start = Instant::now();
            let mut recorder = Recorder::new(settings, 1)?;
            let mut epochs: Vec<Epoch> = Vec::new();
            for packet in &packets {
                epochs.extend(recorder.record(packet)?);
            }
            epochs.extend(recorder.finish()?);
            times.push(start.elapsed());
            let sizes: Result<Vec<usize>, _> =
                epochs.iter().map(|epoch| epoch.to_bytes().map(|bytes| bytes.len())).collect();
            *kept = sizes?.iter().sum();
        }
    }
    // Disturbances only make it slower, so the best time counts.
    let best = |times: Vec<Duration>| times.into_iter().min().unwrap_or_default();
    let plain = best(reads);
    println!("{:<28} {:>8.0} {:>12}", "plain read", speed(plain), "");
    for (case, (times, kept)) in recordings.into_iter().zip(kept).enumerate() {
        let streams = if case % 2 == 1 { ", in streams" } else { "" };
        let time = best(times);
        let (share, of_payload) = (plain.as_secs_f64() / time.as_secs_f64(), kept as f64 / bytes as f64);
        let name = format!("{}{streams}", Method::ALL[case / 2]);
        println!("{name:<28} {:>8.0} {share:>12.3} {:>6.2} %", speed(time), 100.0 * of_payload);
    }
    Ok(())
}

/// Returns a segment of one of a thousand streams, with a pseudorandom payload.
fn frame(number: u32) -> Vec<u8> {
    let hasher = Hasher::fast(number.into());
    let [.., high, low] = (40 + PAYLOAD as u32).to_be_bytes();
    let [_, _, net, host] = (number % 1000).to_be_bytes();
    let mut frame = vec![0x45, 0, high, low, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, net, host, 10, 1, 0, 1];
    let seq = (1 + number / 1000 * PAYLOAD as u32).to_be_bytes();
    frame.extend([0, 5, 0, 80, seq[0], seq[1], seq[2], seq[3], 0, 0, 0, 0, 0x50, 0, 1, 1, 0, 0, 0, 0]);
    let words =
        (0..PAYLOAD as u64 / 8).flat_map(|i| hasher.digest_bytes(&i.to_le_bytes()).get().to_le_bytes());
    frame.extend(words);
    frame
}

/// Returns the sum of a payload's words.
fn read(payload: &[u8]) -> u64 {
    payload.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).fold(0, u64::wrapping_add)
}
