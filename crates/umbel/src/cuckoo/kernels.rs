//! Lookups by the tile: both buckets of every key are fetched ahead, those of the next tile while this one is tested.

use super::codes;
use super::table::{Place, Table, low_bits};
use crate::arch::{Kernel, Simd, prefetch};
use crate::hash::Ends;
use crate::sizing::cuckoo::Form;
use crate::tile::{self, TILE, tiles};
use crate::{Answers, Batch, Digest, Hasher};

/// Whether a bucket holds a fingerprint.
trait Search: Copy {
    fn finds(self, words: &[u64], bucket: u64, fingerprint: u32) -> bool;
}

/// In plain buckets, all slots of a word at once; a bucket is `N` words of equally many slots.
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
            // The slots with this fingerprint become 0, and only if there is one a borrow reaches the top of a slot
            // whose own top bit is clear.
            let slots = self.table.part::<N>(words, bucket, part) ^ pattern;
            found |=
                slots.wrapping_sub(self.ones) & !slots & self.ones << (self.table.fingerprint_bits() - 1);
        }
        found != 0
    }
}

/// In semi-sorted buckets of at most 64 bits.
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

/// In longer semi-sorted buckets, slot by slot.
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

/// Does something with the fastest search there is for a table.
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
            // At most eight slots of 32 bits.
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

/// Whether one of the two buckets holds the fingerprint.
#[inline(always)]
pub(super) fn finds(table: Table, words: &[u64], place: &Place) -> bool {
    with_search!(table, search => {
        let [first, second] = place.buckets;
        search.finds(words, first, place.fingerprint) || search.finds(words, second, place.fingerprint)
    })
}

/// The places of a tile.
#[derive(Clone)]
pub(super) struct Stage {
    places: [Place; TILE],
    len: usize,
}

impl Stage {
    const EMPTY: Stage = Stage { places: [Place { buckets: [0; 2], fingerprint: 0 }; TILE], len: 0 };

    /// At most 64 digests.
    #[inline(always)]
    pub fn of(table: Table, digests: &[Digest]) -> Stage {
        let mut stage = Stage::EMPTY;
        stage.set(table, digests);
        stage
    }

    #[inline(always)]
    fn set(&mut self, table: Table, digests: &[Digest]) {
        self.len = digests.len();
        for (place, digest) in self.places.iter_mut().zip(digests) {
            *place = table.place(*digest);
        }
    }

    #[inline(always)]
    pub fn places(&self) -> &[Place] {
        &self.places[..self.len]
    }

    /// Asks the memory for all buckets.
    #[inline(always)]
    pub fn prefetch(&self, table: Table, words: &[u64]) {
        self.places().iter().for_each(|place| fetch(table, words, place));
    }

    /// The answers of this tile; with each key, the memory is asked for one of the next.
    #[inline(always)]
    fn answers<S: Search>(&self, table: Table, search: S, words: &[u64], next: &Stage) -> u64 {
        let mut answers = 0;
        for i in 0..TILE {
            fetch(table, words, &next.places[i]);
            let Place { buckets: [first, second], fingerprint } = self.places[i];
            // Without a branch that nobody can foresee.
            let found = search.finds(words, first, fingerprint) | search.finds(words, second, fingerprint);
            answers |= u64::from(found) << i;
        }
        answers & tile::low_bits(self.len)
    }

    /// Which of the places are that of the fingerprint that has none.
    #[inline(always)]
    fn matches(&self, victim: &Option<Place>) -> u64 {
        let Some(victim) = victim else { return 0 };
        let same = |(i, place): (usize, &Place)| u64::from(victim.is_same(place)) << i;
        self.places().iter().enumerate().map(same).fold(0, |all, one| all | one)
    }
}

/// Asks the memory for both buckets, which may each lie in two lines.
#[inline(always)]
fn fetch(table: Table, words: &[u64], place: &Place) {
    for bucket in place.buckets {
        let bits = table.range(bucket);
        prefetch(words, (bits.start / 64) as usize);
        prefetch(words, ((bits.end - 1) / 64) as usize);
    }
}

/// One tile of digests, at most 64.
pub(super) struct ContainsTile<'a> {
    pub table: Table,
    pub words: &'a [u64],
    pub victim: Option<Place>,
    pub tile: &'a [Digest],
}

impl Kernel for ContainsTile<'_> {
    type Output = u64;
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> u64 {
        let ContainsTile { table, words, victim, tile } = self;
        let stage = Stage::of(table, tile);
        stage.prefetch(table, words);
        let answers = with_search!(table, search => stage.answers(table, search, words, &stage));
        answers | stage.matches(&victim)
    }
}

/// A batch of keys.
pub(super) struct ContainsBatch<'a, B: ?Sized> {
    pub table: Table,
    pub words: &'a [u64],
    pub victim: Option<Place>,
    pub hasher: &'a Hasher,
    pub keys: &'a B,
}

impl<B: Batch + ?Sized> Kernel for ContainsBatch<'_, B> {
    type Output = Answers;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Answers {
        with_search!(self.table, search => self.answers(simd, search))
    }
}

impl<B: Batch + ?Sized> ContainsBatch<'_, B> {
    #[inline(always)]
    fn answers<S: Simd, T: Search>(self, simd: S, search: T) -> Answers {
        let ContainsBatch { table, words, victim, hasher, keys } = self;
        let mut answers = Answers::with_capacity(keys.len());
        let (mut tile, mut ends) = ([Digest::default(); TILE], Ends::EMPTY);
        let (mut now, mut next) = (&mut Stage::EMPTY.clone(), &mut Stage::EMPTY.clone());
        for range in tiles(keys.len()) {
            let tile = &mut tile[..range.len()];
            keys.digest_tile_with(simd, range, hasher, tile, &mut ends);
            next.set(table, tile);
            if now.len > 0 {
                answers.push_tile(now.answers(table, search, words, next) | now.matches(&victim), now.len);
            } else {
                next.prefetch(table, words);
            }
            std::mem::swap(&mut now, &mut next);
        }
        if now.len > 0 {
            answers.push_tile(now.answers(table, search, words, now) | now.matches(&victim), now.len);
        }
        answers
    }
}
