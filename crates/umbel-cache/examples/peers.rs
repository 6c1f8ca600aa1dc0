//! Measures the lookup of a key in the summaries of many peers.
//!
//! `cargo run --release -p umbel-cache --example peers [PEERS [DOCUMENTS]]`
//!
//! The views that a cache has of its peers are compared with the simplest such lookup: a vector of
//! words, and four remainders of the key's MD5. The rounds alternate, so that both see the same
//! machine, and the best round of each counts.

use std::time::{Duration, Instant};
use umbel_cache::{CacheKey, Summary, View};

/// A filter that is a vector of words.
struct Plain {
    words: Vec<u64>,
    bits: u32,
}

impl Plain {
    fn positions(&self, key: &CacheKey) -> [u32; 4] {
        let (words, _) = key.bytes().as_chunks::<4>();
        std::array::from_fn(|i| u32::from_be_bytes(words[i]) % self.bits)
    }

    fn contains(&self, key: &CacheKey) -> bool {
        let is_set =
            |bit: u32| self.words.get(bit as usize / 64).is_some_and(|word| word >> (bit % 64) & 1 > 0);
        self.positions(key).into_iter().all(is_set)
    }
}

const BITS_PER_KEY: u32 = 16;
const KEYS: u32 = 10_000;
const ROUNDS: u32 = 300;

fn key(number: u32) -> CacheKey {
    CacheKey::from_url(&format!("http://example.org/{number}"))
}

/// Returns the number of summaries that contain a key, over all keys, and the time that it takes.
fn round<F>(peers: &[F], keys: &[CacheKey], contains: impl Fn(&F, &CacheKey) -> bool) -> (usize, Duration) {
    let start = Instant::now();
    let promises = keys.iter().map(|key| peers.iter().filter(|peer| contains(peer, key)).count());
    (promises.sum(), start.elapsed())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u32>());
    let peers = arguments.next().unwrap_or(Ok(16))?;
    let documents = arguments.next().unwrap_or(Ok(100_000))?;
    let (mut views, mut plains) = (Vec::new(), Vec::new());
    for peer in 0..peers {
        let mut summary = Summary::new(documents.into(), BITS_PER_KEY)?;
        (0..documents).for_each(|number| summary.insert(&key(peer * documents + number)));
        summary.publish()?;
        let mut view = View::default();
        view.apply(&summary.update(None))?;
        let words = view.filter().map(|filter| filter.words().words().to_vec()).unwrap_or_default();
        plains.push(Plain { words, bits: documents * BITS_PER_KEY });
        views.push(view);
    }
    // Half of these keys belong to a peer.
    let stride = (2 * peers * documents / KEYS).max(1);
    let keys: Vec<CacheKey> = (0..KEYS).map(|number| key(number * stride)).collect();
    let (mut best_plain, mut best_views) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let (expected, time) = round(&plains, &keys, Plain::contains);
        best_plain = best_plain.min(time);
        let (promises, time) = round(&views, &keys, View::contains);
        best_views = best_views.min(time);
        assert_eq!(promises, expected, "both find the same documents");
    }
    let each = |time: Duration| time.as_nanos() as f64 / f64::from(KEYS) / f64::from(peers);
    println!("{peers} peers, {documents} documents each");
    println!("vectors of words  {:6.2} ns a lookup", each(best_plain));
    println!("views             {:6.2} ns a lookup", each(best_views));
    println!("ratio             {:6.2}", best_views.as_secs_f64() / best_plain.as_secs_f64());
    Ok(())
}
