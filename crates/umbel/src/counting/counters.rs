//! Filters with scattered counters: the code shared by counting and variable-increment filters. A
//! key adds to its cells, and a removal subtracts the same again.

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

/// What a probe adds to its cell, and which cells let it pass.
///
/// [`Ones`](super::Ones) and [`Increments`](crate::variable_increment::Increments) are rules; [`Counters`] puts memory,
/// a hash and counts under one. The trait is sealed: its methods promise that whatever was inserted is found.
#[doc(hidden)]
pub trait Rule: Clone + Debug + PartialEq + Send + Sync + 'static + sealed::Sealed {
    /// The kind of filter this rule makes.
    const KIND: Kind;

    #[doc(hidden)]
    const SECTION: u32;

    /// The cells.
    fn cells(&self) -> Packed;

    /// How many cells a key adds to, coinciding ones counted as often as it does.
    fn hashes(&self) -> u32;

    /// The rule that a specification leads to, and its plan.
    fn plan(spec: &Spec) -> Result<(Self, Plan)>;

    /// The false-positive rate the theory predicts after `n` distinct keys.
    fn predicted_rate(&self, n: u64) -> Result<f64>;

    #[doc(hidden)]
    fn params(&self) -> Vec<u64>;
    #[doc(hidden)]
    fn from_params(params: &[u64]) -> Result<Self>;
    /// What differs besides the numbers of cells and hashes.
    #[doc(hidden)]
    fn mismatch(&self, other: &Self) -> Option<Mismatch>;
    /// Which increment a probe takes, from bits that are independent of its cell.
    #[doc(hidden)]
    fn choice(&self, fraction: u64) -> usize;
    /// The value of a cell that holds this increment alone.
    #[doc(hidden)]
    fn increment(&self, choice: usize) -> u64;
    /// Whether a cell of this value may hold this increment.
    #[doc(hidden)]
    fn passes(&self, value: u64, choice: usize) -> bool;
    /// The share of all increments that a cell of this value lets pass.
    #[doc(hidden)]
    fn share_passing(&self, value: u64) -> f64;
    /// The cell that holds what both hold; `None` when that is too much and must be refused.
    #[doc(hidden)]
    fn join(&self, a: u64, b: u64) -> Option<u64>;
    /// The cell without this increment; `None` when it certainly does not hold it.
    #[doc(hidden)]
    fn without(&self, value: u64, choice: usize) -> Option<u64>;
    /// Whether a cell of this value no longer tells what it holds, and never changes again.
    #[doc(hidden)]
    fn is_stuck(&self, value: u64) -> bool;
    /// Whether all cells are such as insertions leave. In any other, what is inserted may not be found.
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

/// The high half of `x * cells` is the cell of a probe; the low half, which is where in the cell `x` falls, chooses the
/// increment.
#[inline(always)]
fn choice<R: Rule>(rule: &R, x: u64) -> usize {
    rule.choice(x.wrapping_mul(rule.cells().cells()))
}

/// A cell, and which increment a probe adds to it.
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

/// Adds every probe to its cell; `false`, and nothing has changed, when one of the cells refuses.
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

/// Takes every probe from its cell; `false`, and nothing has changed, when one of the cells cannot hold it.
///
/// One after the other is as strict as the sum of the probes that share a cell: what is left after the last of them
/// could not have been there without being there after each.
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

/// Takes a key with these probes from its cells, unless it certainly is not there or all its cells are stuck.
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

/// Goes back over probes that were added or taken. What was possible forth is possible back, and a stuck cell has not
/// moved.
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

/// A filter whose cells are counters: [`Counting`](crate::Counting) or [`VariableIncrement`](crate::VariableIncrement).
///
/// There are no false negatives as long as only what was inserted is removed.
pub struct Counters<R: Rule> {
    pub(super) rule: R,
    pub(super) words: Words,
    pub(super) head: Head,
}

impl<R: Rule> Counters<R> {
    /// An empty filter for `capacity` keys with a false-positive rate of `rate`, hashed with the fast hash.
    pub fn with_capacity(capacity: u64, rate: f64) -> Result<Counters<R>> {
        Counters::build(&Spec::new(capacity, rate)?)
    }

    /// An empty filter of exactly this rule.
    pub fn with_rule(rule: R, hasher: Hasher) -> Result<Counters<R>> {
        Counters::with_head(rule, Head::new(hasher))
    }

    fn with_head(rule: R, head: Head) -> Result<Counters<R>> {
        Ok(Counters { words: Words::zeroed(rule.cells().lines())?, rule, head })
    }

    /// The rule.
    pub fn rule(&self) -> &R {
        &self.rule
    }

    /// The memory; [`Rule::cells`] says how the cells lie in it.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// The value of each cell.
    pub fn values(&self) -> impl Iterator<Item = u64> {
        self.rule.cells().iter(self.words.words())
    }

    /// How many cells are stuck: they have overflowed, let everything pass, and no removal will ever empty them.
    pub fn stuck_cells(&self) -> u64 {
        self.count(|value| self.rule.is_stuck(value))
    }

    fn count(&self, counts: impl Fn(u64) -> bool) -> u64 {
        self.values().filter(|value| counts(*value)).count() as u64
    }

    fn shape(&self) -> Shape {
        Shape::Standard { bits: self.rule.cells().cells(), hashes: self.rule.hashes() }
    }

    /// Replaces every cell by `operation` of it and the other's; if one is `None`, nothing changes.
    fn combine(&mut self, other: &Self, operation: impl Fn(&R, u64, u64) -> Option<u64>) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        let (rule, cells) = (&self.rule, self.rule.cells());
        let refused = |(ours, theirs)| operation(rule, ours, theirs).is_none();
        // What is not too much for two full cells is not for any.
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

/// An error about a size, which is told in cells of `width` bits though it was asked for in bits.
pub(crate) fn in_cells(error: Error, width: u64) -> Error {
    match error {
        Error::Parameter { name: "m", got, needs } => {
            let needs = format!("{needs} (counted in counters of {width} bits)");
            Error::Parameter { name: "m", got, needs }
        }
        Error::Contradiction { settings, why } => {
            Error::Contradiction { settings, why: format!("{why} (counted in counters of {width} bits)") }
        }
        other => other,
    }
}

/// The plan of a rule.
pub(crate) fn planned<R: Rule>(spec: &Spec, rule: &R, capacity: u64, rate: f64, exact: u64) -> Result<Plan> {
    let (cells, hashes) = (rule.cells(), rule.hashes());
    // A cell whose width does not divide a line may lie in two.
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
        Stats {
            cells: cells.cells(),
            used_cells,
            bits: cells.bits(),
            hashes: self.rule.hashes(),
            bytes: cells.lines() * LINE_BYTES as u64,
            estimate: self.shape().cardinality(used_cells).unwrap_or(Cardinality::Saturated),
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
            // With each key, the cells of one of the next tile.
            scattered::fetch_to_insert(*rule, self.words, next.digests().get(i..=i).unwrap_or_default());
            self.add(*rule, *digest)?;
        }
        Ok(())
    }
}

impl<R: Rule> Remove for Counters<R> {
    /// A key all of whose cells are stuck is [`Removed::NotDeletable`].
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

    /// Adds the counters: a key that is in both can be removed twice.
    fn union(&mut self, other: &Counters<R>) -> Result<()> {
        self.combine(other, |rule, a, b| rule.join(a, b))
    }

    /// Keeps of two cells the one that lets fewer keys pass, the smaller if both let as many. Each is the sum of what its
    /// own set has put there, and so holds everything of a key that is in both sets: whichever is kept, such a key is
    /// found, and can be removed.
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
