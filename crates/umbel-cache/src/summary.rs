//! The summary of a cache: a Bloom filter of its keys for peers, and the counting filter that keeps
//! it up to date.

use crate::error::{Error, Result};
use crate::update::{Payload, Update, Version};
use crate::{CacheKey, key_filter};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;
use umbel::counting::{Flip, Options};
use umbel::literature::Literature;
use umbel::{Counting, Hasher, Removed};

/// When a summary is published.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishTrigger {
    /// The longest time between two publications.
    pub interval: Duration,
    /// The share of new keys that triggers an earlier publication: 0.01 is one key in a hundred.
    pub new_share: f64,
}

impl Default for PublishTrigger {
    fn default() -> PublishTrigger {
        PublishTrigger { interval: Duration::from_secs(5), new_share: 0.01 }
    }
}

/// A summary of the keys for which a cache has responses.
///
/// Insertions and removals change the counters at once. Peers see the bits of the last
/// [publication](Summary::publish), which they get as [updates](Summary::update).
#[derive(Debug)]
pub struct Summary {
    /// The number of keys that set each bit. A counter that overflows is never decremented again,
    /// so that it may stand for keys that were removed but never denies one that is present.
    counters: Counting,
    /// The number of counters, which is the number of bits.
    bits: u32,
    key_count: u64,
    capacity: u64,
    /// The number of keys inserted since the last publication.
    new_keys: u64,
    /// The bits at the last publication.
    published: Arc<Literature>,
    /// The number of keys at the last publication.
    published_keys: u64,
    version: Version,
    /// The bits that have flipped since the last publication, possibly more than once, with their
    /// current values.
    flipped: HashMap<u32, bool>,
    /// The generations of the latest publications and the bits that each of them changed, the
    /// oldest first.
    change_log: VecDeque<(u64, Vec<u32>)>,
    /// The number of bits in all entries of the change log.
    logged_bits: usize,
}

/// The largest number of publications in the change log. A peer that has missed more gets all bits.
const MAX_LOGGED_PUBLICATIONS: usize = 1024;

impl Summary {
    /// Creates a summary for `capacity` keys. With 8 bits per key its rate of false positives is
    /// 2.4 %, with 16 bits 0.24 %.
    ///
    /// # Errors
    ///
    /// [`Error::Size`] if that is not 1 to 2^31 bits, [`Error::Filter`] if there is not enough
    /// memory.
    pub fn new(capacity: u64, bits_per_key: u32) -> Result<Summary> {
        let bits = capacity.checked_mul(bits_per_key.into()).map(|bits| bits.next_multiple_of(8));
        let bits = bits.and_then(|bits| u32::try_from(bits).ok()).ok_or_else(|| Error::Size {
            what: format!("{bits_per_key} bits for each of {capacity} documents are too many"),
        })?;
        let published = Arc::new(key_filter::empty(bits)?);
        Ok(Summary {
            // Four-bit counters that saturate. The hasher is not used, as keys are hashed already.
            counters: Counting::new(bits.into(), CacheKey::HASHES, Options::default(), Hasher::default())?,
            bits,
            key_count: 0,
            capacity,
            new_keys: 0,
            published,
            published_keys: 0,
            // A random epoch distinguishes this summary from earlier ones of the same cache.
            version: Version { epoch: RandomState::new().hash_one(0), generation: 0 },
            flipped: HashMap::new(),
            change_log: VecDeque::new(),
            logged_bits: 0,
        })
    }

    /// Returns the number of keys.
    pub fn key_count(&self) -> u64 {
        self.key_count
    }

    /// Returns the number of keys that the summary is sized for. If it has many more, build a
    /// larger one.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the counting filter, which is ahead of the published bits.
    pub fn counters(&self) -> &Counting {
        &self.counters
    }

    /// Returns the version of the published bits.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Adds a key.
    pub fn insert(&mut self, key: &CacheKey) {
        let mut flips = Vec::new();
        // Saturating counters accept every insertion.
        let _ = self.counters.insert_slices(&key.slices(), &mut flips);
        self.record_flips(&flips);
        self.key_count += 1;
        self.new_keys += 1;
    }

    /// Removes a key. A key that is certainly absent changes nothing.
    pub fn remove(&mut self, key: &CacheKey) {
        let mut flips = Vec::new();
        if self.counters.remove_slices(&key.slices(), &mut flips) != Removed::NotPresent {
            self.record_flips(&flips);
            self.key_count = self.key_count.saturating_sub(1);
        }
    }

    fn record_flips(&mut self, flips: &[Flip]) {
        // `key_filter::MAX_BITS` keeps the index of a bit within 31 bits.
        self.flipped.extend(flips.iter().map(|flip| (flip.index as u32, flip.set)));
    }

    /// Returns whether the cache may have a response for this key.
    pub fn contains(&self, key: &CacheKey) -> bool {
        self.counters.contains_slices(&key.slices())
    }

    /// Returns whether it is time to publish, given the time since the last publication.
    pub fn is_due(&self, trigger: &PublishTrigger, elapsed: Duration) -> bool {
        elapsed >= trigger.interval
            || self.new_keys as f64 >= trigger.new_share * self.key_count.max(1) as f64 && self.new_keys > 0
    }

    /// Publishes the current bits and returns the number of bits that differ from the last
    /// publication.
    ///
    /// # Errors
    ///
    /// [`Error::Filter`] if there is no memory for a copy of bits that others still read; the last
    /// publication stays in effect.
    pub fn publish(&mut self) -> Result<usize> {
        let mut changed = Vec::new();
        if !self.flipped.is_empty() {
            let published = key_filter::make_mut(&mut self.published)?;
            let flipped = self.flipped.drain();
            let differs =
                flipped.filter(|(bit, set)| published.apply(Flip { index: (*bit).into(), set: *set }));
            changed.extend(differs.map(|(bit, _)| bit));
        }
        let count = changed.len();
        if count > 0 || self.published_keys != self.key_count {
            self.version.generation += 1;
            self.logged_bits += count;
            self.change_log.push_back((self.version.generation, changed));
            // A change takes 32 bits. Changes that take more than all bits of the summary are not
            // worth logging.
            while self.logged_bits as u64 * 32 >= self.bits.into()
                || self.change_log.len() > MAX_LOGGED_PUBLICATIONS
            {
                let Some((_, oldest)) = self.change_log.pop_front() else { break };
                self.logged_bits -= oldest.len();
            }
        }
        (self.new_keys, self.published_keys) = (0, self.key_count);
        Ok(count)
    }

    /// Returns the update for a peer that has version `since`: the changes if they are all in the
    /// change log, otherwise all bits.
    pub fn update(&self, since: Option<Version>) -> Update {
        let since = since.filter(|since| since.epoch == self.version.epoch).map(|since| since.generation);
        let payload = match since {
            Some(from) if from == self.version.generation => Payload::Unchanged,
            Some(from) if self.has_changes_since(from) => {
                let newer = self.change_log.iter().filter(|(generation, _)| *generation > from);
                let bits: BTreeSet<u32> = newer.flat_map(|(_, bits)| bits).copied().collect();
                let changes = bits.into_iter().map(|bit| (bit, self.published.bit(bit.into()))).collect();
                Payload::Changes { from, changes }
            }
            _ => Payload::AllBits(Arc::clone(&self.published)),
        };
        Update { version: self.version, key_count: self.published_keys, bits: self.bits, payload }
    }

    /// Returns whether the change log has all changes since a generation.
    fn has_changes_since(&self, generation: u64) -> bool {
        generation < self.version.generation
            && self.change_log.front().is_some_and(|(oldest, _)| *oldest <= generation + 1)
    }
}
