//! Pseudorandom numbers that depend only on a seed.

use umbel::Digest;
use umbel::hash::reduce;

/// A sequence of pseudorandom numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    start: Digest,
    drawn: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random { start: Digest::from_hash(seed).salted(0x7061_7468), drawn: 0 }
    }

    /// Returns 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.drawn += 1;
        self.start.salted(self.drawn).get()
    }

    /// Returns a number below `end`, or 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        reduce(self.next(), end as u64) as usize
    }

    /// Returns a number from 0 (inclusive) to 1 (exclusive).
    pub(crate) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
