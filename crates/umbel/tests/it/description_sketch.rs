//! The second reader of `description.rs` for sketches: recomputes every byte of the golden files of
//! the kinds 18 to 21 from docs/format.md alone.

use crate::second_reader::{File, packed, position, read};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The number of occurrences of each key of [`File::digests`].
const TIMES: [u64; 6] = [1, 2, 3, 5, 8, 13];

/// Returns the bytes of those keys.
fn keys() -> [Vec<u8>; 6] {
    let integer = (-7i64).to_le_bytes();
    [&b"apple"[..], b"pear", b"quince", b"medlar", b"", &integer].map(<[u8]>::to_vec)
}

fn salted(number: u64, salt: u64) -> u64 {
    xxh3_64_with_seed(&number.to_le_bytes(), salt)
}

/// Returns the cell of a digest in each of d rows of w.
fn places(digest: u64, w: u64, d: u64) -> impl Iterator<Item = usize> {
    (0..d).map(move |row| (row * w + position(salted(digest, row), w)) as usize)
}

/// Encodes the section of these items: counts and keys.
fn items(items: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let (mut section, mut end) = (Vec::new(), 0);
    for (count, key) in items {
        end += key.len() as u64;
        section.extend([count.to_le_bytes(), end.to_le_bytes()].concat());
    }
    items.iter().for_each(|(_, key)| section.extend(key));
    section.resize(section.len().next_multiple_of(64).max(64), 0);
    section
}

/// Reads a golden file of a sketch, which is not planned for a number of keys.
fn read_sketch(name: &str, insertions: u64) -> File {
    let file = read(name, insertions);
    assert_eq!((file.capacity, file.rate), (0, 0.0), "{name}");
    file
}

#[test]
fn registers_hold_the_highest_rank() {
    let file = read_sketch("distinct", 6);
    let [p] = file.parameters[..] else { panic!() };
    assert_eq!((file.kind, p, file.seed, file.sections.len()), (18, 5, 3, 1));
    let mut registers = vec![0; 1 << p];
    for digest in file.digests() {
        let register = &mut registers[(digest >> (64 - p)) as usize];
        let others = digest & (u64::MAX >> p);
        let rank = (1..=64 - p).find(|rank| others >> (64 - p - rank) & 1 == 1).unwrap_or(65 - p);
        *register = rank.max(*register);
    }
    assert!(registers.iter().any(|rank| *rank > 1));
    assert_eq!(file.section(0, 11), packed(&registers, 8));
}

#[test]
fn counters_are_the_sums_of_their_keys() {
    let file = read_sketch("count-min", TIMES.iter().sum());
    let [w, d] = file.parameters[..] else { panic!() };
    assert_eq!((file.kind, w, d, file.seed, file.sections.len()), (19, 29, 3, 4, 1));
    let mut counters = vec![0; (w * d) as usize];
    for (digest, times) in file.digests().into_iter().zip(TIMES) {
        places(digest, w, d).for_each(|place| counters[place] += times);
    }
    assert_eq!(file.section(0, 2), packed(&counters, 32));
}

/// A list of the most frequent keys, as the page describes it.
pub struct TopK {
    w: u64,
    d: u64,
    decay: f64,
    pub draws: u64,
    pub cells: Vec<u64>,
    pub items: Vec<(u64, Vec<u8>)>,
    /// Whether a cell was lowered, a cell changed its owner, and a key was evicted.
    seen: [bool; 3],
}

impl TopK {
    pub fn new(k: u64, w: u64, d: u64, decay: f64) -> TopK {
        let (cells, items) = (vec![0; (w * d) as usize], vec![(0, Vec::new()); k as usize]);
        TopK { w, d, decay, draws: 0, cells, items, seen: [false; 3] }
    }

    fn from_file(file: &File) -> TopK {
        let [k, w, d, decay, _] = file.parameters[..] else { panic!() };
        TopK::new(k, w, d, f64::from_bits(decay))
    }

    /// Counts a key and returns the key that it evicted.
    pub fn insert(&mut self, key: &[u8], times: u64) -> Option<Vec<u8>> {
        let digest = xxh3_64_with_seed(key, 0);
        let fingerprint = salted(digest, u64::MAX) >> 32;
        let mut highest = 0;
        for place in places(digest, self.w, self.d) {
            let (mut owner, mut count, mut left) =
                (self.cells[place] >> 32, self.cells[place] & 0xffff_ffff, times);
            while left > 0 {
                if count == 0 || owner == fingerprint {
                    (owner, count, left) = (fingerprint, count + left, 0);
                    continue;
                }
                left -= 1;
                self.draws += 1;
                let likely = self.decay.powf(count as f64);
                if (salted(self.draws, fingerprint) as f64) / 2f64.powi(64) < likely {
                    self.seen[0] = true;
                    count -= 1;
                    if count == 0 {
                        self.seen[1] = true;
                        (owner, count) = (fingerprint, 1);
                    }
                }
                if likely < 1e-12 {
                    left = 0;
                }
            }
            self.cells[place] = owner << 32 | count;
            if owner == fingerprint {
                highest = highest.max(count);
            }
        }
        if let Some(at) = self.items.iter().position(|(count, held)| *count > 0 && held == key) {
            self.items[at].0 = self.items[at].0.max(highest);
            self.sink(at);
            return None;
        }
        if highest == 0 || highest < self.items[0].0 {
            return None;
        }
        let (count, gone) = std::mem::replace(&mut self.items[0], (highest, key.to_vec()));
        self.sink(0);
        self.seen[2] |= count > 0;
        (count > 0).then_some(gone)
    }

    fn sink(&mut self, mut at: usize) {
        loop {
            let (first, second) = (2 * at + 1, 2 * at + 2);
            let count = |at: usize| self.items.get(at).map_or(u64::MAX, |(count, _)| *count);
            let lighter = if count(second) <= count(first) { second } else { first };
            if lighter >= self.items.len() || count(lighter) > count(at) {
                return;
            }
            self.items.swap(at, lighter);
            at = lighter;
        }
    }

    fn check(&self, name: &str, file: &File) {
        assert_eq!((file.kind, file.sections.len(), file.seed), (20, 2, 0), "{name}");
        assert_eq!(file.parameters[4], self.draws, "{name}");
        assert_eq!(file.section(0, 12), packed(&self.cells, 64), "{name}");
        assert_eq!(file.section(1, 13), items(&self.items), "{name}");
    }
}

#[test]
fn cells_have_owners_and_items_are_a_heap() {
    let file = read_sketch("top-k", TIMES.iter().sum());
    let mut top = TopK::from_file(&file);
    keys().iter().zip(TIMES).for_each(|(key, times)| drop(top.insert(key, times)));
    assert_eq!(top.items.iter().filter(|(count, _)| *count == 0).count(), 1, "one place is free");
    top.check("top-k", &file);

    let file = read_sketch("top-k-crowded", 4 * (20 + 60 + TIMES.iter().sum::<u64>()));
    let mut top = TopK::from_file(&file);
    for _ in 0..4 {
        (0..20u64).for_each(|number| drop(top.insert(&number.to_le_bytes(), 1)));
        keys().iter().zip(TIMES).for_each(|(key, times)| drop(top.insert(key, 10 + times)));
    }
    assert_eq!(top.seen, [true; 3], "every case must occur");
    top.check("top-k-crowded", &file);
}

/// Counts frequent keys as the page describes it.
fn frequent(k: usize, stream: impl Iterator<Item = (Vec<u8>, u64)>) -> (Vec<(u64, Vec<u8>)>, u64) {
    let (mut items, mut error) = (Vec::<(u64, Vec<u8>)>::new(), 0);
    for (key, times) in stream {
        match items.iter_mut().find(|(_, held)| *held == key) {
            Some((count, _)) => *count += times,
            None => items.push((times, key)),
        }
        items.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        if items.len() > 2 * k {
            let lower = items[k].0;
            error += lower;
            items.iter_mut().for_each(|(count, _)| *count = count.saturating_sub(lower));
            items.retain(|(count, _)| *count > 0);
        }
    }
    (items, error)
}

#[test]
fn items_of_frequent_keys_are_lowered_together() {
    let file = read_sketch("frequent", TIMES.iter().sum());
    let (expected, error) = frequent(4, keys().into_iter().zip(TIMES));
    assert_eq!((file.kind, file.sections.len()), (21, 1));
    assert_eq!(file.parameters, [4, expected.len() as u64, error]);
    assert_eq!((expected.len(), error), (6, 0));
    assert_eq!(file.section(0, 13), items(&expected));

    let file = read_sketch("frequent-crowded", 4 * (20 + 60 + TIMES.iter().sum::<u64>()));
    let numbers = || (0..20u64).map(|number| (number.to_le_bytes().to_vec(), 1));
    let round = || numbers().chain(keys().into_iter().zip(TIMES.map(|times| 10 + times)));
    let (expected, error) = frequent(6, (0..4).flat_map(|_| round()));
    assert_eq!(file.parameters, [6, expected.len() as u64, error]);
    assert!(error > 0);
    assert_eq!(file.section(0, 13), items(&expected));
}
