//! Compares random histories of insertions, removals and combinations with an exact multiset, for
//! kinds that support removal and whose cells can be added.

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseResult};
use std::collections::BTreeMap;
use umbel::any::Stored;
use umbel::file::{self, Options};
use umbel::hash::KeyRing;
use umbel::internals::{Level, Set, TILE};
use umbel::{Answers, Digest, Error, Key, Remove, Removed};

/// Makes property tests draw the same cases in every run.
pub fn fixed(cases: u32) -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(0x5eed);
    ProptestConfig { cases, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

#[derive(Clone, Debug)]
pub enum Operation {
    Insert(u64),
    InsertBatch(Vec<u64>),
    InsertTileNew(Vec<u64>),
    /// Removes the member with this number.
    Remove(usize),
    /// Removes every n-th member.
    RemoveMany(usize),
    /// Removes a key that may be absent, with an exact answer to whether it is a member.
    RemoveChecked(u64),
    /// Removes a key that the filter reports as absent.
    RemoveStranger(u64),
    Union(Vec<u64>),
    Absorb(Vec<u64>),
    /// Intersects with a filter of some keys and of every n-th key of this filter.
    Intersect(Vec<u64>, usize),
    /// Writes the filter to the bytes of a file and reads it back.
    Store,
    Clone,
    Clear,
    Level(usize),
}

/// Draws keys from a small range and from a large one, so that some repeat.
fn key() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![0..60u64, any::<u64>()]
}

pub fn history() -> impl Strategy<Value = Vec<Operation>> {
    let keys = || prop::collection::vec(key(), 0..100);
    let tile = prop::collection::vec(key(), 0..=TILE);
    let operation = prop_oneof![
        6 => key().prop_map(Operation::Insert),
        3 => keys().prop_map(Operation::InsertBatch),
        2 => tile.prop_map(Operation::InsertTileNew),
        8 => any::<usize>().prop_map(Operation::Remove),
        2 => (1..5usize).prop_map(Operation::RemoveMany),
        2 => key().prop_map(Operation::RemoveChecked),
        3 => key().prop_map(Operation::RemoveStranger),
        1 => keys().prop_map(Operation::Union),
        1 => keys().prop_map(Operation::Absorb),
        1 => (keys(), 1..4usize).prop_map(|(keys, step)| Operation::Intersect(keys, step)),
        1 => Just(Operation::Store),
        1 => Just(Operation::Clone),
        1 => Just(Operation::Clear),
        1 => (0..8usize).prop_map(Operation::Level),
    ];
    prop::collection::vec(operation, 1..40)
}

type Members = BTreeMap<u64, u64>;

fn count(members: &mut Members, keys: &[u64]) {
    keys.iter().for_each(|key| *members.entry(*key).or_default() += 1);
}

fn words<S: Set>(filter: &S) -> Vec<u64> {
    filter.sections()[0].1.words().to_vec()
}

struct Checked<S> {
    filter: S,
    members: Members,
    /// Whether cells hold exactly the contributions of the members.
    exact: bool,
}

impl<S: Set + Remove + TryFrom<umbel::AnyFilter>> Checked<S> {
    /// Attempts an insertion and checks that a refusal, because counters are full, changes nothing.
    fn attempt(&mut self, keys: &[u64], act: impl FnOnce(&mut S) -> umbel::Result<()>) -> TestCaseResult {
        let (before, inserted) = (words(&self.filter), self.filter.inserted());
        match act(&mut self.filter) {
            Ok(()) => count(&mut self.members, keys),
            Err(Error::Full { .. }) => {
                prop_assert_eq!(words(&self.filter), before);
                prop_assert_eq!(self.filter.inserted(), inserted);
            }
            Err(other) => return Err(TestCaseError::fail(format!("{other}"))),
        }
        Ok(())
    }

    fn filled(&self, keys: &[u64]) -> Option<S> {
        let mut other = self.filter.try_clone_empty().expect("little memory");
        other.insert_batch(keys).ok().map(|()| other)
    }

    fn remove(&mut self, key: u64) -> TestCaseResult {
        let before = words(&self.filter);
        match self.filter.remove(&key) {
            Removed::Removed => self.forget(key),
            // Its cells are stuck: the key stays, and is found forever.
            Removed::NotDeletable => prop_assert_eq!(words(&self.filter), before, "{}", key),
            Removed::NotPresent => return Err(TestCaseError::fail(format!("{key} is a member"))),
        }
        Ok(())
    }

    fn forget(&mut self, key: u64) {
        let left = self.members.get_mut(&key).expect("a member");
        *left -= 1;
        if *left == 0 {
            self.members.remove(&key);
        }
    }

    fn apply(&mut self, operation: &Operation) -> TestCaseResult {
        match operation {
            Operation::Insert(key) => {
                let found = self.filter.contains(key);
                let mut new = !found;
                self.attempt(&[*key], |filter| {
                    filter.insert(key).map(|answer| new = answer).map_err(Into::into)
                })?;
                prop_assert_eq!(new, !found);
            }
            Operation::InsertBatch(keys) => {
                // If a key is refused, those before it are inserted: as many as the filter has
                // counted.
                let before = self.filter.inserted();
                match (self.filter.insert_batch(&keys[..]).map_err(Into::into), before) {
                    (Ok(()), _) => count(&mut self.members, keys),
                    (Err(Error::Full { .. }), Some(before)) => {
                        let added = self.filter.inserted().unwrap_or_default() - before;
                        count(&mut self.members, &keys[..added as usize]);
                    }
                    // The number of insertions is unknown, so start again with an empty filter.
                    (Err(_), None) => self.apply(&Operation::Clear)?,
                    (Err(other), _) => return Err(TestCaseError::fail(format!("{other}"))),
                }
            }
            Operation::InsertTileNew(keys) => {
                let tile = digests(&self.filter, keys);
                let Ok(mut parallel) = self.filter.try_clone() else { return Ok(()) };
                match self.filter.insert_tile_new(&tile) {
                    Ok(new) => {
                        count(&mut self.members, keys);
                        for (i, digest) in tile.iter().enumerate() {
                            prop_assert_eq!(
                                parallel.insert_digest(*digest).expect("as before"),
                                new >> i & 1 == 1
                            );
                        }
                        prop_assert_eq!(words(&self.filter), words(&parallel));
                    }
                    Err(_) => self.filter = parallel,
                }
            }
            Operation::Remove(number) => {
                if let Some(key) = self.members.keys().nth(number % self.members.len().max(1)).copied() {
                    self.remove(key)?;
                }
            }
            Operation::RemoveMany(step) => {
                let keys: Vec<u64> = self.members.keys().step_by(*step).copied().collect();
                keys.into_iter().try_for_each(|key| self.remove(key))?;
            }
            Operation::RemoveChecked(key) => {
                let member = self.members.contains_key(key);
                let removed = self.filter.remove_checked(key, |_| member);
                prop_assert_eq!(removed != Removed::NotPresent, member);
                if removed == Removed::Removed {
                    self.forget(*key);
                }
            }
            Operation::RemoveStranger(key) => {
                if !self.filter.contains(key) {
                    let before = words(&self.filter);
                    prop_assert_eq!(self.filter.remove(key), Removed::NotPresent);
                    prop_assert_eq!(words(&self.filter), before);
                }
            }
            Operation::Union(keys) => {
                if let Some(other) = self.filled(keys) {
                    self.attempt(keys, |filter| filter.union(&other))?;
                }
            }
            Operation::Absorb(keys) => {
                if let Some(other) = self.filled(keys) {
                    let mut sequential = self.filter.try_clone().expect("little memory");
                    let mut absorbed = false;
                    self.attempt(keys, |filter| filter.absorb(&other).map(|()| absorbed = true))?;
                    prop_assert_eq!(sequential.insert_batch(&keys[..]).is_ok(), absorbed);
                    if absorbed {
                        prop_assert_eq!(words(&self.filter), words(&sequential));
                        prop_assert_eq!(self.filter.inserted(), sequential.inserted());
                    }
                }
            }
            Operation::Intersect(keys, step) => {
                let shared: Vec<u64> = self.members.keys().step_by(*step).copied().collect();
                let all: Vec<u64> = keys.iter().chain(&shared).copied().collect();
                let Some(other) = self.filled(&all) else { return Ok(()) };
                self.filter.intersect(&other).expect("the same shape");
                let mut others = Members::new();
                count(&mut others, &all);
                self.members.retain(|key, copies| {
                    *copies = others.get(key).map_or(0, |theirs| *theirs.min(copies));
                    *copies > 0
                });
                self.exact = false;
            }
            Operation::Store => {
                let bytes = file::to_bytes(&self.filter, &Options::default()).expect("little memory");
                let stored = file::from_bytes(&bytes, &KeyRing::new()).expect("as written").filter;
                let Stored::Set(any) = stored else { return Err(TestCaseError::fail("another kind")) };
                let Ok(back) = S::try_from(any) else { return Err(TestCaseError::fail("another kind")) };
                prop_assert_eq!(words(&back), words(&self.filter));
                prop_assert_eq!(back.stats(), self.filter.stats());
                self.filter = back;
            }
            Operation::Clone => self.filter = self.filter.try_clone().expect("little memory"),
            Operation::Clear => {
                self.filter.clear();
                (self.members, self.exact) = (Members::new(), true);
                prop_assert!(words(&self.filter).iter().all(|word| *word == 0));
            }
            Operation::Level(number) => {
                let levels = Level::available();
                self.filter.set_level(levels[number % levels.len()]);
            }
        }
        Ok(())
    }

    /// Checks that every member is found one by one, as a tile, as a batch and cell by cell.
    fn check(&self) -> TestCaseResult {
        let keys: Vec<u64> = self.members.keys().copied().collect();
        prop_assert_eq!(self.filter.contains_batch(&keys[..]).count(), keys.len() as u64);
        for tile in keys.chunks(TILE) {
            let digests = digests(&self.filter, tile);
            prop_assert_eq!(self.filter.contains_tile(&digests).count_ones() as usize, tile.len());
            for digest in digests {
                prop_assert!(self.filter.contains_digest(digest));
                prop_assert!(self.filter.trace(digest, &mut |_| Ok(())).expect("nothing refuses"));
            }
        }
        Ok(())
    }
}

fn digests<S: Set>(filter: &S, keys: &[u64]) -> Vec<Digest> {
    keys.iter().map(|key| key.digest(filter.hasher())).collect()
}

/// Runs a history, then removes everything. If no cell has overflowed and none was shared with
/// another filter, all cells must be zero.
pub fn run<S>(filter: S, history: &[Operation], stuck: impl Fn(&S) -> u64) -> TestCaseResult
where
    S: Set + Remove + TryFrom<umbel::AnyFilter>,
{
    let mut checked = Checked { filter, members: Members::new(), exact: true };
    for operation in history {
        checked.apply(operation)?;
        checked.check()?;
    }
    if let Some(inserted) = checked.filter.inserted() {
        prop_assert_eq!(inserted, checked.members.values().sum::<u64>());
    }
    let copies: Vec<(u64, u64)> = checked.members.iter().map(|(key, copies)| (*key, *copies)).collect();
    for (key, copies) in copies {
        (0..copies).try_for_each(|_| checked.remove(key))?;
        checked.check()?;
    }
    if checked.exact && stuck(&checked.filter) == 0 {
        prop_assert!(words(&checked.filter).iter().all(|word| *word == 0));
    }
    Ok(())
}

/// Checks that batch, tile, single and traced lookups of these keys agree on every instruction set.
pub fn answers_agree<S: Set>(filter: &mut S, keys: &[u64]) -> Answers {
    filter.set_level(Level::PORTABLE);
    let answers = filter.contains_batch(keys);
    for level in Level::available() {
        filter.set_level(level);
        for len in [0, 1, 63, 64, 65, keys.len()] {
            let keys = &keys[..len.min(keys.len())];
            assert!(filter.contains_batch(keys).iter().eq(answers.iter().take(keys.len())), "{level}");
        }
        for (number, tile) in keys.chunks(TILE).enumerate() {
            let digests = digests(filter, tile);
            assert_eq!(filter.contains_tile(&digests), answers.as_words()[number], "{level}");
            for (i, digest) in digests.iter().enumerate() {
                let answer = answers.as_words()[number] >> i & 1 == 1;
                assert_eq!(filter.contains_digest(*digest), answer);
                assert_eq!(filter.trace(*digest, &mut |_| Ok(())).unwrap(), answer);
            }
        }
    }
    answers
}
