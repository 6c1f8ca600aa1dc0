//! The keys that every contestant is tested with.
//!
//! A key is computed from a number, its id, by a bijection: distinct ids yield distinct keys.
//! Members and absent keys (ids with different tags) are therefore disjoint by construction, and no
//! list of members is needed to tell them apart. The bijection is a mixer that no filter here uses
//! as its hash.
//!
//! Queries are copied into the order in which they are made. A timed loop therefore reads its keys
//! sequentially, and only the accesses to the filter are random.

use std::hash::Hash;
use std::ops::Range;

/// The largest number of queries in a timed section: enough to exceed every cache, and few enough
/// for n = 1e8.
pub const QUERIES_MAX: u64 = 10_000_000;
/// The smallest number of queries, so that the branch predictor cannot learn the sequence for a
/// small filter.
pub const QUERIES_MIN: u64 = 1_000_000;

/// The purpose of an id; ids with different tags never share a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    Member = 0,
    /// Absent keys for the timed sections.
    Absent = 1,
    /// Absent keys for measuring the false positive rate.
    Rate = 2,
}

/// Returns the id of key `index` of `tag`.
pub fn id(tag: Tag, index: u64) -> u64 {
    debug_assert!(index < 1 << 56);
    ((tag as u64) << 56) | index
}

/// The finaliser of `splitmix64`: a bijection on 64 bits.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Returns a random-looking word, different for every id.
fn word(id: u64, seed: u64) -> u64 {
    mix(id.wrapping_add(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// A type of key, and how a run of such keys is stored and passed on.
pub trait Key: Hash + Send + Sync + 'static {
    /// Owned keys, in the order in which they were pushed.
    type Store: Store<Self>;
    /// A borrowed run of keys, as a contestant receives it.
    type List<'a>: List<'a, Self>;
    /// Passes on the bytes of the key, for filters that take bytes.
    fn with_bytes<T>(&self, use_bytes: impl FnOnce(&[u8]) -> T) -> T;
    /// Returns the XXH3-64 of the key's bytes, for filters that take a hash.
    #[inline]
    fn xxh3(&self) -> u64 {
        self.with_bytes(xxhash_rust::xxh3::xxh3_64)
    }
}

pub trait Store<K: Key + ?Sized>: Sync {
    fn with_capacity(count: u64) -> Self;
    fn push(&mut self, id: u64, seed: u64);
    fn clear(&mut self);
    fn list(&self) -> K::List<'_>;
}

pub trait List<'a, K: ?Sized + 'a>: Copy + Send + Sync {
    fn len(self) -> usize;
    fn slice(self, range: Range<usize>) -> Self;
    fn iter(self) -> impl Iterator<Item = &'a K> + Clone;
}

impl Key for u64 {
    type Store = Vec<u64>;
    type List<'a> = &'a [u64];

    #[inline]
    fn with_bytes<T>(&self, use_bytes: impl FnOnce(&[u8]) -> T) -> T {
        use_bytes(&self.to_le_bytes())
    }
}

impl Store<u64> for Vec<u64> {
    fn with_capacity(count: u64) -> Self {
        Vec::with_capacity(count as usize)
    }

    fn push(&mut self, id: u64, seed: u64) {
        self.push(word(id, seed));
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn list(&self) -> &[u64] {
        self
    }
}

impl<'a> List<'a, u64> for &'a [u64] {
    fn len(self) -> usize {
        self.len()
    }

    fn slice(self, range: Range<usize>) -> Self {
        &self[range]
    }

    #[inline]
    fn iter(self) -> impl Iterator<Item = &'a u64> + Clone {
        <[u64]>::iter(self)
    }
}

/// The length of a string key: 16 to 24 bytes, equally distributed, 20 on average.
const LENGTHS: Range<usize> = 16..25;

impl Key for [u8] {
    type Store = Arena;
    type List<'a> = Strings<'a>;

    #[inline]
    fn with_bytes<T>(&self, use_bytes: impl FnOnce(&[u8]) -> T) -> T {
        use_bytes(self)
    }
}

/// Strings stored one after the other in one allocation.
pub struct Arena {
    bytes: Vec<u8>,
    /// String i is `bytes[offsets[i]..offsets[i + 1]]`.
    offsets: Vec<u64>,
}

impl Store<[u8]> for Arena {
    fn with_capacity(count: u64) -> Self {
        // Reserve the longest length for every string: unused memory is never touched, so it costs
        // nothing.
        let mut offsets = Vec::with_capacity(count as usize + 1);
        offsets.push(0);
        Arena { bytes: Vec::with_capacity(count as usize * (LENGTHS.end - 1)), offsets }
    }

    /// Appends sixteen hexadecimal digits of the id's word, which alone make the string unique, and
    /// up to eight letters.
    fn push(&mut self, id: u64, seed: u64) {
        let word = word(id, seed);
        let more = mix(word);
        let mut string = [0; LENGTHS.end - 1];
        for (i, byte) in string.iter_mut().enumerate() {
            *byte = match i {
                0..16 => b"0123456789abcdef"[(word >> (4 * i)) as usize & 15],
                _ => b'a' + (more >> (4 * (i - 16))) as u8 % 16,
            };
        }
        let length = LENGTHS.start + ((more >> 32) % LENGTHS.len() as u64) as usize;
        self.bytes.extend_from_slice(&string[..length]);
        self.offsets.push(self.bytes.len() as u64);
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.offsets.truncate(1);
    }

    fn list(&self) -> Strings<'_> {
        Strings { bytes: &self.bytes, offsets: &self.offsets }
    }
}

/// A run of strings in an arena.
#[derive(Clone, Copy)]
pub struct Strings<'a> {
    pub bytes: &'a [u8],
    /// One more offset than there are strings.
    pub offsets: &'a [u64],
}

impl<'a> List<'a, [u8]> for Strings<'a> {
    fn len(self) -> usize {
        self.offsets.len() - 1
    }

    fn slice(self, range: Range<usize>) -> Self {
        Strings { bytes: self.bytes, offsets: &self.offsets[range.start..=range.end] }
    }

    #[inline]
    fn iter(self) -> impl Iterator<Item = &'a [u8]> + Clone {
        self.offsets.windows(2).map(move |w| &self.bytes[w[0] as usize..w[1] as usize])
    }
}

/// A pseudo-random permutation of 0..n that takes no memory: a bijection on the next power of two,
/// applied repeatedly until the result is below n.
pub struct Permutation {
    n: u64,
    bits: u32,
    seed: u64,
}

impl Permutation {
    pub fn new(n: u64, seed: u64) -> Self {
        Permutation { n, bits: n.next_power_of_two().trailing_zeros(), seed: mix(seed ^ 0x5eed) }
    }

    /// Returns the image of `i`.
    pub fn at(&self, i: u64) -> u64 {
        debug_assert!(i < self.n);
        let mask = (1u64 << self.bits) - 1;
        let half = (self.bits / 2).max(1);
        let mut x = i;
        loop {
            for round in 0..4 {
                let r = mix(self.seed.wrapping_add(round));
                x = x.wrapping_mul(r | 1).wrapping_add(r >> 32) & mask;
                x ^= x >> half;
            }
            if x < self.n {
                return x;
            }
        }
    }
}

/// All keys of one run: the members in insertion order, and the queries in theirs.
pub struct Workload<K: Key + ?Sized> {
    pub members: K::Store,
    pub hits: K::Store,
    pub misses: K::Store,
    /// Half of the hits and half of the misses, in random order.
    pub mixed: K::Store,
}

impl<K: Key + ?Sized> Workload<K> {
    pub fn new(n: u64, seed: u64) -> Self {
        let queries = n.clamp(QUERIES_MIN, QUERIES_MAX);
        // Members in a different order than they were inserted; if there are fewer members than
        // queries, again in another order.
        let hit = |i: u64| id(Tag::Member, Permutation::new(n, seed ^ (1 + i / n)).at(i % n));
        let miss = |i: u64| id(Tag::Absent, i);
        let shuffle = Permutation::new(queries, !seed);
        Workload {
            members: fill::<K>(n, seed, |i| id(Tag::Member, i)),
            hits: fill::<K>(queries, seed, hit),
            misses: fill::<K>(queries, seed, miss),
            mixed: fill::<K>(queries, seed, |i| match shuffle.at(i) {
                i if i % 2 == 0 => hit(i / 2),
                i => miss(i / 2),
            }),
        }
    }
}

fn fill<K: Key + ?Sized>(count: u64, seed: u64, id: impl Fn(u64) -> u64) -> K::Store {
    let mut store = K::Store::with_capacity(count);
    for i in 0..count {
        store.push(id(i), seed);
    }
    store
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_permutation_visits_every_place_once() {
        for n in [1, 2, 3, 7, 64, 1000, 4097] {
            let order = Permutation::new(n, 5);
            let places: HashSet<u64> = (0..n).map(|i| order.at(i)).collect();
            assert_eq!(places.len() as u64, n);
            assert!(places.iter().all(|&place| place < n));
        }
    }

    #[test]
    fn a_permutation_is_not_the_identity() {
        let order = Permutation::new(10_000, 1);
        assert!((0..10_000).filter(|&i| order.at(i) == i).count() < 20);
    }

    fn disjoint<K: Key + ?Sized>(own: impl Fn(&K) -> Vec<u8>) {
        let work = Workload::<K>::new(5_000, 3);
        let set = |store: &K::Store| store.list().iter().map(&own).collect::<HashSet<_>>();
        let (members, hits, misses) = (set(&work.members), set(&work.hits), set(&work.misses));
        assert_eq!(members.len(), 5_000);
        assert_eq!(misses.len() as u64, QUERIES_MIN);
        assert_eq!(members, hits);
        assert!(members.is_disjoint(&misses));
        let found = work.mixed.list().iter().filter(|key| members.contains(&own(key))).count();
        assert_eq!(found as u64, QUERIES_MIN / 2);
    }

    #[test]
    fn members_and_absent_keys_are_disjoint() {
        disjoint::<u64>(|key| key.to_le_bytes().to_vec());
        disjoint::<[u8]>(|key| key.to_vec());
    }

    #[test]
    fn strings_are_twenty_bytes_on_average() {
        let store = fill::<[u8]>(90_000, 0, |i| id(Tag::Member, i));
        let lengths: Vec<usize> = store.list().iter().map(<[u8]>::len).collect();
        assert!(lengths.iter().all(|length| LENGTHS.contains(length)));
        let mean = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
        assert!((mean - 20.0).abs() < 0.05, "{mean}");
    }

    #[test]
    fn a_slice_of_strings_is_the_same_strings() {
        let store = fill::<[u8]>(10, 0, |i| id(Tag::Member, i));
        let all: Vec<&[u8]> = store.list().iter().collect();
        assert_eq!(store.list().slice(3..7).iter().collect::<Vec<_>>(), all[3..7]);
        assert_eq!(store.list().slice(10..10).len(), 0);
    }
}
