//! The transformations of packets: which packet became which.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::RangeInclusive;
use umbel::Digest;

/// The largest number of notes, so that a flood of packets cannot take all memory.
const MAX_NOTES: usize = 1 << 20;

/// A transformation of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transform {
    /// Its addresses or ports were translated.
    Translated,
    /// It was put into another packet, or taken out of one.
    Tunnelled,
    /// It was cut into fragments, or put together from fragments.
    Fragmented,
    /// An ICMP message about it was sent, which quotes its beginning.
    Quoted,
    /// It was put under the protection of IPsec, or taken out of it.
    Secured,
}

impl Transform {
    /// All transformations.
    pub const ALL: [Transform; 5] = [
        Transform::Translated,
        Transform::Tunnelled,
        Transform::Fragmented,
        Transform::Quoted,
        Transform::Secured,
    ];
}

impl fmt::Display for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transform::Translated => "translated",
            Transform::Tunnelled => "tunnelled",
            Transform::Fragmented => "fragmented",
            Transform::Quoted => "quoted",
            Transform::Secured => "secured",
        })
    }
}

/// The notes by the digest of the outgoing packet and by their number. Different packets may become
/// the same one, and the same packet may come again.
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

    /// Returns the last packet that became this one within these times, and how.
    pub(super) fn before(&self, after: Digest, times: &RangeInclusive<u64>) -> Option<(Digest, Transform)> {
        let mut notes = self.notes.range((after, 0)..=(after, u64::MAX)).map(|(_, note)| note).rev();
        notes.find(|note| times.contains(&note.time)).map(|note| (note.before, note.how))
    }
}
