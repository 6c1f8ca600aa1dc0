//! Filters with scattered counters: the code shared by counting and variable-increment filters.
//! Inserting a key adds to its cells, and removing it subtracts the same amounts.

use crate::algebra::Mismatch;
use crate::arch::Simd;
use crate::bloom::scattered::{self, Scatter};
use crate::file::FormatError;
use crate::hash::reduce;
use crate::memory::{LINE_BITS, LINE_BYTES, Mover, Packed, Words};
use crate::methods::{
    absorb_methods, intersect_methods, overlap_methods, remove_methods, set_methods, structure_methods,
    try_insert_methods, union_methods,
};
use crate::sizing::{Cardinality, Overlap, Shape};
use crate::structure::{self, Head, Parts, Probe};
use crate::tile::{self, Stage, Work, split_tile};
use crate::{
    Algebra, Answers, Batch, Capabilities, Digest, Error, Filter, Hasher, Insert, Kind, Plan, Remove,
    Removed, Result, Set, Spec, Stats, Structure, TILE,
};
use std::fmt::Debug;

/// Defines what a probe adds to its cell, and which values of a cell match a probe.
///
/// [`Ones`](super::Ones) and [`Increments`](crate::variable_increment::Increments) implement it;
/// [`Counters`] adds the memory, the hash and the counts. The trait is sealed, because its methods
/// guarantee that every inserted key is found.
#[doc(hidden)]
pub trait Rule: Clone + Debug + PartialEq + Send + Sync + 'static + sealed::Sealed {
    /// The kind of filter that this rule makes.
    const KIND: Kind;

    #[doc(hidden)]
    const SECTION: u32;

    /// Returns the layout of the cells.
    fn cells(&self) -> Packed;

    /// Returns the number of cells that a key adds to; a cell that several probes share counts once
    /// for each.
    fn hashes(&self) -> u32;

    /// Returns the rule that a specification leads to, and its plan.
    fn plan(spec: &Spec) -> Result<(Self, Plan)>;

    /// Returns the false-positive rate the theory predicts after `n` distinct keys.
    fn predicted_rate(&self, n: u64) -> Result<f64>;

    #[doc(hidden)]
    fn params(&self) -> Vec<u64>;
    #[doc(hidden)]
    fn from_params(params: &[u64]) -> Result<Self>;
    /// Returns the first difference other than the numbers of cells and hashes.
    #[doc(hidden)]
    fn mismatch(&self, other: &Self) -> Option<Mismatch>;
    /// Returns the index of the increment that a probe adds, from bits that are independent of its
    /// cell.
    #[doc(hidden)]
    fn choice(&self, fraction: u64) -> usize;
    /// Returns the value of a cell that holds only this increment.
    #[doc(hidden)]
    fn increment(&self, choice: usize) -> u64;
    /// Returns whether a cell of this value may hold this increment.
    #[doc(hidden)]
    fn passes(&self, value: u64, choice: usize) -> bool;
    /// Returns the fraction of all increments that match a cell of this value.
    #[doc(hidden)]
    fn share_passing(&self, value: u64) -> f64;
    /// Returns the value of a cell with the contents of both; `None` if it would overflow and must
    /// be refused.
    #[doc(hidden)]
    fn join(&self, a: u64, b: u64) -> Option<u64>;
    /// Returns the value of the cell without this increment; `None` if the cell certainly does not
    /// hold it.
    #[doc(hidden)]
    fn without(&self, value: u64, choice: usize) -> Option<u64>;
    /// Returns whether a cell of this value has overflowed: its contents are unknown, and it never
    /// changes again.
    #[doc(hidden)]
    fn is_stuck(&self, value: u64) -> bool;
    /// Checks that all cells have values that insertions can produce. In a cell with any other
    /// value, an inserted key may not be found.
    #[doc(hidden)]
    fn check_cells(&self, _words: &[u64]) -> Result<(), FormatError> {
        Ok(())
    }
}

pub(crate) mod sealed {
    pub trait Sealed {}
}

impl<R: Rule> Scatter for &R {
    #[inline(always)]
    fn probes(self) -> u32 {
        self.hashes()
    }

    #[inline(always)]
    fn position(self, _: u32, x: u64) -> u64 {
        reduce(x, self.cells().cells())
    }

    #[inline(always)]
    fn word(self, position: u64) -> usize {
        self.cells().split(position).0
    }

    #[inline(always)]
    fn passes(self, words: &[u64], position: u64, x: u64) -> bool {
        let cells = self.cells();
        Rule::passes(self, cells.get(words, position), choice(self, x))
    }
}

/// Returns the index of a probe's increment. The high half of `x * cells` is the cell of the probe;
/// the low half, the position of `x` within the cell's share of the range, chooses the increment.
#[inline(always)]
fn choice<R: Rule>(rule: &R, x: u64) -> usize {
    rule.choice(x.wrapping_mul(rule.cells().cells()))
}

/// A cell, and the index of the increment that a probe adds to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub cell: u64,
    pub choice: usize,
}

#[inline(always)]
pub(crate) fn probes<R: Rule>(rule: &R, digest: Digest) -> impl Iterator<Item = At> + Clone {
    let at = |x| At { cell: rule.position(0, x), choice: choice(rule, x) };
    digest.stream().take(rule.hashes() as usize).map(at)
}

/// Adds every probe to its cell. If one of the cells would overflow, changes nothing and returns
/// `false`.
#[inline(always)]
pub(crate) fn add<R: Rule>(rule: &R, words: &mut [u64], probes: impl Iterator<Item = At> + Clone) -> bool {
    let cells = rule.cells();
    for (done, at) in probes.clone().enumerate() {
        let value = cells.get(words, at.cell);
        let Some(sum) = rule.join(value, rule.increment(at.choice)) else {
            undo(cells, words, probes.take(done), |value, choice| rule.without(value, choice));
            return false;
        };
        cells.set(words, at.cell, sum);
    }
    true
}

/// Subtracts every probe from its cell. If one of the cells cannot hold its probe, changes nothing
/// and returns `false`.
///
/// Where several probes share a cell, subtracting them one after the other is as strict as
/// subtracting their sum: if the rest is a possible value, so are all the values before it.
#[inline(always)]
pub(crate) fn take<R: Rule>(rule: &R, words: &mut [u64], probes: impl Iterator<Item = At> + Clone) -> bool {
    let cells = rule.cells();
    for (done, at) in probes.clone().enumerate() {
        let Some(rest) = rule.without(cells.get(words, at.cell), at.choice) else {
            undo(cells, words, probes.take(done), |value, choice| rule.join(value, rule.increment(choice)));
            return false;
        };
        cells.set(words, at.cell, rest);
    }
    true
}

/// Subtracts the probes of a key from its cells, unless the key is certainly not there or all its
/// cells are stuck.
#[inline(always)]
pub(super) fn take_key<R: Rule>(
    rule: &R,
    words: &mut [u64],
    probes: impl Iterator<Item = At> + Clone,
) -> Removed {
    let cells = rule.cells();
    if probes.clone().all(|at| rule.is_stuck(cells.get(words, at.cell))) {
        Removed::NotDeletable
    } else if take(rule, words, probes) {
        Removed::Removed
    } else {
        Removed::NotPresent
    }
}

/// Reverts probes that were added or subtracted. Every step that was possible can be reverted, and
/// a stuck cell has not changed.
fn undo(
    cells: Packed,
    words: &mut [u64],
    probes: impl Iterator<Item = At>,
    back: impl Fn(u64, usize) -> Option<u64>,
) {
    for at in probes {
        if let Some(value) = back(cells.get(words, at.cell), at.choice) {
            cells.set(words, at.cell, value);
        }
    }
}

/// A filter whose cells are counters: [`Counting`](crate::Counting) or
/// [`VariableIncrement`](crate::VariableIncrement).
///
/// There are no false negatives as long as only inserted keys are removed.
pub struct Counters<R: Rule> {
    pub(super) rule: R,
    pub(super) words: Words,
    pub(super) head: Head,
}

impl<R: Rule> Counters<R> {
    /// Creates an empty filter for `capacity` keys with a false-positive rate of `rate`, hashed
    /// with the fast hash.
    ///
    /// # Errors
    ///
    /// Returns an error if `capacity` or `rate` is out of range, or if there is not enough memory.
    pub fn with_capacity(capacity: u64, rate: f64) -> Result<Counters<R>> {
        Counters::build(&Spec::new(capacity, rate)?)
    }

    /// Creates an empty filter with exactly this rule.
    ///
    /// # Errors
    ///
    /// Returns an error if there is not enough memory.
    pub fn with_rule(rule: R, hasher: Hasher) -> Result<Counters<R>> {
        Counters::with_head(rule, Head::new(hasher))
    }

    fn with_head(rule: R, head: Head) -> Result<Counters<R>> {
        Ok(Counters { words: Words::zeroed(rule.cells().lines())?, rule, head })
    }

    /// Returns the rule.
    pub fn rule(&self) -> &R {
        &self.rule
    }

    /// Returns the memory; [`Rule::cells`] describes the layout of the cells in it.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Iterates over the values of all cells.
    pub fn values(&self) -> impl Iterator<Item = u64> {
        self.rule.cells().iter(self.words.words())
    }

    /// Returns the number of stuck cells. A stuck cell has overflowed: it matches every key, and
    /// removals never empty it.
    pub fn stuck_cells(&self) -> u64 {
        self.count(|value| self.rule.is_stuck(value))
    }

    fn count(&self, counts: impl Fn(u64) -> bool) -> u64 {
        self.values().filter(|value| counts(*value)).count() as u64
    }

    fn shape(&self) -> Shape {
        Shape::Standard { bits: self.rule.cells().cells(), hashes: self.rule.hashes() }
    }

    /// Replaces every cell with `operation` of it and the other filter's cell. If `operation`
    /// returns `None` for any cell, nothing changes.
    fn combine(&mut self, other: &Self, operation: impl Fn(&R, u64, u64) -> Option<u64>) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        let (rule, cells) = (&self.rule, self.rule.cells());
        let refused = |(ours, theirs)| operation(rule, ours, theirs).is_none();
        // If two full cells can be combined, so can any two cells.
        if refused((cells.max(), cells.max())) && self.values().zip(other.values()).any(refused) {
            return Err(full::<R>());
        }
        let words = self.words.words_mut();
        for cell in 0..cells.cells() {
            let (ours, theirs) = (cells.get(words, cell), cells.get(other.words.words(), cell));
            if let Some(value) = operation(rule, ours, theirs).filter(|value| *value != ours) {
                cells.set(words, cell, value);
            }
        }
        self.head.inserted = None;
        Ok(())
    }
}

pub(super) fn full<R: Rule>() -> Error {
    let why =
        "a counter would exceed its largest value; wider counters hold more, and sticky ones never refuse";
    Error::Full { kind: R::KIND, why: why.into() }
}

/// Translates an error about the size, which was requested as `m` bits but is checked in cells of
/// `width` bits.
pub(crate) fn in_cells(error: Error, m: Option<u64>, width: u64) -> Error {
    match (error, m) {
        (Error::Parameter { name: "m", got, needs }, _) => {
            let needs = format!("{needs} (counted in counters of {width} bits)");
            Error::Parameter { name: "m", got, needs }
        }
        (Error::Contradiction { settings: [size, other], why }, Some(m)) if size.starts_with("m = ") => {
            let why = why.replace(" bits", &format!(" counters of {width} bits"));
            Error::contradiction(format!("m = {m} bits"), other, why)
        }
        (other, _) => other,
    }
}

/// Returns the plan of a filter with this rule.
pub(crate) fn planned<R: Rule>(spec: &Spec, rule: &R, capacity: u64, rate: f64, exact: u64) -> Result<Plan> {
    let (cells, hashes) = (rule.cells(), rule.hashes());
    // A cell whose width does not divide a line may span two lines.
    let lines_per_cell = if LINE_BITS.is_multiple_of(cells.width().into()) { 1 } else { 2 };
    spec.finish(Plan {
        kind: R::KIND,
        capacity,
        bits: exact * u64::from(cells.width()),
        stored_bits: cells.bits(),
        bytes: cells.lines() * LINE_BYTES as u64,
        hashes,
        lines_touched: hashes * lines_per_cell,
        rate_asked: spec.given().p.unwrap_or(rate),
        rate,
    })
}

structure_methods!([R: Rule] Counters<R>);
set_methods!([R: Rule] Counters<R>);
try_insert_methods!([R: Rule] Counters<R>);
remove_methods!([R: Rule] Counters<R>);
union_methods!([R: Rule] Counters<R>);
intersect_methods!([R: Rule] Counters<R>);
overlap_methods!([R: Rule] Counters<R>);
absorb_methods!([R: Rule] Counters<R>);

impl<R: Rule> structure::sealed::Sealed for Counters<R> {}

impl<R: Rule> Structure for Counters<R> {
    const KIND: Kind = R::KIND;

    const CAPABILITIES: Capabilities =
        Capabilities { remove: true, union: true, intersect: true, absorb: true, ..Capabilities::NOTHING };

    fn plan(spec: &Spec) -> Result<Plan> {
        Ok(R::plan(spec)?.1)
    }

    fn predicted_rate(&self, n: u64) -> Result<f64> {
        self.rule.predicted_rate(n)
    }

    fn try_clone(&self) -> Result<Counters<R>> {
        let (rule, head) = (self.rule.clone(), self.head.clone());
        Ok(Counters { rule, words: self.words.try_clone()?, head })
    }

    fn trace(&self, digest: Digest, probe: &mut dyn FnMut(Probe) -> Result<()>) -> Result<bool> {
        for at in probes(&self.rule, digest) {
            let cell = Probe { section: 0, bits: self.rule.cells().range(at.cell) };
            probe(cell.clone())?;
            if !self.rule.passes(cell.value(&self.words), at.choice) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn head_mut(&mut self) -> &mut Head {
        &mut self.head
    }

    fn params(&self) -> Vec<u64> {
        self.rule.params()
    }

    fn sections(&self) -> Vec<(u32, &Words)> {
        vec![(R::SECTION, &self.words)]
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.words.relocate(mover);
    }

    fn restore(mut parts: Parts) -> Result<Counters<R>> {
        let rule = R::from_params(&parts.params)?;
        let words = parts.section(R::SECTION, rule.cells().lines())?;
        Ok(Counters { rule, words, head: parts.finish()? })
    }

    fn check_contents(&self) -> Result<(), FormatError> {
        structure::check_tail(&self.words, self.rule.cells().bits())?;
        self.rule.check_cells(self.words.words())
    }
}

impl<R: Rule> Set for Counters<R> {
    fn build(spec: &Spec) -> Result<Counters<R>> {
        let (rule, plan) = R::plan(spec)?;
        Counters::with_head(rule, Head::planned(spec, &plan))
    }

    fn clear(&mut self) {
        self.words.words_mut().fill(0);
        self.head = self.head.emptied();
    }

    fn try_clone_empty(&self) -> Result<Counters<R>> {
        Counters::with_head(self.rule.clone(), self.head.emptied())
    }

    fn remove_if_able(&mut self, digest: Digest) -> Result<Removed> {
        Ok(self.remove_digest(digest))
    }
}

impl<R: Rule> Filter for Counters<R> {
    fn kind(&self) -> Kind {
        R::KIND
    }

    #[inline(always)]
    fn hasher(&self) -> &Hasher {
        &self.head.hasher
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        scattered::contains(&self.rule, self.words.words(), digest)
    }

    fn contains_tile(&self, tile: &[Digest]) -> u64 {
        tile::contains_tile(self.head.level, &&self.rule, self.words.lines(), tile)
    }

    fn stats(&self) -> Stats {
        let cells = self.rule.cells();
        let mut cells_of = vec![0u64; 1 << cells.width()];
        self.values().for_each(|value| cells_of[value as usize] += 1);
        let sum = |weight: &dyn Fn(u64) -> f64| -> f64 {
            (0..).zip(&cells_of).filter(|(_, count)| **count > 0).map(|(v, n)| weight(v) * *n as f64).sum()
        };
        let used_cells = cells.cells() - cells_of[0];
        let passing = sum(&|value| self.rule.share_passing(value)) / cells.cells() as f64;
        let stuck = sum(&|value| f64::from(u8::from(self.rule.is_stuck(value))));
        // A key uses at most k cells, but a stuck cell may belong to a key that was removed.
        let least = if stuck == 0.0 { used_cells.div_ceil(self.rule.hashes().into()) } else { 0 };
        let estimate = self.shape().cardinality(used_cells).unwrap_or(Cardinality::Saturated);
        Stats {
            cells: cells.cells(),
            used_cells,
            bits: cells.bits(),
            hashes: self.rule.hashes(),
            bytes: cells.lines() * LINE_BYTES as u64,
            estimate: estimate.within(least, self.head.inserted),
            rate_now: passing.powi(self.rule.hashes() as i32),
            details: vec![("bits per cell", cells.width().into()), ("stuck cells", stuck)],
            ..Stats::from_structure(self)
        }
    }

    fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        tile::contains_batch(self.head.level, &&self.rule, self.words.lines(), &self.head.hasher, keys)
    }
}

impl<R: Rule> Insert for Counters<R> {
    type Error = Error;

    fn insert_digest(&mut self, digest: Digest) -> Result<bool> {
        let words = self.words.words_mut();
        let new = !scattered::contains(&self.rule, words, digest);
        if !add(&self.rule, words, probes(&self.rule, digest)) {
            return Err(full::<R>());
        }
        self.head.count_inserted(1);
        Ok(new)
    }

    fn insert_tile(&mut self, tile: &[Digest]) -> Result<()> {
        let mut fill = Fill { words: self.words.words_mut(), added: 0 };
        let filled = tile.chunks(TILE).try_for_each(|tile| {
            scattered::fetch_to_insert(&self.rule, fill.words, tile);
            tile.iter().try_for_each(|digest| fill.add(&self.rule, *digest))
        });
        let added = fill.added;
        self.head.count_inserted(added);
        filled
    }

    fn insert_tile_new(&mut self, tile: &[Digest]) -> Result<u64> {
        let (tile, rest) = split_tile(tile);
        scattered::fetch_to_insert(&self.rule, self.words.words(), tile);
        let mut digests = tile.iter().enumerate();
        let new = digests.try_fold(0, |new, (i, digest)| {
            Ok::<_, Error>(new | u64::from(self.insert_digest(*digest)?) << i)
        })?;
        self.insert_tile(rest)?;
        Ok(new)
    }

    fn insert_batch<B: Batch + ?Sized>(&mut self, keys: &B) -> Result<()> {
        let mut fill = Fill { words: self.words.words_mut(), added: 0 };
        let (layout, hasher) = (&&self.rule, &self.head.hasher);
        let filled = tile::run(self.head.level, layout, hasher, keys, &mut fill).map(drop);
        let added = fill.added;
        self.head.count_inserted(added);
        filled
    }
}

/// Inserts keys in order until one is refused.
struct Fill<'a> {
    words: &'a mut [u64],
    added: usize,
}

impl Fill<'_> {
    #[inline(always)]
    fn add<R: Rule>(&mut self, rule: &R, digest: Digest) -> Result<()> {
        if !add(rule, self.words, probes(rule, digest)) {
            return Err(full::<R>());
        }
        self.added += 1;
        Ok(())
    }
}

impl<'r, R: Rule> Work<&'r R> for &mut Fill<'_> {
    type Error = Error;

    const PLACES: bool = false;

    #[inline(always)]
    fn start(&self, rule: &&'r R, first: &Stage<&'r R>) {
        scattered::fetch_to_insert(*rule, self.words, first.digests());
    }

    #[inline(always)]
    fn tile<S: Simd>(&mut self, _: S, rule: &&'r R, now: &Stage<&'r R>, next: &Stage<&'r R>) -> Result<()> {
        for (i, digest) in now.digests().iter().enumerate() {
            // For each key, prefetch the cells of one key of the next tile.
            scattered::fetch_to_insert(*rule, self.words, next.digests().get(i..=i).unwrap_or_default());
            self.add(*rule, *digest)?;
        }
        Ok(())
    }
}

impl<R: Rule> Remove for Counters<R> {
    /// Returns [`Removed::NotDeletable`] if all cells of the key are stuck.
    fn remove_digest(&mut self, digest: Digest) -> Removed {
        let removed = take_key(&self.rule, self.words.words_mut(), probes(&self.rule, digest));
        if removed == Removed::Removed {
            self.head.count_removed();
        }
        removed
    }
}

impl<R: Rule> Algebra for Counters<R> {
    fn mismatch(&self, other: &Counters<R>) -> Option<Mismatch> {
        Mismatch::between("number of cells", self.rule.cells().cells(), other.rule.cells().cells())
            .or_else(|| Mismatch::between("number of hashes", self.rule.hashes(), other.rule.hashes()))
            .or_else(|| {
                Mismatch::between("bits per cell", self.rule.cells().width(), other.rule.cells().width())
            })
            .or_else(|| self.rule.mismatch(&other.rule))
            .or_else(|| Mismatch::between_hashes(self.head.hasher.id(), other.head.hasher.id()))
    }

    /// Adds the counters, so a key that is in both sets can be removed twice.
    fn union(&mut self, other: &Counters<R>) -> Result<()> {
        self.combine(other, |rule, a, b| rule.join(a, b))
    }

    /// Keeps the cell that matches fewer increments, or the smaller one if both match the same
    /// number. Each cell is the sum of everything its own set added, so both contain the increments
    /// of every key that is in both sets. Whichever is kept, such a key is found and can be
    /// removed.
    fn intersect(&mut self, other: &Counters<R>) -> Result<()> {
        self.combine(other, |rule, a, b| {
            let passing = |value| rule.share_passing(value);
            Some(if (passing(a), a) <= (passing(b), b) { a } else { b })
        })
    }

    fn overlap(&self, other: &Counters<R>) -> Result<Option<Overlap>> {
        Mismatch::refuse(self.mismatch(other))?;
        let mut used = [0; 3];
        for (ours, theirs) in self.values().zip(other.values()) {
            [ours, theirs, ours | theirs]
                .iter()
                .zip(&mut used)
                .for_each(|(value, used)| *used += u64::from(*value > 0));
        }
        let [ours, theirs, union] = used;
        self.shape().overlap(ours, theirs, union)
    }
}
