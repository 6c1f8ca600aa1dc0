//! What a cache holds, as it tells others: a counting filter, since documents come and go, and the bits it stands for.

use crate::error::{Error, Result};
use crate::update::{Update, Version, What};
use crate::{CacheKey, key_filter};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;
use umbel::counting::{Flip, Options};
use umbel::literature::Literature;
use umbel::{Counting, Hasher, Removed};

/// When what has changed is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trigger {
    /// After so much time.
    pub every: Duration,
    /// Or earlier, when so large a share of the documents is new: 0.01 is one in a hundred.
    pub share: f64,
}

impl Default for Trigger {
    fn default() -> Trigger {
        Trigger { every: Duration::from_secs(5), share: 0.01 }
    }
}

/// A summary of the documents that a cache holds.
#[derive(Debug)]
pub struct Summary {
    /// How many documents set each bit. A counter that has overflowed stays as it is: it may stand for documents that are
    /// gone, and never denies one that is there.
    counters: Counting,
    /// The number of counters, and so of bits.
    bits: u32,
    documents: u64,
    capacity: u64,
    /// Documents that have come since the last publication.
    new: u64,
    /// What others see: the bits and documents at the last publication.
    published: Arc<Literature>,
    told: u64,
    version: Version,
    /// The bits that have flipped since then, maybe back again, and their values now.
    flipped: HashMap<u32, bool>,
    /// The bits that changed with each of the last publications, the oldest first.
    log: VecDeque<(u64, Vec<u32>)>,
    logged: usize,
}

impl Summary {
    /// Creates a summary for `capacity` documents with so many bits for each: 8 promise wrongly in 2.4 % of questions, 16 in
    /// 0.24 %.
    ///
    /// # Errors
    ///
    /// [`Error::Size`] if that is not 1 to 2^31 bits, [`Error::Filter`] if there is no memory for them.
    pub fn new(capacity: u64, bits_per_document: u32) -> Result<Summary> {
        let bits = capacity.checked_mul(bits_per_document.into()).map(|bits| bits.next_multiple_of(8));
        let bits = bits.and_then(|bits| u32::try_from(bits).ok()).ok_or_else(|| Error::Size {
            what: format!("{bits_per_document} bits for each of {capacity} documents are too many"),
        })?;
        let published = Arc::new(key_filter::empty(bits)?);
        Ok(Summary {
            // Counters of four bits that stick. The hash is not used, as keys are hashed already.
            counters: Counting::new(bits.into(), CacheKey::HASHES, Options::default(), Hasher::default())?,
            bits,
            documents: 0,
            capacity,
            new: 0,
            published,
            told: 0,
            // One that nobody else has.
            version: Version { epoch: RandomState::new().hash_one(0), generation: 0 },
            flipped: HashMap::new(),
            log: VecDeque::new(),
            logged: 0,
        })
    }

    /// How many documents it has.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// For how many documents it was made. With many more than that it should be made anew, larger.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the counting filter, which is ahead of what others see.
    pub fn counters(&self) -> &Counting {
        &self.counters
    }

    /// Which state others see.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Notes a document that has come.
    pub fn insert(&mut self, key: &CacheKey) {
        let mut flips = Vec::new();
        // Counters that stick refuse nothing.
        let _ = self.counters.insert_slices(&key.slices(), &mut flips);
        self.note(&flips);
        self.documents += 1;
        self.new += 1;
    }

    /// Notes that a document is gone. One that certainly was not there changes nothing.
    pub fn remove(&mut self, key: &CacheKey) {
        let mut flips = Vec::new();
        if self.counters.remove_slices(&key.slices(), &mut flips) != Removed::NotPresent {
            self.note(&flips);
            self.documents = self.documents.saturating_sub(1);
        }
    }

    fn note(&mut self, flips: &[Flip]) {
        // A bit has at most 31 bits.
        self.flipped.extend(flips.iter().map(|flip| (flip.index as u32, flip.set)));
    }

    /// Returns whether a document may be here.
    pub fn contains(&self, key: &CacheKey) -> bool {
        self.counters.contains_slices(&key.slices())
    }

    /// Whether it is time to publish, so long after the last time.
    pub fn is_due(&self, trigger: &Trigger, since: Duration) -> bool {
        since >= trigger.every
            || self.new as f64 >= trigger.share * self.documents.max(1) as f64 && self.new > 0
    }

    /// Lets others see what has changed, and returns the number of bits that differ.
    ///
    /// # Errors
    ///
    /// [`Error::Filter`] if there is no memory for a copy of bits that others still read; others see what they saw.
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
        if count > 0 || self.told != self.documents {
            self.version.generation += 1;
            self.logged += count;
            self.log.push_back((self.version.generation, changed));
            // What has more changes than it has bits for is told as a whole.
            while self.logged as u64 * 32 >= self.bits.into() || self.log.len() > MOST_LOGGED {
                let Some((_, oldest)) = self.log.pop_front() else { break };
                self.logged -= oldest.len();
            }
        }
        (self.new, self.told) = (0, self.documents);
        Ok(count)
    }

    /// What to tell a cache that knows this state: only the changes, if that is less.
    pub fn update(&self, since: Option<Version>) -> Update {
        let known = since.filter(|since| since.epoch == self.version.epoch).map(|since| since.generation);
        let what = match known {
            Some(from) if from == self.version.generation => What::Nothing,
            Some(from) if self.reaches_back_to(from) => {
                let newer = self.log.iter().filter(|(generation, _)| *generation > from);
                let bits: BTreeSet<u32> = newer.flat_map(|(_, bits)| bits).copied().collect();
                let changes = bits.into_iter().map(|bit| (bit, self.published.bit(bit.into()))).collect();
                What::Changes { from, changes }
            }
            _ => What::All(Arc::clone(&self.published)),
        };
        Update { version: self.version, documents: self.told, bits: self.bits, what }
    }

    /// Whether all changes since a generation are known.
    fn reaches_back_to(&self, from: u64) -> bool {
        from < self.version.generation && self.log.front().is_some_and(|(oldest, _)| *oldest <= from + 1)
    }
}

/// No more publications are remembered, for a cache that has not asked for so long.
const MOST_LOGGED: usize = 1024;
