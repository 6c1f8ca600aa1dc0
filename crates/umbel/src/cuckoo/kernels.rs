//! Lookups in both buckets of a key: the fastest search for each form of bucket, for single keys
//! and for tiles of keys.

use super::table::{Candidates, Table, low_bits};
use super::{Cuckoo, codes};
use crate::arch::{Simd, prefetch};
use crate::sizing::cuckoo::Form;
use crate::tile::{self, Lookup, Pair, Places, TILE, Tile, Tiled};
use crate::{Answers, Batch, Digest};

/// A way to search a bucket for a fingerprint.
trait Search: Copy {
    fn finds(self, words: &[u64], bucket: u64, fingerprint: u32) -> bool;
}

/// Searches plain buckets, all slots of a word at once; a bucket is `N` words with equally many
/// slots.
#[derive(Clone, Copy)]
struct InWords<const N: usize> {
    table: Table,
    /// The lowest bit of each slot of a word.
    ones: u64,
}

impl<const N: usize> InWords<N> {
    #[inline(always)]
    fn new(table: Table) -> InWords<N> {
        let slots = 0..table.slots() / N as u32;
        InWords { table, ones: slots.fold(0, |ones, slot| ones | 1 << (slot * table.fingerprint_bits())) }
    }
}

impl<const N: usize> Search for InWords<N> {
    #[inline(always)]
    fn finds(self, words: &[u64], bucket: u64, fingerprint: u32) -> bool {
        let pattern = self.ones.wrapping_mul(fingerprint.into());
        let mut found = 0;
        for part in 0..N {
            // A slot with this fingerprint becomes 0. Subtracting 1 from every slot sets a top bit
            // that was clear only through a borrow, and the first borrow comes from a slot that is
            // 0.
            let slots = self.table.part::<N>(words, bucket, part) ^ pattern;
            found |=
                slots.wrapping_sub(self.ones) & !slots & self.ones << (self.table.fingerprint_bits() - 1);
        }
        found != 0
    }
}

/// Searches semi-sorted buckets of at most 64 bits.
#[derive(Clone, Copy)]
struct InCodedWord {
    table: Table,
}

impl Search for InCodedWord {
    #[inline(always)]
    fn finds(self, words: &[u64], bucket: u64, fingerprint: u32) -> bool {
        let word = self.table.part::<1>(words, bucket, 0);
        let (nibbles, rest) = (u64::from(codes::decode(word)), self.table.fingerprint_bits() - 4);
        let (high, low) = (u64::from(fingerprint) >> rest, u64::from(fingerprint) & low_bits(rest));
        let mut found = false;
        for slot in 0..4 {
            let differs = (nibbles >> (4 * slot) & 15 ^ high)
                | (word >> codes::BITS >> (slot * rest) & low_bits(rest) ^ low);
            found |= differs == 0;
        }
        found
    }
}

/// Searches longer semi-sorted buckets, slot by slot.
#[derive(Clone, Copy)]
struct BySlot {
    table: Table,
}

impl Search for BySlot {
    #[inline(always)]
    fn finds(self, words: &[u64], bucket: u64, fingerprint: u32) -> bool {
        self.table.bucket(words, bucket).contains(&fingerprint)
    }
}

/// Runs `$action` with the fastest search for a table.
macro_rules! with_search {
    ($table:expr, $search:ident => $action:expr) => {{
        let table = $table;
        match (table.form(), table.bucket_bits()) {
            (Form::Plain, 0..=64) => {
                let $search = InWords::<1>::new(table);
                $action
            }
            (Form::Plain, 65..=128) => {
                let $search = InWords::<2>::new(table);
                $action
            }
            // At most eight slots of 32 bits each.
            (Form::Plain, _) => {
                let $search = InWords::<4>::new(table);
                $action
            }
            (Form::SemiSorted, 0..=64) => {
                let $search = InCodedWord { table };
                $action
            }
            (Form::SemiSorted, _) => {
                let $search = BySlot { table };
                $action
            }
        }
    }};
}

/// Returns whether one of the two buckets holds the fingerprint.
#[inline(always)]
pub(super) fn finds(table: Table, words: &[u64], place: &Candidates) -> bool {
    with_search!(table, search => {
        let [first, second] = place.buckets;
        search.finds(words, first, place.fingerprint) || search.finds(words, second, place.fingerprint)
    })
}

/// A table for lookups by tile.
#[derive(Clone, Copy)]
struct Buckets<T> {
    table: Table,
    search: T,
    /// The fingerprint that has no slot in the table.
    victim: Option<Candidates>,
}

impl Places for [Candidates; TILE] {
    const EMPTY: [Candidates; TILE] = [Candidates { buckets: [0; 2], fingerprint: 0 }; TILE];
}

impl<T: Search> Tiled for Buckets<T> {
    type Places = [Candidates; TILE];

    #[inline(always)]
    fn places(&self, tile: &Tile, places: &mut [Candidates; TILE]) {
        for (place, digest) in places.iter_mut().zip(tile) {
            *place = self.table.place(*digest);
        }
    }
}

impl<T: Search> Lookup for Buckets<T> {
    type Memory = [u64];

    #[inline(always)]
    fn prefetch(&self, words: &[u64], places: &[Candidates; TILE]) {
        places.iter().for_each(|place| prefetch_buckets(self.table, words, place));
    }

    #[inline(always)]
    fn contains_tile<S: Simd>(&self, _: S, words: &[u64], _: &Tile, at: Pair<'_, [Candidates; TILE]>) -> u64 {
        let mut answers = 0;
        for i in 0..TILE {
            prefetch_buckets(self.table, words, &at.next[i]);
            let Candidates { buckets: [first, second], fingerprint } = at.now[i];
            // Search both buckets, since a branch in between would be unpredictable.
            let found =
                self.search.finds(words, first, fingerprint) | self.search.finds(words, second, fingerprint);
            answers |= u64::from(found) << i;
        }
        if let Some(victim) = &self.victim {
            for (i, place) in at.now.iter().enumerate() {
                answers |= u64::from(victim.is_same(place)) << i;
            }
        }
        answers
    }
}

/// Prefetches both buckets of a key. A bucket may span two cache lines.
#[inline(always)]
pub(super) fn prefetch_buckets(table: Table, words: &[u64], place: &Candidates) {
    for bucket in place.buckets {
        let bits = table.range(bucket);
        prefetch(words, (bits.start / 64) as usize);
        prefetch(words, ((bits.end - 1) / 64) as usize);
    }
}

impl Cuckoo {
    /// Looks up as many as 64 digests.
    pub(super) fn find_tile(&self, tile: &[Digest]) -> u64 {
        let Cuckoo { table, victim, .. } = *self;
        with_search!(table, search => {
            let buckets = Buckets { table, search, victim };
            tile::contains_tile(self.head.level, &buckets, self.words.words(), tile)
        })
    }

    /// Looks up a batch of keys.
    pub(super) fn find_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        let Cuckoo { table, victim, .. } = *self;
        with_search!(table, search => {
            let buckets = Buckets { table, search, victim };
            tile::contains_batch(self.head.level, &buckets, self.words.words(), &self.head.hasher, keys)
        })
    }
}
