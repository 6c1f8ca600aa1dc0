//! Which packet became which, where routers change them on purpose.

use std::collections::{HashMap, VecDeque};
use std::ops::RangeInclusive;
use umbel::Digest;

/// How many are noted at most: a flood of them must not take all memory.
const MOST: usize = 1 << 20;

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

/// What is noted, by the digest of the packet that goes on.
#[derive(Debug, Default)]
pub(super) struct Transforms {
    before: HashMap<Digest, (Digest, Transform, u64)>,
    /// In the order in which they were noted.
    order: VecDeque<(u64, Digest)>,
}

impl Transforms {
    pub(super) fn note(&mut self, before: Digest, after: Digest, how: Transform, now: u64) {
        if self.order.len() == MOST {
            self.forget();
        }
        self.before.insert(after, (before, how, now));
        self.order.push_back((now, after));
    }

    fn forget(&mut self) {
        if let Some((noted, after)) = self.order.pop_front() {
            // What was noted again since stays.
            if self.before.get(&after).is_some_and(|(_, _, latest)| *latest == noted) {
                self.before.remove(&after);
            }
        }
    }

    pub(super) fn forget_before(&mut self, time: u64) {
        while self.order.front().is_some_and(|(noted, _)| *noted < time) {
            self.forget();
        }
    }

    pub(super) fn before(&self, after: Digest, times: &RangeInclusive<u64>) -> Option<(Digest, Transform)> {
        let (before, how, _) = self.before.get(&after).filter(|(_, _, noted)| times.contains(noted))?;
        Some((*before, *how))
    }
}
