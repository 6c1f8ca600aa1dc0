//! Every inserted key is found: after any sequence of operations, in every layout, with every hash,
//! every form of key, every instruction set and any number of threads.
//!
//! Random histories are compared with an exact set of key bytes. They come from fixed seeds, so
//! every run is the same.

use crate::common::{Keys, blocked, empty, filter_of, mix, partitioned, same_bits, standard, tile};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseResult};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use umbel::internals::{Layout, Level, Structure, TILE};
use umbel::{Arena, Batch, Blocked, Bloom, Concurrent, Digest, Hasher, Key, Partitioned, Standard};

/// Keys in one of the forms that callers may use.
#[derive(Clone, Debug)]
enum Group {
    U64(Vec<u64>),
    I32(Vec<i32>),
    Strings(Vec<String>),
    Bytes(Vec<Vec<u8>>),
    Arena { bytes: Vec<u8>, offsets: Vec<u32> },
}

/// Calls a generic expression with the keys as a batch.
macro_rules! with_batch {
    ($group:expr, $keys:ident => $body:expr) => {
        match $group {
            Group::U64(keys) => {
                let $keys = &keys[..];
                $body
            }
            Group::I32(keys) => {
                let $keys = &keys[..];
                $body
            }
            Group::Strings(keys) => {
                let $keys = &keys[..];
                $body
            }
            Group::Bytes(keys) => {
                let $keys = &keys[..];
                $body
            }
            Group::Arena { bytes, offsets } => {
                let $keys = &Arena::new(bytes, offsets).expect("rising offsets");
                $body
            }
        }
    };
}

impl Group {
    /// Returns the documented bytes of each key, computed here independently.
    fn key_bytes(&self) -> Vec<Vec<u8>> {
        match self {
            Group::U64(keys) => keys.iter().map(|key| key.to_le_bytes().to_vec()).collect(),
            Group::I32(keys) => keys.iter().map(|key| i64::from(*key).to_le_bytes().to_vec()).collect(),
            Group::Strings(keys) => keys.iter().map(|key| key.as_bytes().to_vec()).collect(),
            Group::Bytes(keys) => keys.clone(),
            Group::Arena { bytes, offsets } => {
                offsets.windows(2).map(|ends| bytes[ends[0] as usize..ends[1] as usize].to_vec()).collect()
            }
        }
    }

    fn digests(&self, hasher: &Hasher) -> Vec<Digest> {
        with_batch!(self, keys => {
            let mut digests = vec![Digest::default(); keys.len()];
            keys.digest_tile(0..keys.len(), hasher, &mut digests);
            digests
        })
    }

    fn arena(parts: Vec<Vec<u8>>) -> Group {
        let mut offsets = vec![0];
        for part in &parts {
            offsets.push(offsets[offsets.len() - 1] + part.len() as u32);
        }
        Group::Arena { bytes: parts.concat(), offsets }
    }
}

/// Draws keys from small ranges as well as large ones, so that they repeat within and across
/// groups. The number of keys is often around the size of a tile.
fn group() -> impl Strategy<Value = Group> {
    let len =
        prop_oneof![0..20usize, Just(63), Just(64), Just(65), Just(127), Just(128), Just(129), 0..300usize];
    let int = prop_oneof![0..200u64, any::<u64>()];
    let bytes = prop::collection::vec(any::<u8>(), 0..40);
    len.prop_flat_map(move |len| {
        prop_oneof![
            prop::collection::vec(int.clone(), len).prop_map(Group::U64),
            prop::collection::vec(prop_oneof![-100..100i32, any::<i32>()], len).prop_map(Group::I32),
            prop::collection::vec("[a-c]{0,3}|\\PC{0,24}", len).prop_map(Group::Strings),
            prop::collection::vec(bytes.clone(), len).prop_map(Group::Bytes),
            prop::collection::vec(bytes.clone(), len).prop_map(Group::arena),
        ]
    })
}

/// An operation on a filter.
#[derive(Clone, Debug)]
enum Operation {
    /// Inserts key by key with the methods that take keys.
    Insert(Group),
    /// Inserts tile by tile and checks which keys are reported as new.
    InsertTilesNew(Group),
    /// Inserts all digests in one call.
    InsertDigests(Group),
    InsertBatch(Group),
    Union(Group),
    /// Intersects with a filter of some keys and of every n-th key of this filter.
    Intersect(Group, usize),
    Clone,
    Fold,
    Clear,
    /// Inserts through the wrapper that threads share, and converts it back.
    Share(Group),
    /// Switches to another instruction set.
    Level(usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        3 => group().prop_map(Operation::Insert),
        3 => group().prop_map(Operation::InsertTilesNew),
        3 => group().prop_map(Operation::InsertDigests),
        3 => group().prop_map(Operation::InsertBatch),
        2 => group().prop_map(Operation::Union),
        2 => (group(), 1..4usize).prop_map(|(group, step)| Operation::Intersect(group, step)),
        1 => Just(Operation::Clone),
        1 => Just(Operation::Fold),
        1 => Just(Operation::Clear),
        2 => group().prop_map(Operation::Share),
        2 => (0..8usize).prop_map(Operation::Level),
    ]
}

fn hasher() -> impl Strategy<Value = Hasher> {
    prop_oneof![
        Just(Hasher::default()),
        any::<u64>().prop_map(Hasher::fast),
        any::<[u8; 16]>().prop_map(Hasher::keyed),
        any::<[u8; 32]>().prop_map(Hasher::sealed),
    ]
}

/// A filter and the keys that must be found in it.
struct Checked<L: Layout> {
    filter: Bloom<L>,
    members: BTreeSet<Vec<u8>>,
}

impl<L: Layout> Checked<L> {
    fn new(layout: L, hasher: Hasher) -> Checked<L> {
        Checked { filter: empty(layout, hasher), members: BTreeSet::new() }
    }

    /// Returns a filter of the same shape with other keys.
    fn other(&self, members: impl IntoIterator<Item = Vec<u8>>) -> Checked<L> {
        let mut other = Checked::new(*self.filter.layout(), self.filter.hasher().clone());
        for key in members {
            other.filter.insert(&key);
            other.members.insert(key);
        }
        other
    }

    /// Compares the answer of an insertion with that of a lookup just before it, and with the exact
    /// set.
    fn note(&mut self, key: Vec<u8>, found_before: bool, new: bool) -> TestCaseResult {
        prop_assert_eq!(new, !found_before, "insertion and lookup disagree");
        prop_assert!(
            !(new && self.members.contains(&key)),
            "reported as new, but inserted before: {:?}",
            key
        );
        self.members.insert(key);
        Ok(())
    }

    fn apply(&mut self, operation: &Operation) -> TestCaseResult {
        match operation {
            Operation::Insert(group) => {
                let (bytes, digests) = (group.key_bytes(), group.digests(self.filter.hasher()));
                for (i, key) in bytes.into_iter().enumerate() {
                    let before = self.filter.contains_digest(digests[i]);
                    let filter = &mut self.filter;
                    let new = match group {
                        Group::U64(keys) => filter.insert(&keys[i]),
                        Group::I32(keys) => filter.insert(&keys[i]),
                        Group::Strings(keys) => filter.insert(keys[i].as_str()),
                        Group::Bytes(keys) => filter.insert(&keys[i][..]),
                        Group::Arena { .. } => filter.insert_digest(digests[i]),
                    };
                    self.note(key, before, new)?;
                }
            }
            Operation::InsertTilesNew(group) => {
                let (bytes, digests) = (group.key_bytes(), group.digests(self.filter.hasher()));
                for (keys, tile) in bytes.chunks(TILE).zip(digests.chunks(TILE)) {
                    let mut one_by_one = self.filter.try_clone().expect("enough memory");
                    let new = self.filter.insert_tile_new(tile);
                    for (i, (key, digest)) in keys.iter().zip(tile).enumerate() {
                        let before = one_by_one.contains_digest(*digest);
                        let reported = one_by_one.insert_digest(*digest);
                        prop_assert_eq!(new >> i & 1 == 1, reported, "bit {} of {}", i, tile.len());
                        self.note(key.clone(), before, reported)?;
                    }
                    prop_assert_eq!(
                        new.checked_shr(tile.len() as u32).unwrap_or(0),
                        0,
                        "bits beyond the tile"
                    );
                    prop_assert!(same_bits(&self.filter, &one_by_one));
                    prop_assert_eq!(self.filter.inserted(), one_by_one.inserted());
                }
            }
            Operation::InsertDigests(group) => {
                let digests = group.digests(self.filter.hasher());
                self.filter.insert_tile(&digests);
                self.members.extend(group.key_bytes());
            }
            Operation::InsertBatch(group) => {
                let count = self.filter.inserted();
                with_batch!(group, keys => self.filter.insert_batch(keys));
                let keys = group.key_bytes();
                prop_assert_eq!(self.filter.inserted(), count.map(|count| count + keys.len() as u64));
                self.members.extend(keys);
            }
            Operation::Union(group) => {
                let other = self.other(group.key_bytes());
                self.filter.union(&other.filter).expect("the same shape");
                self.members.extend(other.members);
            }
            Operation::Intersect(group, step) => {
                let other = self
                    .other(group.key_bytes().into_iter().chain(self.members.iter().step_by(*step).cloned()));
                self.filter.intersect(&other.filter).expect("the same shape");
                self.members.retain(|key| other.members.contains(key));
            }
            Operation::Clone => self.filter = self.filter.try_clone().expect("enough memory"),
            Operation::Fold => {
                let even = self.filter.layout().folded().is_ok();
                match self.filter.fold() {
                    Ok(folded) => self.filter = folded,
                    Err(error) => prop_assert!(!even, "{error}"),
                }
            }
            Operation::Clear => {
                self.filter.clear();
                self.members.clear();
                prop_assert!(self.filter.words().words().iter().all(|word| *word == 0));
            }
            Operation::Share(group) => self.share(group)?,
            Operation::Level(index) => {
                let levels = Level::available();
                self.filter.set_level(levels[index % levels.len()]);
            }
        }
        Ok(())
    }

    /// Inserts half of the keys one by one and half as a batch, and looks them up through the
    /// wrapper as well.
    fn share(&mut self, group: &Group) -> TestCaseResult {
        let count = self.filter.inserted();
        let shared = Concurrent::new(self.filter.try_clone().expect("enough memory"));
        let (bytes, digests) = (group.key_bytes(), group.digests(shared.hasher()));
        for (key, digest) in bytes.iter().zip(&digests).step_by(2) {
            let before = shared.contains_digest(*digest);
            let new = shared.insert_digest(*digest);
            self.note(key.clone(), before, new)?;
            prop_assert!(shared.contains(key));
        }
        let rest: Vec<&Vec<u8>> = bytes.iter().skip(1).step_by(2).collect();
        shared.insert_batch(&rest[..]);
        let answers = with_batch!(group, keys => shared.contains_batch(keys));
        prop_assert_eq!((answers.len(), answers.count()), (bytes.len(), bytes.len() as u64));
        self.members.extend(bytes.iter().cloned());
        self.filter.insert_tile(&digests);
        let shared = shared.into_filter();
        prop_assert!(same_bits(&shared, &self.filter), "the wrapper set different bits");
        prop_assert_eq!(shared.inserted(), count.map(|count| count + bytes.len() as u64));
        self.filter = shared;
        Ok(())
    }

    /// Checks that every lookup method finds every member, and that all methods agree on other
    /// keys.
    fn check(&mut self, others: &Group) -> TestCaseResult {
        let members: Vec<&[u8]> = self.members.iter().map(|key| &key[..]).collect();
        let used = self.filter.words().words();
        let mut expected_words = None;
        for level in Level::available() {
            let mut filter = self.filter.try_clone().expect("enough memory");
            filter.set_level(level);
            prop_assert!(members.iter().all(|key| filter.contains(*key)), "{level}: a key is missing");
            let answers = filter.contains_batch(&members[..]);
            prop_assert_eq!(answers.len(), members.len());
            prop_assert_eq!(answers.count(), members.len() as u64, "{}: a key of a batch is missing", level);
            // All lookup methods, with keys that include some members.
            let digests = others.digests(filter.hasher());
            let answers = with_batch!(others, keys => filter.contains_batch(keys));
            let one_by_one: Vec<bool> =
                digests.iter().map(|digest| filter.contains_digest(*digest)).collect();
            prop_assert!(answers.iter().eq(one_by_one.iter().copied()), "{level}: batch and one by one");
            let by_key: Vec<bool> = others.key_bytes().iter().map(|key| filter.contains(key)).collect();
            prop_assert_eq!(&one_by_one, &by_key, "{}: digest and key", level);
            for (number, tile) in digests.chunks(TILE).enumerate() {
                prop_assert_eq!(filter.contains_tile(tile), answers.as_words()[number], "{}: tile", level);
            }
            // Every instruction set must have the same answers.
            let words = expected_words.get_or_insert_with(|| answers.as_words().to_vec());
            prop_assert_eq!(&words[..], answers.as_words(), "{}", level);
        }
        // No bit beyond the last of the layout may be set.
        let bits = self.filter.layout().bits();
        let beyond = used.iter().enumerate().any(|(i, word)| {
            let in_use = bits.saturating_sub(64 * i as u64).min(64);
            in_use < 64 && word >> in_use != 0
        });
        prop_assert!(!beyond, "a bit beyond the last is set");
        Ok(())
    }
}

fn run_history<L: Layout>(layout: L, hasher: Hasher, history: &[Operation], asked: &Group) -> TestCaseResult {
    let mut checked = Checked::new(layout, hasher);
    for operation in history {
        checked.apply(operation)?;
        checked.check(asked)?;
    }
    Ok(())
}

fn config(cases: u32, seed: u64) -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(seed);
    ProptestConfig { cases, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

/// Draws sizes from a single bit to more than all keys need, often ones that can be folded.
fn size() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(1),
        1..10u64,
        1..600u64,
        600..40_000u64,
        (0..12u32, 1..40u64).prop_map(|(e, odd)| odd << e)
    ]
}

fn hashes() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 1..16u32, 1 => 16..80u32]
}

proptest! {
    #![proptest_config(config(150, 1))]

    #[test]
    fn standard_filters_find_every_inserted_key(
        bits in size(), hashes in hashes(), hasher in hasher(),
        history in prop::collection::vec(operation(), 1..10), asked in group(),
    ) {
        run_history(standard(bits, hashes), hasher, &history, &asked)?;
    }

    #[test]
    fn partitioned_filters_find_every_inserted_key(
        slice_bits in size(), hashes in hashes(), hasher in hasher(),
        history in prop::collection::vec(operation(), 1..10), asked in group(),
    ) {
        run_history(partitioned(slice_bits, hashes), hasher, &history, &asked)?;
    }

    #[test]
    fn blocked_filters_find_every_inserted_key(
        lines in prop_oneof![1..10u64, 1..200u64, Just(64)], lines_per_key in 1..=4u32, hasher in hasher(),
        history in prop::collection::vec(operation(), 1..10), asked in group(),
    ) {
        run_history(blocked(lines, lines_per_key), hasher, &history, &asked)?;
    }
}

/// Calls a generic function with small and medium layouts of every kind.
macro_rules! for_every_layout {
    ($check:ident) => {
        $check(standard(1, 1));
        $check(standard(1, 9));
        $check(standard(101, 3));
        $check(standard(100_003, 7));
        $check(standard(40_000_003, 5));
        $check(partitioned(1, 3));
        $check(partitioned(67, 4));
        $check(partitioned(12_345, 7));
        $check(blocked(1, 1));
        $check(blocked(1, 4));
        $check(blocked(200, 1));
        $check(blocked(201, 2));
        $check(blocked(300, 3));
        $check(blocked(400, 4));
    };
}

#[test]
fn batches_of_every_length_answer_in_the_order_of_their_keys() {
    fn check<L: Layout>(layout: L) {
        let keys = Keys::of_build(0);
        let strengths = [Hasher::default(), Hasher::keyed([1; 16]), Hasher::sealed([2; 32])];
        for (hasher, len) in strengths.iter().flat_map(|hasher| {
            [0, 1, 2, 31, 62, 63, 64, 65, 66, 127, 128, 129, 191, 192, 193, 1000].map(|len| (hasher, len))
        }) {
            // Members at irregular positions among strangers.
            let batch: Vec<u64> = (0..len)
                .map(|i| if mix(i).is_multiple_of(3) { keys.member(i) } else { keys.stranger(i) })
                .collect();
            let members: Vec<u64> =
                (0..len).filter(|i| mix(*i).is_multiple_of(3)).map(|i| keys.member(i)).collect();
            for level in Level::available() {
                let mut filter = empty(layout, hasher.clone());
                filter.set_level(level);
                filter.insert_batch(&members[..]);
                let answers = filter.contains_batch(&batch[..]);
                assert_eq!((answers.len(), answers.is_empty()), (len as usize, len == 0));
                assert_eq!(answers.get(len as usize), None);
                let singly: Vec<bool> = batch.iter().map(|key| filter.contains(key)).collect();
                assert!(answers.iter().eq(singly.iter().copied()), "{layout:?}, {level}, {len} keys");
                for (i, key) in batch.iter().enumerate() {
                    assert_eq!(answers.get(i), Some(singly[i]));
                    assert!(singly[i] || !members.contains(key), "{layout:?}, {level}: key {i} of {len}");
                }
                assert_eq!(answers.count(), singly.iter().filter(|found| **found).count() as u64);

                // One batch, single keys, and one call with all digests must set the same bits.
                let mut one_by_one = empty(layout, hasher.clone());
                let mut by_digests = empty(layout, hasher.clone());
                one_by_one.set_level(level);
                by_digests.set_level(level);
                let digests: Vec<Digest> = members.iter().map(|key| key.digest(hasher)).collect();
                for key in &members {
                    one_by_one.insert(key);
                }
                by_digests.insert_tile(&digests);
                assert!(
                    same_bits(&filter, &one_by_one) && same_bits(&filter, &by_digests),
                    "{layout:?}, {level}"
                );
                assert_eq!(filter.inserted(), Some(members.len() as u64));
            }
        }
    }
    for_every_layout!(check);
}

#[test]
fn a_tile_has_answers_for_64_digests_and_inserts_all() {
    fn check<L: Layout>(layout: L) {
        let digests: Vec<Digest> =
            Keys::of_build(1).members(100).iter().map(|key| key.digest(&Hasher::default())).collect();
        let mut filter = empty(layout, Hasher::default());
        let new = filter.insert_tile_new(&digests);
        assert_eq!(new & 1, 1, "the first is new");
        assert_eq!(filter.inserted(), Some(100));
        assert!(digests.iter().all(|digest| filter.contains_digest(*digest)), "{layout:?}");
        assert_eq!(filter.contains_tile(&digests), !0, "{layout:?}");
        assert_eq!((filter.contains_tile(&[]), filter.insert_tile_new(&[])), (0, 0));
        assert_eq!(filter.contains_tile(&digests[..1]), 1);
    }
    for_every_layout!(check);
}

#[test]
fn the_first_key_is_new_and_a_repeated_one_is_not() {
    fn check<L: Layout>(layout: L) {
        for hasher in [Hasher::fast(3), Hasher::keyed([1; 16]), Hasher::sealed([2; 32])] {
            for key in Keys::of_build(2).members(50) {
                let mut filter = empty(layout, hasher.clone());
                assert!(filter.insert(&key), "{layout:?}: into an empty filter");
                assert!(!filter.insert(&key), "{layout:?}: inserted again");
                let shared = Concurrent::new(empty(layout, hasher.clone()));
                assert!(shared.insert(&key) && !shared.insert(&key), "{layout:?}: shared");
                // Several times in one tile.
                let mut filter = empty(layout, hasher.clone());
                let new = filter.insert_tile_new(&tile(&[key, key, key], &hasher));
                assert_eq!(new, 1, "{layout:?}: three times in one tile");
            }
        }
    }
    for_every_layout!(check);
}

#[test]
fn digests_at_the_limits_of_their_range_are_found() {
    fn check<L: Layout>(layout: L) {
        for digest in [0, 1, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1, 1 << 32, 0xffff_ffff]
            .map(Digest::from_hash)
        {
            for level in Level::available() {
                let mut filter = empty(layout, Hasher::default());
                filter.set_level(level);
                assert!(!filter.contains_digest(digest), "{layout:?}: an empty filter contains nothing");
                // A partial tile is padded internally with zero digests, which are not members.
                assert_eq!(filter.contains_tile(&[digest]), 0);
                filter.insert_tile(&[digest]);
                assert!(filter.contains_digest(digest), "{layout:?}, {level}");
                assert_eq!(filter.contains_tile(&[digest]), 1, "{layout:?}, {level}");
                let hashes = u64::from(layout.hashes());
                assert!(
                    (1..=hashes).contains(&filter.words().count_ones()),
                    "{layout:?}, {level}: padding must not be inserted"
                );
            }
        }
    }
    for_every_layout!(check);
}

/// Checks that threads with overlapping keys, inserting single keys and batches, set the same bits
/// as one thread.
fn fill_by_threads<L: Layout>(layout: L, keys: u64, rounds: u64) {
    for (round, threads) in (0..rounds).flat_map(|round| [1, 2, 4].map(|threads| (round, threads))) {
        let all = Keys::of_build(round).members(keys);
        let hasher = Hasher::fast(round);
        let shared = Concurrent::new(empty(layout, hasher.clone()));
        let mut inserted = 0;
        std::thread::scope(|scope| {
            for thread in 0..threads {
                // Each thread has two thirds of all keys, from a different start, and every key
                // belongs to some thread.
                let start = all.len() * thread / threads;
                let mut mine = all[start..].to_vec();
                mine.extend_from_slice(&all[..start]);
                mine.truncate(if threads == 1 { all.len() } else { all.len() * 2 / 3 });
                inserted += mine.len() as u64;
                let shared = &shared;
                scope.spawn(move || {
                    for (i, part) in mine.chunks(97).enumerate() {
                        if (i + thread) % 2 == 0 {
                            shared.insert_batch(part);
                        } else {
                            part.iter().for_each(|key| _ = shared.insert(key));
                        }
                        assert_eq!(
                            shared.contains_batch(part).count(),
                            part.len() as u64,
                            "{layout:?}: own keys"
                        );
                    }
                });
            }
        });
        assert!(
            all.iter().all(|key| shared.contains(key) && !shared.insert(key)),
            "{layout:?}, {threads} threads"
        );
        let filter = shared.into_filter();
        assert!(same_bits(&filter, &filter_of(layout, hasher, &all)), "{layout:?}, {threads} threads");
        assert_eq!(filter.inserted(), Some(inserted + all.len() as u64), "{layout:?}: insertions were lost");
    }
}

#[test]
fn several_threads_set_the_same_bits_as_one() {
    // A few words or lines that all threads compete for, and filters large enough for their planned
    // rate.
    fill_by_threads(standard(640, 7), 2_000, 10);
    fill_by_threads(standard(2_000_003, 7), 200_000, 1);
    fill_by_threads(partitioned(97, 7), 2_000, 10);
    fill_by_threads(partitioned(300_007, 7), 200_000, 1);
    fill_by_threads(blocked(1, 1), 2_000, 10);
    fill_by_threads(blocked(3, 4), 2_000, 10);
    fill_by_threads(blocked(4_000, 1), 200_000, 1);
    // More lines than the flags that keep threads out of each other's regions.
    fill_by_threads(blocked(100_000, 2), 200_000, 1);
}

/// Inserts batches large enough to be sorted, of odd sizes, while another thread inserts
/// overlapping keys one by one.
fn fill_in_large_batches<L: Layout>(layout: L, keys: u64, batch: usize) {
    for level in Level::available() {
        let all = Keys::of_build(7).members(keys);
        let mut filter = empty(layout, Hasher::default());
        filter.set_level(level);
        let shared = Concurrent::new(filter);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (shared, all) = (&shared, &all);
                scope.spawn(move || {
                    // Each thread leaves out a different quarter of the keys, and the last one
                    // inserts key by key.
                    let (from, to) = (all.len() * thread / 4, all.len() * (thread + 1) / 4);
                    for part in [&all[to..], &all[..from]].into_iter().flat_map(|half| half.chunks(batch)) {
                        if thread == 3 {
                            part.iter().for_each(|key| _ = shared.insert(key));
                        } else {
                            shared.insert_batch(part);
                        }
                        assert_eq!(shared.contains_batch(part).count(), part.len() as u64, "{layout:?}");
                    }
                });
            }
        });
        let filter = shared.into_filter();
        let expected = filter_of(layout, Hasher::default(), &all);
        assert!(same_bits(&filter, &expected), "{layout:?}, batches of {batch}, {level}");
    }
}

#[test]
fn large_batches_from_several_threads_set_the_same_bits_as_one_thread() {
    for lines_per_key in [1, 3] {
        for batch in [4_095, 4_097, 30_011, 1_000_000] {
            fill_in_large_batches(blocked(1, lines_per_key), 20_000, batch);
            fill_in_large_batches(blocked(257, lines_per_key), 50_000, batch);
            fill_in_large_batches(blocked(4_099, lines_per_key), 150_001, batch);
        }
    }
    fill_in_large_batches(standard(2_000_003, 7), 150_001, 30_011);
    fill_in_large_batches(partitioned(300_007, 7), 150_001, 30_011);
}

/// A repeated key completes a group of the same region in every tile.
#[test]
fn a_large_batch_of_one_key_is_inserted() {
    for lines_per_key in [1, 3, 4] {
        let shared = Concurrent::new(empty(blocked(1_000, lines_per_key), Hasher::default()));
        shared.insert_batch(&[42u64; 10_000][..]);
        let filter = shared.into_filter();
        assert!(same_bits(&filter, &filter_of(blocked(1_000, lines_per_key), Hasher::default(), &[42])));
        assert_eq!(filter.inserted(), Some(10_000));
    }
}

/// Readers follow writers closely. Each writer publishes its progress after each insertion has
/// returned, and all keys before that mark must be found.
fn read_while_writing<L: Layout>(layout: L) {
    const EACH: usize = 500_000;
    let shared = Concurrent::new(empty(layout, Hasher::default()));
    let keys: Vec<Vec<u64>> = (0..2).map(|writer| Keys::of_build(writer).members(EACH as u64)).collect();
    let done = [AtomicUsize::new(0), AtomicUsize::new(0)];
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (shared, keys, done) = (&shared, &keys[writer], &done[writer]);
            scope.spawn(move || {
                for (i, part) in keys.chunks(50).enumerate() {
                    if i % 2 == 0 {
                        shared.insert_batch(part);
                        done.fetch_add(part.len(), Ordering::Release);
                    } else {
                        for key in part {
                            shared.insert(key);
                            done.fetch_add(1, Ordering::Release);
                        }
                    }
                }
            });
        }
        for reader in 0..2 {
            let (shared, keys, done) = (&shared, &keys, &done);
            scope.spawn(move || {
                for turn in reader.. {
                    let writer = turn % 2;
                    let mark = done[writer].load(Ordering::Acquire);
                    // The latest keys are the most likely to be missing; then check some of the
                    // others.
                    let recent = &keys[writer][mark.saturating_sub(200)..mark];
                    assert!(
                        recent.iter().rev().all(|key| shared.contains(key)),
                        "{layout:?}: a recent key is missing"
                    );
                    let earlier = &keys[writer][mix(turn as u64) as usize % (mark + 1)..mark];
                    let earlier = &earlier[..earlier.len().min(200)];
                    assert_eq!(shared.contains_batch(earlier).count(), earlier.len() as u64, "{layout:?}");
                    if done.iter().all(|done| done.load(Ordering::Acquire) == EACH) {
                        break;
                    }
                    if turn % 64 == 0 {
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
}

#[test]
fn readers_find_every_key_whose_insertion_has_returned() {
    read_while_writing(standard(9_600_011, 7));
    read_while_writing(partitioned(1_440_001, 7));
    read_while_writing(blocked(20_000, 1));
    read_while_writing(blocked(20_800, 2));
}

#[test]
fn a_snapshot_contains_the_inserted_keys_and_is_independent() {
    let keys = Keys::of_build(5).members(20_000);
    let shared = Concurrent::new(empty(blocked(500, 1), Hasher::default()));
    shared.insert_batch(&keys[..10_000]);
    let snapshot = shared.snapshot().expect("enough memory");
    shared.insert_batch(&keys[10_000..]);
    assert_eq!(snapshot.inserted(), Some(10_000));
    assert_eq!(snapshot.contains_batch(&keys[..10_000]).count(), 10_000);
    let filter = shared.into_filter();
    assert_eq!((filter.inserted(), filter.contains_batch(&keys).count()), (Some(20_000), 20_000));
    assert!(filter.stats().used_cells > snapshot.stats().used_cells);
}

#[test]
fn planned_filters_find_their_keys_even_when_overfull_or_refilled() {
    fn check<L: Layout>(hasher: Hasher) {
        for (n, rate) in [(1, 0.5), (10, 0.01), (1000, 1e-6), (100_000, 0.03), (20_000, 1e-9)] {
            let spec = umbel::Spec::new(n, rate).expect("a valid rate").with_hasher(hasher.clone());
            let mut filter = Bloom::<L>::build(&spec).expect("enough memory");
            for round in 0..3 {
                let members = Keys::of_build(round).members(n);
                // Beyond its capacity a filter has more false positives, but still no false
                // negatives.
                let more = Keys::of_build(round).strangers(n);
                filter.insert_batch(&members[..]);
                filter.insert_batch(&more[..]);
                assert_eq!(filter.contains_batch(&members[..]).count(), n);
                assert!(
                    members.iter().chain(&more).all(|key| filter.contains(key)),
                    "{}, {n}, {rate}",
                    L::KIND
                );
                filter.clear();
            }
        }
    }
    for hasher in [Hasher::fast(11), Hasher::keyed([1; 16]), Hasher::sealed([2; 32])] {
        check::<Standard>(hasher.clone());
        check::<Partitioned>(hasher.clone());
        check::<Blocked>(hasher);
    }
}
