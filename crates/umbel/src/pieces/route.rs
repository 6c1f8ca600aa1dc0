//! The ranges that a digest belongs to, and the entries that pieces have for it.

use crate::bloom::scattered::Scatter;
use crate::{Blocked, Digest};

/// A function from a digest to ranges and entries.
pub(super) trait Route: Copy {
    /// Passes to `push` each range that the digest belongs to, and the entry for it.
    fn route(self, digest: Digest, push: impl FnMut(usize, &[u8]));
}

/// Blocked filters: one entry for each line of a key. A range has `2^log2` lines.
#[derive(Clone, Copy)]
pub(super) struct LineRoute {
    pub layout: Blocked,
    pub log2: u32,
}

impl Route for LineRoute {
    #[inline(always)]
    fn route(self, digest: Digest, mut push: impl FnMut(usize, &[u8])) {
        for number in self.layout.numbers(digest) {
            push((self.layout.line_of(number) >> self.log2) as usize, &number.to_le_bytes());
        }
    }
}

/// Filters with scattered bits: one entry for each bit of a key. A range has `2^log2` bits.
#[derive(Clone, Copy)]
pub(super) struct BitRoute<L> {
    pub layout: L,
    pub log2: u32,
}

impl<L: Scatter> Route for BitRoute<L> {
    #[inline(always)]
    fn route(self, digest: Digest, mut push: impl FnMut(usize, &[u8])) {
        for (i, x) in (0..self.layout.probes()).zip(digest.stream()) {
            let position = self.layout.position(i, x);
            let in_range = position & ((1 << self.log2) - 1);
            push((position >> self.log2) as usize, &(in_range as u32).to_le_bytes());
        }
    }
}
