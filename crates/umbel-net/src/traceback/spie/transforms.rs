//! Which packet became which, where routers change them on purpose.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use umbel::Digest;

/// The number of notes that are kept: a flood of packets must not take all memory.
const MAX_NOTES: usize = 1 << 20;

/// What was done to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transform {
    /// Its addresses or ports were translated.
    Translated,
    /// It was put into another packet, or taken out of one.
    Tunnelled,
    /// It was cut into fragments.
    Fragmented,
}

/// What is noted, by the digest of the packet that goes on, and in the order in which it was noted: different packets may
/// become the same one, and the same may come again.
#[derive(Debug, Default)]
pub(super) struct Transforms {
    notes: BTreeMap<(Digest, u64), Note>,
    order: VecDeque<(Digest, u64)>,
    noted: u64,
}

#[derive(Clone, Copy, Debug)]
struct Note {
    before: Digest,
    how: Transform,
    time: u64,
}

impl Transforms {
    pub(super) fn note(&mut self, before: Digest, after: Digest, how: Transform, time: u64) {
        if self.order.len() == MAX_NOTES {
            self.forget();
        }
        let key = (after, self.noted);
        self.noted += 1;
        self.notes.insert(key, Note { before, how, time });
        self.order.push_back(key);
    }

    fn forget(&mut self) {
        if let Some(key) = self.order.pop_front() {
            self.notes.remove(&key);
        }
    }

    pub(super) fn forget_before(&mut self, time: u64) {
        while self.order.front().and_then(|key| self.notes.get(key)).is_some_and(|note| note.time < time) {
            self.forget();
        }
    }

    /// What became this packet at some time of these: the last that did.
    pub(super) fn before(&self, after: Digest, times: &RangeInclusive<u64>) -> Option<(Digest, Transform)> {
        let mut notes = self.notes.range((after, 0)..=(after, u64::MAX)).map(|(_, note)| note).rev();
        notes.find(|note| times.contains(&note.time)).map(|note| (note.before, note.how))
    }
}
