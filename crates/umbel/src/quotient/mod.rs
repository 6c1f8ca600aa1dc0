//! Quotient filters: [`Quotient`], an exact multiset of fingerprints.
//!
//! A fingerprint is a number below S 2^r. Its upper part, the *quotient*, is the index of one of S
//! slots, its home; the lower r bits, the *remainder*, are stored at home or a little to the right
//! of it. Three more bits per slot record which remainder belongs to which quotient:
//!
//! ```text
//! The fingerprints (1, a), (1, b) and (3, c), each a quotient and a remainder:
//!
//! slot            0   1   2   3   4
//! remainder           a   b   c
//! occupied        .   1   .   1   .     some fingerprint has this quotient
//! continuation    .   .   1   .   .     not the first remainder of its quotient
//! shifted         .   .   1   .   .     not at home
//! ```
//!
//! Every fingerprint can be read back, so removing, merging, resizing and counting need no keys. A
//! key that is inserted twice takes two slots.
//!
//! ```
//! use umbel::Quotient;
//! let mut filter = Quotient::with_capacity(10_000, 0.001)?;
//! filter.insert("apple")?;
//! filter.insert("apple")?;
//! assert_eq!((filter.count("apple"), filter.len()), (2, 2));
//! filter.remove("apple");
//! assert!(filter.contains("apple"));
//! filter.remove("apple");
//! assert!(!filter.contains("apple") && filter.is_empty());
//!
//! // Twice the slots for the same fingerprints; the two can still be merged.
//! let mut larger = filter.resized(2 * filter.slots())?;
//! filter.insert("pear")?;
//! larger.union(&filter)?;
//! assert!(larger.contains("pear"));
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # When to use it
//!
//! Use it to remove keys, to count how often a key was inserted, to merge filters of different
//! sizes, or to grow a filter when its keys are no longer available. It takes (r + 3) / load bits
//! per key: 12.5 at 1 %, 16.3 at 0.1 %. A lookup reads two or three neighbouring cache lines. Out
//! of cache, a batch of lookups takes about ten times as long as in a blocked Bloom filter.
//! Insertions take longer as the table fills, since an insertion moves every slot up to the next
//! empty one.
//!
//! Remove only keys that were inserted: removing a non-member with the fingerprint of a member
//! would remove that member.
//!
//! # References
//!
//! * M. A. Bender et al. *Don't thrash: how to cache your hash on flash.* PVLDB 5(11), 2012.
//!   `Bender12`
//! * A. Pagh, R. Pagh and S. S. Rao. *An optimal Bloom filter replacement.* SODA 2005. `PPR05`
//! * J. G. Cleary. *Compact hash tables using bidirectional linear probing.* IEEE Transactions on
//!   Computers C-33(9), 1984. `Cleary84`
//! * P. Pandey, M. A. Bender, R. Johnson and R. Patro. *A general-purpose counting filter: making
//!   every bit count.* SIGMOD 2017. `PBJP17`

mod change;
mod combine;
mod kernels;
mod resize;
mod slots;
mod sorted;
#[cfg(test)]
mod tests;

pub use crate::sizing::quotient::Options;
pub use sorted::Fingerprints;

use crate::file::FormatError;
use crate::memory::{LINE_BYTES, Mover, Words};
use crate::methods::{
    absorb_methods, intersect_methods, overlap_methods, remove_methods, set_methods, structure_methods,
    try_insert_methods, union_methods,
};
use crate::sizing::estimate::{Cardinality, Shape};
use crate::sizing::{self, Given, MAX_BITS, QuotientParams, quotient as sizes};
use crate::spec::check_rate;
use crate::structure::{self, Head, Parts, Probe, SLOTS, small};
use crate::tile::{self, split_tile};
use crate::{
    Answers, Batch, Capabilities, Digest, Error, Filter, Hasher, Insert, Key, Kind, Plan, Remove, Removed,
    Result, Set, Spec, Stats, Structure, TILE,
};
use kernels::{ContainsDigest, Count, InsertTile, Inserted, RemoveOne};
use slots::{OCCUPIED, SHIFTED, Slots};
use sorted::Builder;

/// The number of blocks without an unshifted slot that a lookup passes in a mapped file before all
/// of the file is checked. At a load of 90 %, that many follow each other with a probability below
/// 1e-18; at 95 %, below 1e-4.
#[cfg(feature = "mmap")]
const MAX_STRETCH: usize = 128;

/// The remedy for a full filter.
const MAKE_ROOM: &str = "enlarge it (in the shell: `umbel resize`), or build it for more keys";

/// A quotient filter: the multiset of the fingerprints of its keys.
///
/// The memory depends only on the multiset, not on the order of insertions and removals. The filter
/// does not grow by itself: once 95 % of its slots are full, insertions are refused, and
/// [`Quotient::grow`] makes room. Only a [union](Quotient::union) takes the slots it needs.
pub struct Quotient {
    slots: Slots,
    words: Words,
    len: u64,
    head: Head,
}

impl Quotient {
    /// Creates an empty filter for `capacity` keys, counting repeated ones, with a false-positive
    /// rate of `rate`, hashed with the fast hash.
    ///
    /// # Errors
    ///
    /// Returns an error if `capacity` or `rate` is out of range, or if there is not enough memory.
    pub fn with_capacity(capacity: u64, rate: f64) -> Result<Quotient> {
        Quotient::build(&Spec::new(capacity, rate)?)
    }

    /// Creates an empty filter with this many slots, a multiple of 64, and remainders of
    /// `remainder_bits` bits.
    ///
    /// # Errors
    ///
    /// Returns an error if a number is out of range, or if there is not enough memory.
    pub fn with_slots(slots: u64, remainder_bits: u32, hasher: Hasher) -> Result<Quotient> {
        Quotient::with_head(Slots::new(slots, remainder_bits)?, Head::new(hasher))
    }

    fn with_head(slots: Slots, head: Head) -> Result<Quotient> {
        Ok(Quotient { slots, words: Words::zeroed(slots.lines())?, len: 0, head })
    }

    /// Returns the number of home slots (S).
    pub fn slots(&self) -> u64 {
        self.slots.homes()
    }

    /// Returns the number of bits in a remainder (r).
    pub fn remainder_bits(&self) -> u32 {
        self.slots.remainder_bits()
    }

    /// Returns the number of stored fingerprints, counting repeated ones.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the filter is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the fraction of slots that are full.
    pub fn load_factor(&self) -> f64 {
        self.len as f64 / self.slots() as f64
    }

    /// Returns the fingerprint of a digest: a number below S 2^r.
    pub fn fingerprint(&self, digest: Digest) -> u64 {
        self.slots.fingerprint(digest)
    }

    /// Iterates over all fingerprints in ascending order.
    pub fn fingerprints(&self) -> Fingerprints<'_> {
        Fingerprints::new(self.slots, self.words.words())
    }

    /// Returns how often `key` was inserted and not removed. The result is too high with the
    /// probability of a false positive.
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.count_digest(key.digest(self.hasher()))
    }

    /// Returns how often the fingerprint of a digest is stored.
    pub fn count_digest(&self, digest: Digest) -> u64 {
        let (slots, words) = (&self.slots, self.words.words());
        self.head.level.run(Count { slots, words, fingerprint: self.fingerprint(digest) })
    }

    /// Returns the memory.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Returns whether lookups in `range`, one of the parts of `part` words in which a file is
    /// verified, take much longer than in a filter of random fingerprints. Then the whole filter
    /// must be checked, since it is either damaged or full of copies of one key.
    #[cfg(feature = "mmap")]
    pub(crate) fn is_crowded(&self, range: std::ops::Range<usize>, part: usize) -> bool {
        // Half of a part, so that a stretch over several parts is noticed in one of them.
        let most = MAX_STRETCH.min(part / self.slots.block_words() as usize / 2);
        self.slots.is_crowded(self.words.words(), range, most)
    }

    /// Returns the largest number of fingerprints that the filter accepts.
    fn max_len(&self) -> u64 {
        sizes::max_keys(self.slots())
    }

    /// Returns a filter with this shape and hash, filled with `len` fingerprints in ascending
    /// order.
    fn filled(&self, slots: Slots, len: u64, fingerprints: impl Iterator<Item = u64>) -> Result<Quotient> {
        let mut filter = Quotient::with_head(slots, self.head.emptied())?;
        if len > filter.max_len() {
            return Err(filter.full(len));
        }
        let mut builder = Builder::new(slots, filter.words.words_mut());
        let mut pushed = 0;
        for fingerprint in fingerprints {
            if builder.push(fingerprint).is_none() {
                return Err(filter.full(len));
            }
            pushed += 1;
        }
        filter.len = pushed;
        Ok(filter)
    }

    /// Returns the error of a filter that would have to hold `len` fingerprints.
    fn full(&self, len: u64) -> Error {
        let (slots, most) = (self.slots(), self.max_len());
        let why = if len > most {
            format!("at most {most} of its {slots} slots can be filled; {MAKE_ROOM}")
        } else {
            format!(
                "too many keys share the last slots, as happens when one key is inserted very often; {MAKE_ROOM}"
            )
        };
        Error::Full { kind: Kind::Quotient, why }
    }

    /// Inserts at most 64 digests, and stops at the first that is refused.
    #[inline(always)]
    fn insert_some(&mut self, digests: &[Digest]) -> Result<u64> {
        let room = self.max_len().saturating_sub(self.len);
        let words = self.words.words_mut();
        let Inserted { count, new } =
            self.head.level.run(InsertTile { slots: &self.slots, words, digests, room });
        self.len += count as u64;
        self.head.count_inserted(count);
        if count < digests.len() { Err(self.full(self.len + 1)) } else { Ok(new) }
    }

    fn params_of(spec: &Spec) -> Result<QuotientParams> {
        let options = &spec.options().quotient;
        let Given { n, p, m, k } = spec.given();
        if let Some(k) = k.filter(|k| *k != 1) {
            return Err(Error::parameter("k", k, "1 or to be left open: a key has one fingerprint"));
        }
        let params = match (n, p, m) {
            (Some(n), Some(p), None) => QuotientParams::for_capacity(n, p, options)?,
            (Some(n), _, Some(m)) => QuotientParams::for_bits(m, n, options)?,
            (None, Some(p), Some(m)) => QuotientParams::for_bits_and_rate(m, p, options)?,
            _ => {
                let needs = "two of n, p and m: a quotient filter follows from two of keys, rate and size";
                return Err(Error::parameter("n, p, m", "one of them", needs));
            }
        };
        check_rate(&spec.given(), params.rate, params.capacity, params.bits, None)?;
        Ok(params)
    }

    fn planned(spec: &Spec) -> Result<(Slots, Plan)> {
        let params = Quotient::params_of(spec)?;
        let slots = Slots::new(params.slots, params.remainder_bits)?;
        let plan = spec.finish(Plan {
            kind: Kind::Quotient,
            capacity: params.capacity,
            bits: slots.bits(),
            stored_bits: slots.bits(),
            bytes: slots.lines() * LINE_BYTES as u64,
            hashes: 1,
            // The metadata and remainders of the key's block, and the metadata of the block before;
            // rarely more.
            lines_touched: 3,
            rate_asked: spec.given().p.unwrap_or(params.rate),
            rate: params.rate,
        })?;
        Ok((slots, plan))
    }
}

structure_methods!([] Quotient);
set_methods!([] Quotient);
try_insert_methods!([] Quotient);
remove_methods!([] Quotient);
union_methods!([] Quotient);
intersect_methods!([] Quotient);
overlap_methods!([] Quotient);
absorb_methods!([] Quotient);

impl structure::sealed::Sealed for Quotient {}

impl Structure for Quotient {
    const KIND: Kind = Kind::Quotient;

    const CAPABILITIES: Capabilities = Capabilities {
        remove: true,
        union: true,
        intersect: true,
        multiset: true,
        absorb: true,
        ..Capabilities::NOTHING
    };

    fn plan(spec: &Spec) -> Result<Plan> {
        Ok(Quotient::planned(spec)?.1)
    }

    fn predicted_rate(&self, n: u64) -> Result<f64> {
        sizing::quotient::rate(n, self.slots(), self.remainder_bits())
    }

    fn try_clone(&self) -> Result<Quotient> {
        Ok(Quotient { words: self.words.try_clone()?, head: self.head.clone(), ..*self })
    }

    /// Reports whole blocks: the block of the key's slot, the blocks back to the start of its
    /// cluster, and those up to its end.
    fn trace(&self, digest: Digest, probe: &mut dyn FnMut(Probe) -> Result<()>) -> Result<bool> {
        let (slots, words, fingerprint) = (&self.slots, self.words.words(), self.fingerprint(digest));
        let mut name = |block| probe(Probe { section: 0, bits: slots.block_bits(block) });
        let (quotient, _) = slots.split(fingerprint);
        let home = quotient / sizes::BLOCK;
        name(home)?;
        if !slots.bit(words, OCCUPIED, quotient) {
            return Ok(false);
        }
        let (mut block, mut upto) = (home, quotient % sizes::BLOCK);
        while !words[slots.row(block, SHIFTED)] << (63 - upto) == 0 && block > 0 {
            (block, upto) = (block - 1, 63);
            name(block)?;
        }
        block = home;
        while slots.used(words, block) >> 63 == 1 && (block + 1) * sizes::BLOCK < slots.all() {
            block += 1;
            name(block)?;
            if words[slots.row(block, SHIFTED)] != !0 {
                break;
            }
        }
        Ok(self.contains_digest(digest))
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn head_mut(&mut self) -> &mut Head {
        &mut self.head
    }

    fn params(&self) -> Vec<u64> {
        vec![self.slots(), self.remainder_bits().into(), self.len]
    }

    fn sections(&self) -> Vec<(u32, &Words)> {
        vec![(SLOTS, &self.words)]
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.words.relocate(mover);
    }

    fn restore(mut parts: Parts) -> Result<Quotient> {
        let [slots, remainder_bits, len] = parts.params()?;
        let slots = Slots::new(slots, small(remainder_bits))?;
        if len > sizes::max_keys(slots.homes()) {
            let what = format!("it claims {len} keys in {} slots", slots.homes());
            return Err(FormatError::invalid(what).into());
        }
        let words = parts.section(SLOTS, slots.lines())?;
        Ok(Quotient { slots, words, len, head: parts.finish()? })
    }

    fn check_contents(&self) -> Result<(), FormatError> {
        self.slots.check(&self.words, self.len)
    }
}

impl Set for Quotient {
    fn build(spec: &Spec) -> Result<Quotient> {
        let (slots, plan) = Quotient::planned(spec)?;
        Quotient::with_head(slots, Head::planned(spec, &plan))
    }

    fn clear(&mut self) {
        self.words.words_mut().fill(0);
        self.len = 0;
        self.head = self.head.emptied();
    }

    fn try_clone_empty(&self) -> Result<Quotient> {
        Quotient::with_head(self.slots, self.head.emptied())
    }

    fn absorb(&mut self, part: &Quotient) -> Result<()> {
        self.add(part)
    }

    fn resized_for(&self, capacity: u64) -> Result<Quotient> {
        Quotient::resized_for(self, capacity)
    }

    fn remove_if_able(&mut self, digest: Digest) -> Result<Removed> {
        Ok(self.remove_digest(digest))
    }
}

impl Filter for Quotient {
    fn kind(&self) -> Kind {
        Kind::Quotient
    }

    #[inline(always)]
    fn hasher(&self) -> &Hasher {
        &self.head.hasher
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        self.head.level.run(ContainsDigest { slots: &self.slots, words: self.words.words(), digest })
    }

    fn contains_tile(&self, tile: &[Digest]) -> u64 {
        tile::contains_tile(self.head.level, &self.slots, self.words.words(), tile)
    }

    fn stats(&self) -> Stats {
        let distinct = self.distinct();
        let estimate = self.shape().cardinality(distinct).unwrap_or(Cardinality::Saturated);
        Stats {
            cells: self.slots(),
            used_cells: self.len,
            hashes: 1,
            bits: self.slots.bits(),
            bytes: self.slots.lines() * LINE_BYTES as u64,
            // Equal fingerprints belong to one key or to several.
            estimate: estimate.within(distinct, Some(self.len)),
            rate_now: distinct as f64 / self.slots.range() as f64,
            details: vec![("distinct fingerprints", distinct as f64), ("load", self.load_factor())],
            ..Stats::from_structure(self)
        }
    }

    #[inline]
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_digest(key.digest(self.hasher()))
    }

    fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        tile::contains_batch(self.head.level, &self.slots, self.words.words(), &self.head.hasher, keys)
    }
}

impl Insert for Quotient {
    type Error = Error;

    /// Refused if 95 % of the slots are full.
    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool> {
        Ok(self.insert_some(&[digest])? == 1)
    }

    fn insert_tile(&mut self, tile: &[Digest]) -> Result<()> {
        tile.chunks(TILE).try_for_each(|tile| self.insert_some(tile).map(drop))
    }

    fn insert_tile_new(&mut self, tile: &[Digest]) -> Result<u64> {
        let (tile, rest) = split_tile(tile);
        let new = self.insert_some(tile)?;
        self.insert_tile(rest)?;
        Ok(new)
    }
}

impl Remove for Quotient {
    fn remove_digest(&mut self, digest: Digest) -> Removed {
        let fingerprint = self.fingerprint(digest);
        let (slots, words) = (&self.slots, self.words.words_mut());
        if !self.head.level.run(RemoveOne { slots, words, fingerprint }) {
            return Removed::NotPresent;
        }
        self.len = self.len.saturating_sub(1);
        self.head.count_removed();
        Removed::Removed
    }
}

impl Quotient {
    /// Returns the number of different fingerprints.
    fn distinct(&self) -> u64 {
        let mut last = None;
        self.fingerprints().filter(|fingerprint| last.replace(*fingerprint) != Some(*fingerprint)).count()
            as u64
    }

    /// Returns the filter as the estimates see it: S 2^r bits, of which a key sets one. Beyond the
    /// largest number of bits that a filter can have, so few fingerprints coincide that the
    /// difference does not matter.
    fn shape(&self) -> Shape {
        Shape::Standard { bits: self.slots.range().min(MAX_BITS), hashes: 1 }
    }
}
