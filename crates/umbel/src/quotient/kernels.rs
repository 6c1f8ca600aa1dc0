//! The loops over tiles, compiled once per instruction set.
//!
//! A batch is worked tile by tile: the next tile is hashed and its lines are asked for while the current one is tested.

use super::slots::{OCCUPIED, Slots};
use crate::arch::{Kernel, Simd, prefetch};
use crate::hash::Ends;
use crate::sizing::quotient::BLOCK;
use crate::tile::{TILE, low_bits, tiles};
use crate::{Answers, Batch, Digest, Hasher};

/// The fingerprints of a tile; those beyond its length are 0.
type Tile = [u64; TILE];

impl Slots {
    #[inline(always)]
    fn fingerprints_of(&self, digests: &[Digest], tile: &mut Tile) {
        *tile = [0; TILE];
        for (fingerprint, digest) in tile.iter_mut().zip(digests) {
            *fingerprint = self.fingerprint(*digest);
        }
    }

    /// Asks for all that a lookup reads, as a rule.
    #[inline(always)]
    fn prefetch(&self, words: &[u64], fingerprint: u64) {
        let (quotient, _) = self.split(fingerprint);
        prefetch(words, self.block_start(quotient / BLOCK));
        self.prefetch_around(words, quotient);
    }

    /// The answers of a tile, while the next one is on its way. Whether there is a run at all is asked for all keys first:
    /// no branch depends on it, and four in ten are done.
    #[inline(always)]
    fn contains_tile<S: Simd>(&self, simd: S, words: &[u64], now: &Tile, next: &Tile) -> u64 {
        let mut runs = 0;
        for (i, (now, next)) in now.iter().zip(next).enumerate() {
            self.prefetch(words, *next);
            runs |= u64::from(self.bit(words, OCCUPIED, self.split(*now).0)) << i;
        }
        let mut answers = 0;
        while runs != 0 {
            let i = runs.trailing_zeros() as usize;
            let (quotient, remainder) = self.split(now[i]);
            answers |= u64::from(self.run_contains(simd, words, quotient, remainder)) << i;
            runs &= runs - 1;
        }
        answers
    }
}

/// One digest.
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

/// At most 64 digests.
pub(super) struct ContainsTile<'a> {
    pub slots: &'a Slots,
    pub words: &'a [u64],
    pub digests: &'a [Digest],
}

impl Kernel for ContainsTile<'_> {
    type Output = u64;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> u64 {
        let ContainsTile { slots, words, digests } = self;
        let mut tile = [0; TILE];
        slots.fingerprints_of(digests, &mut tile);
        for fingerprint in &tile[..digests.len()] {
            slots.prefetch(words, *fingerprint);
        }
        slots.contains_tile(simd, words, &tile, &tile) & low_bits(digests.len())
    }
}

/// A batch of keys.
pub(super) struct ContainsBatch<'a, B: ?Sized> {
    pub slots: &'a Slots,
    pub words: &'a [u64],
    pub hasher: &'a Hasher,
    pub keys: &'a B,
}

impl<B: Batch + ?Sized> Kernel for ContainsBatch<'_, B> {
    type Output = Answers;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Answers {
        let ContainsBatch { slots, words, hasher, keys } = self;
        let mut answers = Answers::with_capacity(keys.len());
        let mut digests = [Digest::default(); TILE];
        let mut ends = Ends::EMPTY;
        let (mut now, mut next) = ([0; TILE], [0; TILE]);
        let mut len = 0;
        for range in tiles(keys.len()) {
            let upcoming = range.len();
            let digests = &mut digests[..upcoming];
            keys.digest_tile_with(simd, range, hasher, digests, &mut ends);
            slots.fingerprints_of(digests, &mut next);
            if len > 0 {
                answers.push_tile(slots.contains_tile(simd, words, &now, &next) & low_bits(len), len);
            } else {
                next.iter().for_each(|fingerprint| slots.prefetch(words, *fingerprint));
            }
            (now, len) = (next, upcoming);
        }
        if len > 0 {
            answers.push_tile(slots.contains_tile(simd, words, &now, &now) & low_bits(len), len);
        }
        answers
    }
}

/// Inserts at most 64 digests in order, and no more than there is room for. It stops early when one has no place.
pub(super) struct InsertTile<'a> {
    pub slots: &'a Slots,
    pub words: &'a mut [u64],
    pub digests: &'a [Digest],
    pub room: u64,
}

/// What has become of a tile.
pub(super) struct Inserted {
    /// How many are in.
    pub count: usize,
    /// Which of them were new.
    pub new: u64,
}

impl Kernel for InsertTile<'_> {
    type Output = Inserted;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Inserted {
        let InsertTile { slots, words, digests, room } = self;
        let mut tile = [0; TILE];
        slots.fingerprints_of(digests, &mut tile);
        let tile = &tile[..digests.len().min(TILE)];
        tile.iter().for_each(|fingerprint| slots.prefetch(words, *fingerprint));
        let mut inserted = Inserted { count: 0, new: 0 };
        for fingerprint in tile.iter().take(usize::try_from(room).unwrap_or(usize::MAX)) {
            let Some(found) = slots.insert(simd, words, *fingerprint) else { break };
            inserted.new |= u64::from(!found) << inserted.count;
            inserted.count += 1;
        }
        inserted
    }
}

/// Takes a fingerprint out, once; whether it was there.
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

/// How often a fingerprint is there.
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
