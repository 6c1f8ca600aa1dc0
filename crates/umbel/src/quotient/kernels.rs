//! The loops over single digests and over tiles, compiled once per instruction set.

use super::slots::{OCCUPIED, Slots};
use crate::Digest;
use crate::arch::{Kernel, Simd, prefetch};
use crate::sizing::quotient::BLOCK;
use crate::tile::{Lookup, Pair, Places, TILE, Tile, Tiled, ones};

/// The fingerprints of a tile.
type Fingerprints = [u64; TILE];

impl Places for Fingerprints {
    const EMPTY: Fingerprints = [0; TILE];
}

impl Tiled for Slots {
    type Places = Fingerprints;

    #[inline(always)]
    fn places(&self, tile: &Tile, fingerprints: &mut Fingerprints) {
        for (fingerprint, digest) in fingerprints.iter_mut().zip(tile) {
            *fingerprint = self.fingerprint(*digest);
        }
    }
}

impl Lookup for Slots {
    type Memory = [u64];

    #[inline(always)]
    fn prefetch(&self, words: &[u64], fingerprints: &Fingerprints) {
        fingerprints.iter().for_each(|fingerprint| self.prefetch_run(words, *fingerprint));
    }

    /// First tests for all keys whether their runs exist. This needs no branches and settles four
    /// in ten lookups.
    #[inline(always)]
    fn contains_tile<S: Simd>(&self, simd: S, words: &[u64], _: &Tile, at: Pair<'_, Fingerprints>) -> u64 {
        let mut runs = 0;
        for (i, (now, next)) in at.now.iter().zip(at.next).enumerate() {
            self.prefetch_run(words, *next);
            runs |= u64::from(self.bit(words, OCCUPIED, self.split(*now).0)) << i;
        }
        let mut answers = 0;
        for i in ones(runs) {
            let (quotient, remainder) = self.split(at.now[i]);
            answers |= u64::from(self.run_contains(simd, words, quotient, remainder)) << i;
        }
        answers
    }
}

impl Slots {
    /// Prefetches the memory that a lookup usually reads.
    #[inline(always)]
    fn prefetch_run(&self, words: &[u64], fingerprint: u64) {
        let (quotient, _) = self.split(fingerprint);
        prefetch(words, self.block_start(quotient / BLOCK));
        self.prefetch_around(words, quotient);
    }
}

/// Looks up one digest.
pub(super) struct ContainsDigest<'a> {
    pub slots: &'a Slots,
    pub words: &'a [u64],
    pub digest: Digest,
}

impl Kernel for ContainsDigest<'_> {
    type Output = bool;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> bool {
        self.slots.contains(simd, self.words, self.slots.fingerprint(self.digest))
    }
}

/// Inserts at most 64 digests in order, and at most `room`. It stops early when a digest finds no
/// empty slot.
pub(super) struct InsertTile<'a> {
    pub slots: &'a Slots,
    pub words: &'a mut [u64],
    pub digests: &'a [Digest],
    pub room: u64,
}

/// The result of inserting a tile.
pub(super) struct Inserted {
    /// The number of inserted digests.
    pub count: usize,
    /// A mask of the digests that were new.
    pub new: u64,
}

impl Kernel for InsertTile<'_> {
    type Output = Inserted;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Inserted {
        let InsertTile { slots, words, digests, room } = self;
        // A `Stage` would compute the positions of a full tile, but often there is only one digest.
        let mut fingerprints = Fingerprints::EMPTY;
        for (fingerprint, digest) in fingerprints.iter_mut().zip(digests) {
            *fingerprint = slots.fingerprint(*digest);
        }
        let fingerprints = &fingerprints[..digests.len().min(TILE)];
        fingerprints.iter().for_each(|fingerprint| slots.prefetch_run(words, *fingerprint));
        let mut inserted = Inserted { count: 0, new: 0 };
        for fingerprint in fingerprints.iter().take(usize::try_from(room).unwrap_or(usize::MAX)) {
            let Some(found) = slots.insert(simd, words, *fingerprint) else { break };
            inserted.new |= u64::from(!found) << inserted.count;
            inserted.count += 1;
        }
        inserted
    }
}

/// Removes one copy of a fingerprint and returns whether it was there.
pub(super) struct RemoveOne<'a> {
    pub slots: &'a Slots,
    pub words: &'a mut [u64],
    pub fingerprint: u64,
}

impl Kernel for RemoveOne<'_> {
    type Output = bool;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> bool {
        self.slots.remove(simd, self.words, self.fingerprint)
    }
}

/// Counts the copies of a fingerprint.
pub(super) struct Count<'a> {
    pub slots: &'a Slots,
    pub words: &'a [u64],
    pub fingerprint: u64,
}

impl Kernel for Count<'_> {
    type Output = u64;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> u64 {
        self.slots.count(simd, self.words, self.fingerprint)
    }
}
