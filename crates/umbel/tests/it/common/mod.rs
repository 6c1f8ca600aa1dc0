//! Keys for the tests. They are made from counters by a bijection, so different counters yield
//! different keys, and members and strangers (keys that are not inserted) are disjoint by
//! construction.

pub mod multiset;
pub mod sets;

use umbel::internals::{Layout, TILE};
use umbel::{Blocked, Bloom, Digest, Error, Hasher, Key, Partitioned, Standard};

/// A bijection of the 64-bit numbers (the "moremur" variant of the Murmur finaliser). It is
/// unrelated to the hashes of the library: a filter must not be tested with keys that its own hash
/// has made uniform.
pub fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 27).wrapping_mul(0x3c79_ac49_2ba7_b653);
    let x = (x ^ x >> 33).wrapping_mul(0x1c69_b3f7_4ac4_ae35);
    x ^ x >> 27
}

/// Random-looking keys in two disjoint families per build. Numbers must be below 2^40, builds below
/// 2^23.
#[derive(Clone, Copy)]
pub struct Keys {
    build: u64,
}

impl Keys {
    pub fn of_build(build: u64) -> Keys {
        assert!(build < 1 << 23);
        Keys { build }
    }

    /// Returns a key that is inserted.
    pub fn member(self, number: u64) -> u64 {
        mix(self.build << 41 | 1 << 40 | number)
    }

    /// Returns a key that is not inserted.
    pub fn stranger(self, number: u64) -> u64 {
        mix(self.build << 41 | number)
    }

    pub fn members(self, count: u64) -> Vec<u64> {
        (0..count).map(|number| self.member(number)).collect()
    }

    pub fn strangers(self, count: u64) -> Vec<u64> {
        (0..count).map(|number| self.stranger(number)).collect()
    }
}

/// The number of keys processed at a time: small enough to stay in the cache.
pub const CHUNK: u64 = 1 << 13;

/// Splits `0..count` into ranges of at most [`CHUNK`].
pub fn chunks(count: u64) -> impl Iterator<Item = std::ops::Range<u64>> {
    (0..count).step_by(CHUNK as usize).map(move |start| start..count.min(start + CHUNK))
}

/// Inserts `key(0)`, `key(1)`, ... `key(count - 1)`.
pub fn fill<L: Layout>(filter: &mut Bloom<L>, count: u64, key: impl Fn(u64) -> u64) {
    let mut keys = Vec::with_capacity(CHUNK as usize);
    for range in chunks(count) {
        keys.clear();
        keys.extend(range.map(&key));
        filter.insert_batch(&keys[..]);
    }
}

/// Counts how many of `key(0)`, `key(1)`, ... `key(count - 1)` the filter finds.
pub fn count_found<L: Layout>(filter: &Bloom<L>, count: u64, key: impl Fn(u64) -> u64) -> u64 {
    let mut keys = Vec::with_capacity(CHUNK as usize);
    chunks(count)
        .map(|range| {
            keys.clear();
            keys.extend(range.map(&key));
            filter.contains_batch(&keys[..]).count()
        })
        .sum()
}

/// Returns an empty filter of this layout.
pub fn empty<L: Layout>(layout: L, hasher: Hasher) -> Bloom<L> {
    Bloom::with_layout(layout, hasher).expect("a layout that fits into memory")
}

/// Returns a filter of these keys.
pub fn filter_of<L: Layout>(layout: L, hasher: Hasher, keys: &[u64]) -> Bloom<L> {
    let mut filter = empty(layout, hasher);
    filter.insert_batch(keys);
    filter
}

pub fn standard(bits: u64, hashes: u32) -> Standard {
    Standard::new(bits, hashes).expect("valid parameters")
}

pub fn partitioned(slice_bits: u64, hashes: u32) -> Partitioned {
    Partitioned::new(slice_bits, hashes).expect("valid parameters")
}

pub fn blocked(lines: u64, lines_per_key: u32) -> Blocked {
    Blocked::new(lines, lines_per_key).expect("valid parameters")
}

/// Returns whether two filters have the same bits.
pub fn same_bits<L: Layout>(a: &Bloom<L>, b: &Bloom<L>) -> bool {
    a.words().words() == b.words().words()
}

/// Returns the digests of at most 64 keys.
pub fn tile<K: Key>(keys: &[K], hasher: &Hasher) -> Vec<Digest> {
    assert!(keys.len() <= TILE);
    keys.iter().map(|key| key.digest(hasher)).collect()
}

/// Returns the mean and the standard deviation.
pub fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, variance.sqrt())
}

/// Draws `len` keys from `0..keys`, where key i has a probability proportional to 1 / (i + 1)^s.
pub fn zipf(seed: u64, len: usize, keys: usize, s: f64) -> Vec<u64> {
    let mut sums = Vec::with_capacity(keys);
    let mut sum = 0.0;
    for i in 1..=keys {
        sum += (i as f64).powf(-s);
        sums.push(sum);
    }
    let draw = |i: u64| mix(seed << 40 | i) as f64 / 2f64.powi(64) * sum;
    (0..len as u64).map(|i| sums.partition_point(|sum| *sum <= draw(i)) as u64).collect()
}

/// Returns the name of the setting that an error refuses, or both names of a contradiction: "m and
/// p".
pub fn refused<T>(result: umbel::Result<T>) -> String {
    match result {
        Err(Error::Parameter { name, .. }) => name.to_string(),
        Err(Error::Contradiction { settings, .. }) => {
            settings.map(|setting| setting.split(" = ").next().unwrap_or_default().to_string()).join(" and ")
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("accepted without an error"),
    }
}
