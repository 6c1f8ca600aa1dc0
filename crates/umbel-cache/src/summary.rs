//! What a cache holds, as it tells others: a counting filter, since documents come and go, and the bits it stands for.

use crate::error::{Error, Result};
use crate::update::{Update, Version, What};
use crate::{Bits, Key};
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use umbel::words::{Packed, Words};

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

/// The bits of a counter. One that has reached 15 stays there: it may stand for documents that are gone, and never denies
/// one that is there.
const WIDTH: u32 = 4;
const STUCK: u64 = (1 << WIDTH) - 1;

/// A summary of what a cache holds.
#[derive(Debug)]
pub struct Summary {
    cells: Packed,
    counters: Words,
    /// Which counters are not zero.
    bits: Bits,
    documents: u64,
    capacity: u64,
    /// Documents that have come since the last publication.
    new: u64,
    /// What others see: the bits and documents at the last publication.
    published: Bits,
    told: u64,
    version: Version,
    /// Bits that have changed since then, maybe back again.
    touched: HashSet<u32>,
    /// The bits that changed with each of the last publications, the oldest first.
    log: VecDeque<(u64, Vec<u32>)>,
    logged: usize,
}

impl Summary {
    /// A summary for so many documents, with so many bits for each: 8 promise wrongly in 2.4 % of questions, 16 in 0.24 %.
    pub fn new(capacity: u64, bits_per_document: u32) -> Result<Summary> {
        let bits = capacity.checked_mul(bits_per_document.into()).map(|bits| bits.next_multiple_of(8));
        let bits = bits.and_then(|bits| u32::try_from(bits).ok()).ok_or_else(|| Error::Size {
            what: format!("{bits_per_document} bits for each of {capacity} documents are too many"),
        })?;
        let (bits, cells) = (Bits::zeroed(bits)?, Packed::new(bits.into(), WIDTH)?);
        Ok(Summary {
            cells,
            counters: Words::zeroed(cells.lines())?,
            published: bits.clone(),
            bits,
            documents: 0,
            capacity,
            new: 0,
            told: 0,
            // One that nobody else has.
            version: Version { epoch: RandomState::new().hash_one(0), generation: 0 },
            touched: HashSet::new(),
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

    /// The bits as they are now, and not as others see them.
    pub fn bits(&self) -> &Bits {
        &self.bits
    }

    /// Which state others see.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Notes a document that has come.
    pub fn insert(&mut self, key: &Key) {
        self.change(key, |count| if count < STUCK { count + 1 } else { count });
        self.documents += 1;
        self.new += 1;
    }

    /// Notes that a document is gone, which must have come before.
    pub fn remove(&mut self, key: &Key) {
        self.change(key, |count| if count < STUCK { count.saturating_sub(1) } else { count });
        self.documents = self.documents.saturating_sub(1);
    }

    fn change(&mut self, key: &Key, next: impl Fn(u64) -> u64) {
        let words = self.counters.words_mut();
        for bit in key.positions(self.bits.len()) {
            let count = next(self.cells.get(words, bit.into()));
            self.cells.set(words, bit.into(), count);
            if self.bits.set(bit, count > 0) {
                self.touched.insert(bit);
            }
        }
    }

    /// Whether a document may be here.
    pub fn contains(&self, key: &Key) -> bool {
        self.bits.contains(key)
    }

    /// Whether it is time to publish, so long after the last time.
    pub fn is_due(&self, trigger: &Trigger, since: Duration) -> bool {
        since >= trigger.every
            || self.new as f64 >= trigger.share * self.documents.max(1) as f64 && self.new > 0
    }

    /// Lets others see what has changed; how many bits that are.
    pub fn publish(&mut self) -> usize {
        let changed: Vec<u32> =
            self.touched.drain().filter(|bit| self.bits.get(*bit) != self.published.get(*bit)).collect();
        changed.iter().for_each(|bit| {
            self.published.set(*bit, self.bits.get(*bit));
        });
        let count = changed.len();
        if count > 0 || self.told != self.documents {
            self.version.generation += 1;
            self.logged += count;
            self.log.push_back((self.version.generation, changed));
            // What has more changes than it has bits for is told as a whole.
            while self.logged as u64 * 32 >= self.bits.len().into() || self.log.len() > MOST_LOGGED {
                let Some((_, oldest)) = self.log.pop_front() else { break };
                self.logged -= oldest.len();
            }
        }
        (self.new, self.told) = (0, self.documents);
        count
    }

    /// What to tell a cache that knows this state: only the changes, if that is less.
    pub fn update(&self, since: Option<Version>) -> Update {
        let known = since.filter(|since| since.epoch == self.version.epoch).map(|since| since.generation);
        let what = match known {
            Some(from) if from == self.version.generation => What::Nothing,
            Some(from) if self.reaches_back_to(from) => {
                let newer = self.log.iter().filter(|(generation, _)| *generation > from);
                let bits: BTreeSet<u32> = newer.flat_map(|(_, bits)| bits).copied().collect();
                let changes = bits.into_iter().map(|bit| (bit, self.published.get(bit))).collect();
                What::Changes { from, changes }
            }
            _ => What::All(self.published.clone()),
        };
        Update { version: self.version, documents: self.told, bits: self.published.len(), what }
    }

    /// Whether all changes since a generation are known.
    fn reaches_back_to(&self, from: u64) -> bool {
        from < self.version.generation && self.log.front().is_some_and(|(oldest, _)| *oldest <= from + 1)
    }
}

/// No more publications are remembered, for a cache that has not asked for so long.
const MOST_LOGGED: usize = 1024;
