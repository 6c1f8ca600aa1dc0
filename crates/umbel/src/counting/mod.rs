//! Counting Bloom filters: a standard filter with counters in place of bits, so that keys can be
//! removed.
//!
//! Inserting a key adds one to each of its k counters, and removing it subtracts one again. The
//! nonzero counters are the set bits of the standard filter of the same keys.
//!
//! ```
//! use umbel::{Counting, Removed};
//! let mut filter = Counting::with_capacity(10_000, 0.01)?;
//! filter.insert("apple")?;
//! filter.insert("pear")?;
//! assert_eq!(filter.remove("apple"), Removed::Removed);
//! assert_eq!(filter.remove("apple"), Removed::NotPresent);
//! assert!(!filter.contains("apple") && filter.contains("pear"));
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # When to use it
//!
//! Use it when keys come and go *and* other processes follow the bits: every insertion and removal
//! can report the bits that flipped, so a few numbers per change keep a copy of the bits up to
//! date. Where only removal matters, a [cuckoo](crate::cuckoo) or [quotient](crate::quotient)
//! filter needs about a third of the memory.
//!
//! It takes 38.3 bits per key at 1 %, four times as much as a standard filter with the same rate.
//! Its lookups touch as many cache lines as those of a standard filter: up to k, and two on average
//! for a non-member.
//!
//! # Removal
//!
//! Remove only keys that were inserted. A removal is refused when one of the key's counters is too
//! small, but this check is not proof: it passes for non-members at the false-positive rate, and
//! removing one of those makes the filter forget other keys. `remove_checked` consults an exact
//! source first. Where two probes of a key share a counter, inserting the key adds two there, and
//! removing it subtracts two.
//!
//! Four-bit counters suffice for distinct keys; [`sizing::counting`] has the probabilities. Sixteen
//! copies of one key overflow them, however large the filter is; [`Overflow`] defines what happens
//! then.
//!
//! # References
//!
//! * L. Fan, P. Cao, J. Almeida and A. Broder. *Summary cache: a scalable wide-area web cache
//!   sharing protocol.* IEEE/ACM Transactions on Networking 8(3), 2000. `FCAB00`
//! * B. H. Bloom. *Space/time trade-offs in hash coding with allowable errors.* Communications of
//!   the ACM 13(7), 1970. `Bloom70`

pub(crate) mod counters;
#[cfg(feature = "literature")]
mod slices;
#[cfg(test)]
mod tests;

pub use counters::{Counters, Rule};

use crate::algebra::Mismatch;
use crate::bloom::scattered::check_hashes;
use crate::file::FormatError;
use crate::memory::{LINE_BITS, Packed, Words};
use crate::sizing::{self, Given};
use crate::structure::{COUNTERS, small};
use crate::{Bloom, Error, Hasher, Key, Kind, Plan, Removed, Result, Spec, Standard, spec};
use counters::{At, add, full, in_cells, planned, probes, take_key};
use std::fmt;
use std::str::FromStr;

/// A counting Bloom filter; see the [module documentation](self).
pub type Counting = Counters<Ones>;

/// The options of a counting filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The width of a counter, 2 to 16 bits.
    pub counter_bits: u32,
    /// What happens when a counter exceeds its largest value.
    pub overflow: Overflow,
}

impl Default for Options {
    /// Sticky counters of four bits.
    fn default() -> Options {
        Options { counter_bits: 4, overflow: Overflow::Sticky }
    }
}

/// What happens when a counter exceeds its largest value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The counter stays there, whatever is inserted or removed: no false negatives, but some
    /// permanent false positives.
    #[default]
    Sticky,
    /// The insertion is refused, and nothing changes.
    Error,
    /// The counter stays there when keys are inserted, but removals decrement it. **For
    /// demonstration only**: after sixteen insertions and fifteen removals of a key, a four-bit
    /// counter is zero, and the filter has forgotten the remaining copy.
    Decrement,
}

impl Overflow {
    /// All policies, in the order of their numbers in files.
    pub const ALL: [Overflow; 3] = [Overflow::Sticky, Overflow::Error, Overflow::Decrement];
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Overflow::Sticky => "sticky",
            Overflow::Error => "error",
            Overflow::Decrement => "decrement",
        })
    }
}

impl FromStr for Overflow {
    type Err = Error;

    fn from_str(text: &str) -> Result<Overflow> {
        let found = Overflow::ALL.into_iter().find(|policy| policy.to_string() == text);
        found.ok_or_else(|| Error::parameter("overflow", text, "one of sticky, error, decrement"))
    }
}

/// The rule of the counting filter: every probe adds one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ones {
    cells: Packed,
    hashes: u32,
    overflow: Overflow,
}

impl Ones {
    /// Creates a rule for `cells` counters (m) and `hashes` probes (k).
    ///
    /// # Errors
    ///
    /// Returns an error if a number is out of range.
    pub fn new(cells: u64, hashes: u32, options: Options) -> Result<Ones> {
        let Options { counter_bits, overflow } = options;
        if !(2..=16).contains(&counter_bits) {
            return Err(Error::parameter("counter bits", counter_bits, "2 to 16"));
        }
        check_hashes(hashes)?;
        Ok(Ones { cells: Packed::new(cells, counter_bits)?, hashes, overflow })
    }

    /// Returns what happens when a counter exceeds its largest value.
    pub fn overflow(&self) -> Overflow {
        self.overflow
    }
}

impl counters::sealed::Sealed for Ones {}

impl Rule for Ones {
    const KIND: Kind = Kind::Counting;
    const SECTION: u32 = COUNTERS;

    #[inline(always)]
    fn cells(&self) -> Packed {
        self.cells
    }

    #[inline(always)]
    fn hashes(&self) -> u32 {
        self.hashes
    }

    /// Plans a standard filter that has as many bits as this one has counters.
    fn plan(spec: &Spec) -> Result<(Ones, Plan)> {
        let options = spec.options().counting;
        let width = u64::from(options.counter_bits.max(1));
        let Given { n, p, m, k } = spec.given();
        let standard = Spec::from_given(Given { n, p, m: m.map(|bits| bits / width), k })?;
        let (_, plan) = spec::standard(&standard.with_policy(spec.policy()))
            .map_err(|error| in_cells(error, m, width))?;
        let rule = Ones::new(plan.stored_bits, plan.hashes, options)?;
        let plan = planned(spec, &rule, plan.capacity, plan.rate, plan.bits)?;
        Ok((rule, plan))
    }

    fn predicted_rate(&self, n: u64) -> Result<f64> {
        sizing::rate::expected(self.cells.cells(), n, self.hashes)
    }

    fn params(&self) -> Vec<u64> {
        let overflow = Overflow::ALL.iter().position(|policy| *policy == self.overflow);
        let width = self.cells.width().into();
        vec![self.cells.cells(), self.hashes.into(), width, overflow.unwrap_or_default() as u64]
    }

    fn from_params(params: &[u64]) -> Result<Ones> {
        let [cells, hashes, counter_bits, overflow] = *params else {
            return Err(FormatError::invalid(format!("{} parameters instead of 4", params.len())).into());
        };
        let overflow = Overflow::ALL.get(small(overflow) as usize);
        let overflow = *overflow.ok_or_else(|| FormatError::invalid("an unknown overflow policy"))?;
        Ones::new(cells, small(hashes), Options { counter_bits: small(counter_bits), overflow })
    }

    fn mismatch(&self, other: &Ones) -> Option<Mismatch> {
        Mismatch::between("overflow policy", self.overflow, other.overflow)
    }

    #[inline(always)]
    fn choice(&self, _: u64) -> usize {
        0
    }

    #[inline(always)]
    fn increment(&self, _: usize) -> u64 {
        1
    }

    #[inline(always)]
    fn passes(&self, value: u64, _: usize) -> bool {
        value > 0
    }

    fn share_passing(&self, value: u64) -> f64 {
        f64::from(u8::from(value > 0))
    }

    #[inline(always)]
    fn join(&self, a: u64, b: u64) -> Option<u64> {
        let max = self.cells.max();
        if a + b > max && self.overflow == Overflow::Error {
            return None;
        }
        Some(max.min(a + b))
    }

    #[inline(always)]
    fn without(&self, value: u64, _: usize) -> Option<u64> {
        if self.is_stuck(value) { Some(value) } else { value.checked_sub(1) }
    }

    #[inline(always)]
    fn is_stuck(&self, value: u64) -> bool {
        self.overflow == Overflow::Sticky && value == self.cells.max()
    }
}

/// A bit of the [bit view](Counting::bit_view) that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flip {
    /// The index of the bit.
    pub index: u64,
    /// Its new value.
    pub set: bool,
}

impl Counting {
    /// Creates an empty filter of `cells` counters (m) and `hashes` probes (k).
    ///
    /// # Errors
    ///
    /// Returns an error if a number is out of range, or if there is not enough memory.
    pub fn new(cells: u64, hashes: u32, options: Options, hasher: Hasher) -> Result<Counting> {
        Counting::with_rule(Ones::new(cells, hashes, options)?, hasher)
    }

    /// Returns one bit per counter, set if the counter is not zero: the bits of the standard filter
    /// of the same keys.
    ///
    /// # Errors
    ///
    /// Returns an error if there is not enough memory.
    pub fn bit_view(&self) -> Result<Words> {
        let mut bits = Words::zeroed(self.rule.cells.cells().div_ceil(LINE_BITS))?;
        let words = bits.words_mut();
        for (cell, value) in self.values().enumerate() {
            words[cell / 64] |= u64::from(value > 0) << (cell % 64);
        }
        Ok(bits)
    }

    /// Returns the standard filter of the same keys, bit for bit as if they had been inserted into
    /// it.
    ///
    /// ```
    /// use umbel::Counting;
    /// let mut filter = Counting::with_capacity(1000, 0.01)?;
    /// filter.insert_batch(&["apple", "pear", "plum"])?;
    /// filter.remove("pear");
    /// let bits = filter.to_standard()?;
    /// assert!(bits.contains("apple") && !bits.contains("pear"));
    /// assert_eq!(bits.stats().bits, filter.stats().bits / 4);
    /// # Ok::<(), umbel::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if there is not enough memory.
    pub fn to_standard(&self) -> Result<Bloom<Standard>> {
        let layout = Standard::new(self.rule.cells.cells(), self.rule.hashes)?;
        Ok(Bloom::from_parts(layout, self.bit_view()?, self.head.clone()))
    }

    /// Inserts `key` and appends the bits of the [bit view](Counting::bit_view) that this sets to
    /// `flips`. Returns `true` if there are any: the key was then certainly not in the filter
    /// before.
    ///
    /// A copy of the bit view stays identical to it if the flips are applied in order.
    ///
    /// # Errors
    ///
    /// Returns an error, and changes nothing, if a counter would overflow under
    /// [`Overflow::Error`].
    pub fn insert_flips<K: Key + ?Sized>(&mut self, key: &K, flips: &mut Vec<Flip>) -> Result<bool> {
        let (rule, digest) = (self.rule, key.digest(&self.head.hasher));
        self.insert_cells(probes(&rule, digest), flips)
    }

    /// Removes `key` and appends the bits of the [bit view](Counting::bit_view) that this clears to
    /// `flips`.
    pub fn remove_flips<K: Key + ?Sized>(&mut self, key: &K, flips: &mut Vec<Flip>) -> Removed {
        let (rule, digest) = (self.rule, key.digest(&self.head.hasher));
        self.remove_cells(probes(&rule, digest), flips)
    }

    /// Adds one to each of these cells and appends the bits that this sets to `flips`.
    fn insert_cells(
        &mut self,
        cells: impl Iterator<Item = At> + Clone,
        flips: &mut Vec<Flip>,
    ) -> Result<bool> {
        let before = flips.len();
        self.push_empty(cells.clone(), true, flips);
        if !add(&self.rule, self.words.words_mut(), cells) {
            flips.truncate(before);
            return Err(full::<Ones>());
        }
        self.head.count_inserted(1);
        Ok(flips.len() > before)
    }

    /// Subtracts one from each of these cells and appends the bits that this clears to `flips`.
    fn remove_cells(&mut self, cells: impl Iterator<Item = At> + Clone, flips: &mut Vec<Flip>) -> Removed {
        let removed = take_key(&self.rule, self.words.words_mut(), cells.clone());
        if removed == Removed::Removed {
            self.head.count_removed();
            self.push_empty(cells, false, flips);
        }
        removed
    }

    /// For each of these cells that is zero, appends a flip to the value `set`; a cell that occurs
    /// twice is appended once.
    fn push_empty(&self, cells: impl Iterator<Item = At>, set: bool, flips: &mut Vec<Flip>) {
        let (words, before) = (self.words.words(), flips.len());
        for At { cell: index, .. } in cells {
            let is_empty = self.rule.cells.get(words, index) == 0;
            if is_empty && flips[before..].iter().all(|flip| flip.index != index) {
                flips.push(Flip { index, set });
            }
        }
    }
}
