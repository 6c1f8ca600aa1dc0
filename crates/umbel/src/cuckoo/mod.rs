//! Cuckoo filters: [`Cuckoo`], a table of fingerprints from which keys can be removed.
//!
//! A key is stored as a fingerprint of a few bits in one of two buckets, each with a few slots.
//! When both buckets are full, one of their fingerprints moves to its own other bucket to make
//! room, and so on.
//!
//! ```
//! use umbel::{Cuckoo, Removed};
//! let mut filter = Cuckoo::with_capacity(10_000, 0.001)?;
//! filter.insert("apple")?;
//! assert!(filter.contains("apple"));
//! assert_eq!(filter.remove("apple"), Removed::Removed);
//! assert!(!filter.contains("apple") && filter.is_empty());
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # When to use it
//!
//! Use it to remove keys that are inserted once each, in about the memory of a Bloom filter: 10.6
//! bits per key at 1 %, 13.8 at 0.1 %, and one bit per slot less when semi-sorted. Below a rate of
//! about 0.4 % (2.5 % semi-sorted) it is smaller than a standard Bloom filter.
//!
//! A lookup reads two buckets, in two to four cache lines. Out of cache, a batch of lookups takes
//! about five times as long as in a blocked Bloom filter. Insertions are slow in a nearly full
//! table, where many fingerprints have to move. To store keys many times, use a
//! [quotient](crate::quotient) filter.
//!
//! # Duplicates, and a full table
//!
//! The filter is a multiset: a key that is inserted twice is stored twice and has to be removed
//! twice. Its two buckets have room for 2b copies, where b is the number of slots in a bucket (8
//! copies by default); the next copy is refused with [`Error::Full`]. A key that fits nowhere is
//! refused, too. With distinct keys this happens only beyond the capacity. Many copies of many keys
//! fill the table earlier, because copies crowd the same buckets. A refused insertion never loses
//! another key.
//!
//! Remove only keys that were inserted: a non-member with the same fingerprint and bucket as a
//! member would remove that member.
//!
//! # Options
//!
//! The [builder](Cuckoo::builder) chooses how fingerprints are stored:
//!
//! ```
//! use umbel::Cuckoo;
//! use umbel::cuckoo::Form;
//! let plain = Cuckoo::builder().capacity(1_000_000).rate(0.001);
//! let sorted = plain.clone().form(Form::SemiSorted).build()?.stats();
//! let plain = plain.build()?.stats();
//! assert_eq!(plain.bits - sorted.bits, plain.cells, "one bit less per slot");
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # References
//!
//! * B. Fan, D. G. Andersen, M. Kaminsky and M. D. Mitzenmacher. *Cuckoo filter: practically better
//!   than Bloom.* CoNEXT 2014. `FAKM14`
//! * R. Pagh and F. F. Rodler. *Cuckoo hashing.* Journal of Algorithms 51(2), 2004. `PR04`

mod codes;
mod combine;
mod kernels;
mod table;
#[cfg(test)]
mod tests;

pub use crate::sizing::cuckoo::{Form, Options};
pub use table::Table;

use crate::file::FormatError;
use crate::hash::reduce;
use crate::memory::{LINE_BYTES, Mover, Words};
use crate::methods::{
    intersect_methods, remove_methods, set_methods, structure_methods, try_insert_methods, union_methods,
};
use crate::sizing::cuckoo::rate_of;
use crate::sizing::{Cardinality, CuckooParams, Given, MAX_BITS, Shape};
use crate::spec::check_rate;
use crate::structure::{self, FINGERPRINTS, Head, Parts, Probe, small};
use crate::{
    Answers, Batch, Capabilities, Digest, Error, Filter, Hasher, Insert, Key, Kind, Plan, Remove, Removed,
    Result, Set, Spec, Stats, Structure, TILE,
};
use table::Candidates;

/// The largest number of fingerprints that move to make room for a new one.
const MAX_KICKS: u32 = 500;

/// A cuckoo filter; see the [module documentation](self).
pub struct Cuckoo {
    table: Table,
    words: Words,
    /// The fingerprint that found no free slot, if there is one. While it waits here, only keys
    /// with a free slot in one of their buckets are accepted.
    victim: Option<Candidates>,
    head: Head,
}

impl Cuckoo {
    /// Creates an empty filter for `capacity` keys with a false-positive rate of at most `rate`,
    /// hashed with the fast hash.
    ///
    /// # Errors
    ///
    /// Returns an error if `capacity` or `rate` is out of range, or if there is not enough memory.
    pub fn with_capacity(capacity: u64, rate: f64) -> Result<Cuckoo> {
        Cuckoo::build(&Spec::new(capacity, rate)?)
    }

    /// Creates an empty filter of exactly this shape.
    ///
    /// # Errors
    ///
    /// Returns an error if there is not enough memory.
    pub fn with_table(table: Table, hasher: Hasher) -> Result<Cuckoo> {
        Cuckoo::with_head(table, Head::new(hasher))
    }

    fn with_head(table: Table, head: Head) -> Result<Cuckoo> {
        Ok(Cuckoo { table, words: Words::zeroed(table.lines())?, victim: None, head })
    }

    /// Returns the shape of the table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Returns the memory.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Returns the exact number of stored keys; a key counts as often as it was inserted.
    pub fn len(&self) -> u64 {
        self.head.inserted.unwrap_or_default()
    }

    /// Returns whether the filter holds no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how often `key` was inserted, plus the insertions of all other keys with the same
    /// fingerprint and buckets.
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u32 {
        self.count_digest(key.digest(self.hasher()))
    }

    /// Returns how often the key with this digest was inserted, plus the insertions of all other
    /// keys with the same fingerprint and buckets.
    pub fn count_digest(&self, digest: Digest) -> u32 {
        self.count_place(&self.table.place(digest))
    }

    /// Inserts a key as [`insert_digest`](Insert::insert_digest) does, but moves at most `kicks`
    /// fingerprints to make room for it. With 0, the key is accepted only if one of its buckets has
    /// a free slot.
    ///
    /// # Errors
    ///
    /// Returns an error, and changes nothing, if there is no room for the key or for another copy
    /// of it.
    pub fn insert_digest_within(&mut self, digest: Digest, kicks: u32) -> Result<bool> {
        self.put(self.table.place(digest), kicks)
    }

    #[inline(always)]
    fn count_place(&self, place: &Candidates) -> u32 {
        self.table.count(self.words.words(), place) + u32::from(self.is_victim(place))
    }

    #[inline(always)]
    fn is_victim(&self, place: &Candidates) -> bool {
        self.victim.as_ref().is_some_and(|victim| victim.is_same(place))
    }

    /// Iterates over all entries as pairs of bucket and fingerprint.
    fn entries(&self) -> impl Iterator<Item = (u64, u32)> {
        let victim = self.victim.map(|victim| (victim.buckets[0], victim.fingerprint));
        self.table.entries(self.words.words()).chain(victim)
    }

    /// Inserts a fingerprint. Returns `true` if no equal one was there.
    #[inline(always)]
    fn put(&mut self, place: Candidates, kicks: u32) -> Result<bool> {
        let copies = self.count_place(&place);
        if copies >= 2 * self.table.slots() {
            return Err(self.too_many_copies());
        }
        let (table, words) = (self.table, self.words.words_mut());
        if !table.settle(words, &place) {
            if self.victim.is_some() || kicks == 0 {
                return Err(self.no_place());
            }
            self.victim = wander(table, words, place, kicks);
        }
        self.head.count_inserted(1);
        Ok(copies == 0)
    }

    /// Removes a fingerprint. Returns `false` if no equal one is there.
    fn take(&mut self, place: &Candidates) -> bool {
        let (table, words) = (self.table, self.words.words_mut());
        if place.buckets.into_iter().any(|bucket| table.replace(words, bucket, place.fingerprint, 0)) {
            // A slot is free now, so the waiting fingerprint tries again.
            self.victim = self.victim.filter(|victim| !table.settle(words, victim));
            self.victim = self.victim.and_then(|victim| wander(table, words, victim, MAX_KICKS));
        } else if self.is_victim(place) {
            self.victim = None;
        } else {
            return false;
        }
        self.head.count_removed();
        true
    }

    /// Returns the number of slots that are taken: that of the keys, except the victim, which has none.
    /// The number of keys may be that of a damaged file, so it may be too small.
    fn used_cells(&self) -> u64 {
        self.len().saturating_sub(u64::from(self.victim.is_some()))
    }

    #[cold]
    fn too_many_copies(&self) -> Error {
        let most = 2 * self.table.slots();
        let why = format!(
            "a key was inserted more than {most} times, or has the fingerprint of others that were, and there is room for \
             {most} copies; ask `contains` before inserting, or use a counting filter"
        );
        Error::Full { kind: Kind::Cuckoo, why }
    }

    #[cold]
    fn no_place(&self) -> Error {
        let (taken, cells) = (self.used_cells(), self.table.cells());
        let why = format!(
            "{taken} of {cells} slots are taken and there is no place for the next key; remove keys, or build a filter \
             of a larger capacity"
        );
        Error::Full { kind: Kind::Cuckoo, why }
    }
}

/// Puts a fingerprint into a full bucket, in place of one that moves to its other bucket, which in
/// turn displaces another if that bucket is full, and so on. Returns the fingerprint that found no
/// free slot within `kicks` moves, if any.
///
/// The choice of the fingerprint that moves is pseudorandom, but seeded by the new fingerprint, so
/// that the same operations lead to the same bytes.
#[cold]
fn wander(table: Table, words: &mut [u64], place: Candidates, kicks: u32) -> Option<Candidates> {
    let Candidates { buckets: [mut bucket, _], mut fingerprint } = place;
    let mut chance = Digest::from_hash(bucket << 32 | u64::from(fingerprint)).salted(0).stream();
    for _ in 0..kicks {
        let slot = reduce(chance.draw(), table.slots().into());
        fingerprint = table.exchange(words, bucket, slot as usize, fingerprint);
        bucket = table.place_in(bucket, fingerprint).buckets[1];
        if table.replace(words, bucket, 0, fingerprint) {
            return None;
        }
    }
    Some(table.place_in(bucket, fingerprint))
}

structure_methods!([] Cuckoo);
set_methods!([] Cuckoo);
try_insert_methods!([] Cuckoo);
remove_methods!([] Cuckoo);
union_methods!([] Cuckoo);
intersect_methods!([] Cuckoo);

impl structure::sealed::Sealed for Cuckoo {}

impl Structure for Cuckoo {
    const KIND: Kind = Kind::Cuckoo;

    const CAPABILITIES: Capabilities =
        Capabilities { remove: true, union: true, intersect: true, multiset: true, ..Capabilities::NOTHING };

    fn plan(spec: &Spec) -> Result<Plan> {
        Ok(plan(spec)?.1)
    }

    fn predicted_rate(&self, n: u64) -> Result<f64> {
        rate_of(self.table.buckets(), self.table.fingerprint_bits(), n)
    }

    fn try_clone(&self) -> Result<Cuckoo> {
        Ok(Cuckoo { words: self.words.try_clone()?, head: self.head.clone(), ..*self })
    }

    fn trace(&self, digest: Digest, probe: &mut dyn FnMut(Probe) -> Result<()>) -> Result<bool> {
        let (table, place) = (self.table, self.table.place(digest));
        for bucket in place.buckets {
            let bits = table.range(bucket);
            if table.form() == Form::SemiSorted {
                probe(Probe { section: 0, bits })?;
                if table.bucket(self.words.words(), bucket).contains(&place.fingerprint) {
                    return Ok(true);
                }
                continue;
            }
            for start in bits.step_by(table.fingerprint_bits() as usize) {
                let slot = Probe { section: 0, bits: start..start + u64::from(table.fingerprint_bits()) };
                probe(slot.clone())?;
                if slot.value(&self.words) == u64::from(place.fingerprint) {
                    return Ok(true);
                }
            }
        }
        Ok(self.is_victim(&place))
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn head_mut(&mut self) -> &mut Head {
        &mut self.head
    }

    /// The parameters of a file: buckets, fingerprint bits, slots, form, the fingerprint of the
    /// victim (0 without one), and the bucket the victim was last in.
    fn params(&self) -> Vec<u64> {
        let Candidates { buckets: [bucket, _], fingerprint } = self.victim.unwrap_or_default();
        let form = match self.table.form() {
            Form::Plain => 0,
            Form::SemiSorted => 1,
        };
        let (bits, slots) = (self.table.fingerprint_bits(), self.table.slots());
        vec![self.table.buckets(), bits.into(), slots.into(), form, fingerprint.into(), bucket]
    }

    fn sections(&self) -> Vec<(u32, &Words)> {
        vec![(FINGERPRINTS, &self.words)]
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.words.relocate(mover);
    }

    fn restore(mut parts: Parts) -> Result<Cuckoo> {
        let [buckets, bits, slots, form, fingerprint, bucket] = parts.params()?;
        let form = match form {
            0 => Form::Plain,
            1 => Form::SemiSorted,
            other => return Err(FormatError::Unknown { what: format!("form {other} of buckets") }.into()),
        };
        let table = Table::new(buckets, small(bits), small(slots), form)?;
        if fingerprint > table.fingerprints() || bucket >= buckets || (fingerprint == 0 && bucket != 0) {
            return Err(FormatError::invalid("its waiting fingerprint does not belong to its table").into());
        }
        let victim = (fingerprint != 0).then(|| table.place_in(bucket, small(fingerprint)));
        let words = parts.section(FINGERPRINTS, table.lines())?;
        let head = parts.finish()?;
        if head.inserted.is_none() {
            return Err(FormatError::invalid("the number of keys is missing").into());
        }
        Ok(Cuckoo { table, words, victim, head })
    }

    /// Checks that there are as many fingerprints as keys, that every bucket is one that a table
    /// would write, and that nothing follows the last bucket.
    fn check_contents(&self) -> Result<(), FormatError> {
        let (table, words) = (self.table, self.words.words());
        structure::check_tail(&self.words, table.bits())?;
        let mut keys = u64::from(self.victim.is_some());
        for bucket in 0..table.buckets() {
            let contents = table.bucket(words, bucket);
            if !table.is_written(words, bucket) {
                return Err(FormatError::invalid(format!(
                    "bucket {bucket} has contents that no filter writes"
                )));
            }
            keys += contents.iter().filter(|fingerprint| **fingerprint != 0).count() as u64;
        }
        if keys != self.len() {
            let what = format!("it claims {} keys, but holds {keys} fingerprints", self.len());
            return Err(FormatError::invalid(what));
        }
        Ok(())
    }
}

impl Set for Cuckoo {
    fn build(spec: &Spec) -> Result<Cuckoo> {
        let (table, plan) = plan(spec)?;
        Cuckoo::with_head(table, Head::planned(spec, &plan))
    }

    fn clear(&mut self) {
        self.words.words_mut().fill(0);
        self.victim = None;
        self.head = self.head.emptied();
    }

    fn try_clone_empty(&self) -> Result<Cuckoo> {
        Cuckoo::with_head(self.table, self.head.emptied())
    }

    fn remove_if_able(&mut self, digest: Digest) -> Result<Removed> {
        Ok(self.remove_digest(digest))
    }
}

/// Returns the shape that a specification leads to, and its plan.
fn plan(spec: &Spec) -> Result<(Table, Plan)> {
    let (Given { n, p, m, k }, options) = (spec.given(), &spec.options().cuckoo);
    if let Some(k) = k {
        let needs = "to be left open: a key is one fingerprint in one of two buckets";
        return Err(Error::parameter("k", k, needs));
    }
    let params = match (n, p, m) {
        (Some(n), Some(p), None) => CuckooParams::for_capacity(n, p, options)?,
        (Some(n), _, Some(m)) => CuckooParams::for_bits(m, n, options)?,
        (None, Some(p), Some(m)) => CuckooParams::for_bits_and_rate(m, p, options)?,
        (Some(n), None, None) if options.fingerprint_bits.is_some() => {
            CuckooParams::for_fingerprints(n, options)?
        }
        // The rules of the standard filter report the missing setting.
        _ => {
            let solved = spec.given().solve(spec.policy())?;
            CuckooParams::for_bits(solved.bits, solved.capacity, options)?
        }
    };
    let CuckooParams { capacity, buckets, fingerprint_bits, slots, form, bits, rate } = params;
    let fingerprints = options.fingerprint_bits.map(|bits| ("fingerprint bits", bits));
    check_rate(&spec.given(), rate, capacity, bits, fingerprints)?;
    let table = Table::new(buckets, fingerprint_bits, slots, form)?;
    let plan = spec.finish(Plan {
        kind: Kind::Cuckoo,
        capacity,
        bits,
        stored_bits: table.bits(),
        bytes: table.lines() * LINE_BYTES as u64,
        hashes: BUCKETS_OF_A_KEY,
        lines_touched: table.lines_touched(),
        rate_asked: p.unwrap_or(rate),
        rate,
    })?;
    Ok((table, plan))
}

/// The number of buckets per key, reported as the number of hash functions.
const BUCKETS_OF_A_KEY: u32 = 2;

impl Filter for Cuckoo {
    fn kind(&self) -> Kind {
        Kind::Cuckoo
    }

    #[inline(always)]
    fn hasher(&self) -> &Hasher {
        &self.head.hasher
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        let place = self.table.place(digest);
        kernels::finds(self.table, self.words.words(), &place) || self.is_victim(&place)
    }

    fn contains_tile(&self, tile: &[Digest]) -> u64 {
        self.find_tile(tile)
    }

    fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        self.find_batch(keys)
    }

    fn stats(&self) -> Stats {
        let Cuckoo { table, victim, .. } = *self;
        // Keys with the same fingerprint and buckets are indistinguishable in lookups.
        let groups = table.buckets() as f64 / 2.0 * table.fingerprints() as f64;
        let distinct = self.distinct();
        let shape = Shape::Standard { bits: (groups as u64).clamp(1, MAX_BITS), hashes: 1 };
        let estimate = shape.cardinality(distinct).unwrap_or(Cardinality::Saturated);
        Stats {
            cells: table.cells(),
            used_cells: self.used_cells(),
            hashes: BUCKETS_OF_A_KEY,
            bits: table.bits(),
            bytes: table.lines() * LINE_BYTES as u64,
            estimate: estimate.within(distinct, Some(self.len())),
            rate_now: distinct as f64 / groups,
            details: vec![
                ("fingerprint bits", table.fingerprint_bits().into()),
                ("slots per bucket", table.slots().into()),
                ("keys without a place", u32::from(victim.is_some()).into()),
            ],
            ..Stats::from_structure(self)
        }
    }
}

impl Cuckoo {
    /// Returns the number of stored keys that are distinguishable.
    fn distinct(&self) -> u64 {
        let (table, words) = (self.table, self.words.words());
        let mut distinct = 0;
        for bucket in 0..table.buckets() {
            let contents = table.bucket(words, bucket);
            for (slot, fingerprint) in
                contents.iter().enumerate().filter(|(_, fingerprint)| **fingerprint != 0)
            {
                let place = table.place_in(bucket, *fingerprint);
                let [_, other] = place.buckets;
                // Fingerprints that are in both buckets count in the lower one.
                let elsewhere = other < bucket && table.bucket(words, other).contains(fingerprint);
                distinct += u64::from(!contents[..slot].contains(fingerprint) && !elsewhere);
            }
        }
        distinct + u64::from(self.victim.is_some_and(|victim| table.count(words, &victim) == 0))
    }
}

impl Insert for Cuckoo {
    type Error = Error;

    #[inline]
    fn insert_digest(&mut self, digest: Digest) -> Result<bool> {
        self.put(self.table.place(digest), MAX_KICKS)
    }

    fn insert_tile(&mut self, tile: &[Digest]) -> Result<()> {
        for tile in tile.chunks(TILE) {
            let mut places = [Candidates::default(); TILE];
            for (place, digest) in places.iter_mut().zip(tile) {
                *place = self.table.place(*digest);
                kernels::prefetch_buckets(self.table, self.words.words(), place);
            }
            places[..tile.len()].iter().try_for_each(|place| self.put(*place, MAX_KICKS).map(drop))?;
        }
        Ok(())
    }
}

impl Remove for Cuckoo {
    fn remove_digest(&mut self, digest: Digest) -> Removed {
        let removed = self.take(&self.table.place(digest));
        if removed { Removed::Removed } else { Removed::NotPresent }
    }
}
