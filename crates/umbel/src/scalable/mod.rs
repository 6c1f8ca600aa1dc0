//! Scalable Bloom filters: sets for an unknown number of keys. The filter grows by adding larger
//! and stricter stages, and its rate never exceeds the requested one.
//!
//! ```
//! use umbel::Scalable;
//! // Room for 1000 keys to begin with; there will be fifty times as many.
//! let mut filter = Scalable::with_capacity(1000, 0.01)?;
//! let keys: Vec<u64> = (0..50_000).collect();
//! filter.insert_batch(&keys)?;
//! assert_eq!(filter.contains_batch(&keys).count(), 50_000);
//! assert_eq!(filter.stages().count(), 6);
//! assert!(filter.stats().rate_now < 0.01);
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # How it works
//!
//! Keys go into the newest stage until it is full; then a stage is added that holds twice as many
//! keys at 0.85 times the rate. A key that the filter already seems to contain is not inserted
//! again. A lookup goes from the newest stage, which has most of the keys, to the oldest.
//!
//! ```text
//! stage 0   [==]                      1000 keys, full
//! stage 1   [====]                    2000 keys, full
//! stage 2   [========]                4000 keys, full
//! stage 3   [=====           ]        8000 keys, the newest: takes the keys
//! ```
//!
//! The rates of the stages form a geometric series whose sum is the requested rate. Only a union
//! can exceed it: where two stages hold too many keys to become one, the union keeps both and
//! reports the higher rate.
//!
//! # When to use it
//!
//! Use it when the number of keys is not known. If it is, use a plain Bloom filter, since growing
//! costs memory and time. At 1 %, a key takes 14 bits in a full first stage and 18 in eight full
//! ones, and up to twice as much while the newest stage is empty. A lookup of an absent key
//! searches every stage: with eight stages, a batch takes about five times as long as in a single
//! blocked filter, and about three times as long for keys that are present.
//!
//! # References
//!
//! * P. S. Almeida, C. Baquero, N. Preguiça and D. Hutchison. *Scalable Bloom filters.* Information
//!   Processing Letters 101(6), 2007. `ABPH07`

use crate::chain::{self, Group, Link};
use crate::file::FormatError;
use crate::memory::{Mover, Words, relocate_vec};
use crate::methods::{
    intersect_methods, overlap_methods, set_methods, structure_methods, try_insert_methods, union_methods,
};
use crate::sizing::Shape;
use crate::sizing::scalable::{Schedule, automatic, compact, compound, partitioned, shape_rate};
use crate::structure::{self, BITS, Head, Parts, Probe, small};
use crate::tile::split_tile;
use crate::{
    Answers, Batch, BloomFilter, Capabilities, Design, Digest, Error, Filter, Hasher, Insert, Kind, Level,
    Plan, Result, Set, Spec, Stats, Structure,
};

/// The options of a scalable filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The factor r from the rate of each stage to that of the next, above 0 and below 1. Values
    /// from 0.8 to 0.9 take the least space.
    pub tightening: f64,
    /// The factor s from the capacity of each stage to that of the next. 2 wastes little; 4 makes
    /// fewer stages, which is better for much growth.
    pub growth: u32,
    /// The kind of filter that stages are.
    pub stage: Stage,
}

impl Default for Options {
    fn default() -> Options {
        Options { tightening: 0.85, growth: 2, stage: Stage::Automatic }
    }
}

/// The kind of filter that the stages are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Blocked filters, or standard ones while they are small.
    #[default]
    Automatic = 0,
    /// Partitioned filters as in Almeida et al. 2007: `k = ceil(log2(1 / P_i))` slices of
    /// `ceil(n_i / ln 2)` bits.
    Partitioned = 1,
    /// Blocked filters, or standard ones below 64 KiB. While the filter is small, this takes a
    /// tenth less memory, and more time.
    Compact = 2,
}

impl Stage {
    fn shape(self, n: u64, p: f64) -> Result<Shape> {
        match self {
            Stage::Automatic => automatic(n, p),
            Stage::Partitioned => partitioned(n, p),
            Stage::Compact => compact(n, p),
        }
    }
}

/// The current state of one stage.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct StageInfo {
    /// The kind of its filter.
    pub kind: Kind,
    /// The number of keys it is planned for.
    pub capacity: u64,
    /// The number of keys it holds.
    pub keys: u64,
    /// The largest rate it has when it is full.
    pub rate: f64,
    /// The number of bits that keys can set.
    pub bits: u64,
    /// The number of bits that each key sets.
    pub hashes: u32,
}

/// A set that grows; see the [module documentation](self).
pub struct Scalable {
    head: Head,
    schedule: Schedule,
    stage: Stage,
    /// The stages that accept no more keys, lowest first.
    older: Vec<Part>,
    /// The stage that accepts keys. No stage is higher.
    newest: Part,
}

/// A filter of the chain, and the index of its stage in the schedule. After a union, several
/// filters may have the same stage.
#[derive(Debug)]
struct Part {
    link: Link,
    stage: usize,
}

impl Part {
    fn try_clone(&self) -> Result<Part> {
        Ok(Part { link: self.link.try_clone()?, stage: self.stage })
    }
}

impl Scalable {
    /// Creates an empty filter with room for `capacity` keys in its first stage. Its rate is at
    /// most `rate`, however many keys are inserted.
    ///
    /// # Errors
    ///
    /// Returns an error if `capacity` or `rate` is out of range, or if there is not enough memory.
    pub fn with_capacity(capacity: u64, rate: f64) -> Result<Scalable> {
        Scalable::build(&Spec::new(capacity, rate)?)
    }

    /// Returns the schedule by which the filter grows.
    pub fn schedule(&self) -> Schedule {
        self.schedule
    }

    /// Iterates over the stages, smallest first.
    pub fn stages(&self) -> impl Iterator<Item = StageInfo> {
        self.parts().map(|Part { link, stage }| StageInfo {
            kind: link.filter.kind(),
            capacity: self.schedule.stage_capacity(*stage),
            keys: link.keys,
            rate: self.schedule.stage_rate(*stage),
            bits: link.size.bits,
            hashes: link.size.hashes,
        })
    }

    /// Returns the filter that holds all keys, as long as this filter has not grown.
    pub fn single(&self) -> Option<&BloomFilter> {
        (self.older.is_empty() && self.newest.stage == 0).then_some(&self.newest.link.filter)
    }

    /// Iterates over all stages, oldest first.
    fn parts(&self) -> impl DoubleEndedIterator<Item = &Part> + Clone {
        self.older.iter().chain(std::iter::once(&self.newest))
    }

    /// Iterates over the filters of all stages, oldest first.
    fn links(&self) -> impl DoubleEndedIterator<Item = &Link> + Clone {
        self.parts().map(|part| &part.link)
    }

    /// Iterates over the filters of all stages in the order of a lookup.
    fn filters(&self) -> impl Iterator<Item = &BloomFilter> + Clone {
        self.links().rev().map(|link| &*link.filter)
    }

    /// Returns the capacity and the rate of stage `i`.
    fn stage_design(schedule: &Schedule, i: usize) -> Design {
        Design { capacity: schedule.stage_capacity(i), rate: schedule.stage_rate(i) }
    }

    /// Creates an empty filter of one stage.
    fn first(head: Head, schedule: Schedule, stage: Stage) -> Result<Scalable> {
        let design = Scalable::stage_design(&schedule, 0);
        let newest = Link::new(stage.shape(design.capacity, design.rate)?, &head)?;
        let newest = Part { link: newest, stage: 0 };
        Ok(Scalable { head, schedule, stage, older: Vec::new(), newest })
    }

    /// Returns the head of the filter without its keys. Unions may have raised the rate; this
    /// restores the planned one.
    fn emptied(&self) -> Head {
        let mut head = self.head.emptied();
        if let Some(design) = &mut head.design {
            design.rate = self.schedule.rate();
        }
        head
    }

    /// Returns how many keys the newest stage still accepts; the next key after them opens another
    /// stage.
    pub fn room(&self) -> u64 {
        self.schedule.stage_capacity(self.newest.stage).saturating_sub(self.newest.link.keys)
    }

    /// Opens another stage.
    fn open(&mut self) -> Result<()> {
        let (parts, next) = (self.older.len() + 1, self.newest.stage + 1);
        let full = |why: String| Error::Full { kind: Kind::Scalable, why };
        if parts.max(next) >= Schedule::MAX_STAGES {
            return Err(full(format!("it has {parts} stages; build one with a larger capacity or growth")));
        }
        let design = Scalable::stage_design(&self.schedule, next);
        // Coinciding 64-bit digests must add less than one hundredth of the rate to it.
        let keys = self.stages().map(|stage| stage.capacity as f64).sum::<f64>() + design.capacity as f64;
        if 100.0 * keys / 2f64.powi(64) > self.schedule.rate() {
            return Err(full("digests of 64 bits cannot tell more keys apart at this rate".into()));
        }
        let shape =
            self.stage.shape(design.capacity, design.rate).map_err(|error| full(error.to_string()))?;
        let next = Part { link: Link::new(shape, &self.head)?, stage: next };
        self.older.push(std::mem::replace(&mut self.newest, next));
        Ok(())
    }

    /// Inserts a group of digests in order. Calls `new` with the index of each digest that was new.
    fn insert_group(&mut self, group: &mut Group, mut new: impl FnMut(&Group, usize)) -> Result<()> {
        group.query(self.older.iter().rev().map(|part| &*part.link.filter));
        group.drop_found();
        loop {
            let room = self.room();
            let digests = group.missing();
            let done = self.newest.link.fill(digests, room, |i| new(group, i));
            if done == digests.len() {
                break;
            }
            // The newest stage is full, so for the remaining digests it is only searched.
            group.skip(done);
            group.query(std::iter::once(&*self.newest.link.filter));
            group.drop_found();
            if group.missing().is_empty() {
                break;
            }
            if let Err(error) = self.open() {
                self.head.count_inserted(group.place(0));
                return Err(error);
            }
        }
        self.head.count_inserted(group.len());
        Ok(())
    }
}

structure_methods!([] Scalable);
set_methods!([] Scalable);
try_insert_methods!([] Scalable);
union_methods!([] Scalable);
intersect_methods!([] Scalable);
overlap_methods!([] Scalable);

impl structure::sealed::Sealed for Scalable {}

/// The number of parameters in a file before those of the stages.
const FIXED_PARAMS: usize = 5;
/// The number of parameters in a file for each stage.
const STAGE_PARAMS: usize = 4;

/// Added to the type of stages in a file if each stage has its index as another parameter.
const PLACED: u64 = 16;

impl Structure for Scalable {
    const KIND: Kind = Kind::Scalable;

    const CAPABILITIES: Capabilities =
        Capabilities { grow: true, union: true, intersect: true, ..Capabilities::NOTHING };

    /// Plans the first stage: `rate` is its rate when it is full, and `rate_asked` is the limit for
    /// all stages together.
    fn plan(spec: &Spec) -> Result<Plan> {
        let Options { tightening, growth, stage } = spec.options().scalable;
        let shape = |n, p| {
            let first = Scalable::stage_design(&Schedule::new(n, p, tightening, growth)?, 0);
            stage.shape(first.capacity, first.rate)
        };
        let (n, p) = chain::keys_and_rate(spec, |n, p| Ok(chain::measure(shape(n, p)?)?.bits))?;
        let shape = shape(n, p)?;
        let size = chain::measure(shape)?;
        spec.finish(Plan {
            kind: Kind::Scalable,
            capacity: n,
            bits: size.bits,
            stored_bits: size.bits,
            bytes: size.bytes,
            hashes: size.hashes,
            lines_touched: size.lines_touched,
            rate_asked: p,
            rate: shape_rate(shape, n)?,
        })
    }

    /// Predicts the rate by the schedule, with as many stages as `n` keys need.
    fn predicted_rate(&self, n: u64) -> Result<f64> {
        let (mut rates, mut rest) = (Vec::new(), n);
        let (mut parts, mut next) = (self.parts(), self.newest.stage + 1);
        while rest > 0 {
            if rates.len() >= Schedule::MAX_STAGES {
                let needs = format!("no more keys than {} stages hold", rates.len());
                return Err(Error::parameter("n", n, needs));
            }
            let (capacity, shape) = match parts.next() {
                Some(part) => (self.schedule.stage_capacity(part.stage), part.link.shape),
                None => {
                    let Design { capacity, rate } = Scalable::stage_design(&self.schedule, next);
                    next += 1;
                    (capacity, self.stage.shape(capacity, rate)?)
                }
            };
            rates.push(shape_rate(shape, rest.min(capacity))?);
            rest -= rest.min(capacity);
        }
        Ok(compound(rates))
    }

    fn try_clone(&self) -> Result<Scalable> {
        Ok(Scalable {
            head: self.head.clone(),
            older: self.older.iter().map(Part::try_clone).collect::<Result<_>>()?,
            newest: self.newest.try_clone()?,
            ..*self
        })
    }

    fn trace(&self, digest: Digest, probe: &mut dyn FnMut(Probe) -> Result<()>) -> Result<bool> {
        let sections = (0..=self.older.len()).rev();
        chain::trace(sections.zip(self.filters()), digest, probe)
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn head_mut(&mut self) -> &mut Head {
        &mut self.head
    }

    /// The parameters of a file: `n_0`, P, r, s and the type of stages; then, for each stage, its
    /// kind, the two numbers of its layout, and its keys. If several filters have the same stage,
    /// or a stage is missing, the index of the stage follows.
    fn params(&self) -> Vec<u64> {
        let schedule = &self.schedule;
        let (rate, tightening) = (schedule.rate().to_bits(), schedule.tightening().to_bits());
        let placed = self.parts().enumerate().any(|(i, part)| part.stage != i);
        let stage = self.stage as u64 + if placed { PLACED } else { 0 };
        let mut params = vec![schedule.capacity(), rate, tightening, schedule.growth().into(), stage];
        for Part { link, stage } in self.parts() {
            params.extend(link.numbers());
            params.push(link.keys);
            params.extend(placed.then_some(*stage as u64));
        }
        params
    }

    fn sections(&self) -> Vec<(u32, &Words)> {
        let words = self.links().map(|link| link.filter.words());
        words.map(|words| (BITS, words)).collect()
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.older.iter_mut().for_each(|part| part.link.relocate(mover));
        self.newest.link.relocate(mover);
        relocate_vec(&mut self.older, mover);
    }

    fn restore(mut parts: Parts) -> Result<Scalable> {
        let params = std::mem::take(&mut parts.params);
        let Some((&[capacity, rate, tightening, growth, stage], stages)) =
            params.split_first_chunk::<FIXED_PARAMS>()
        else {
            return Err(FormatError::invalid("there are too few parameters").into());
        };
        let placed = stage >= PLACED;
        let stages: Vec<&[u64]> = stages.chunks(STAGE_PARAMS + usize::from(placed)).collect();
        let whole = stages.last().is_some_and(|last| last.len() == STAGE_PARAMS + usize::from(placed));
        let (claimed, sections) = (stages.len(), parts.sections.len());
        if !whole || claimed != sections || claimed > Schedule::MAX_STAGES {
            let what = format!("it claims {claimed} stages, and has {sections} sections");
            return Err(FormatError::invalid(what).into());
        }
        let schedule =
            Schedule::new(capacity, f64::from_bits(rate), f64::from_bits(tightening), small(growth))?;
        let stage = match stage % PLACED {
            _ if stage >= 2 * PLACED => {
                return Err(FormatError::Unknown { what: format!("stages of type {stage}") }.into());
            }
            0 => Stage::Automatic,
            1 => Stage::Partitioned,
            2 => Stage::Compact,
            other => return Err(FormatError::Unknown { what: format!("stages of type {other}") }.into()),
        };
        let mut older: Vec<Part> = Vec::new();
        for (i, numbers) in stages.iter().enumerate() {
            let &&[kind, a, b, keys, ref place @ ..] = numbers else { continue };
            let place = place.first().map_or(i, |place| usize::try_from(*place).unwrap_or(usize::MAX));
            // Several filters may have the same stage; the last one accepts keys.
            let ordered = older.last().is_none_or(|last| last.stage <= place) && place < Schedule::MAX_STAGES;
            if !ordered || keys > schedule.stage_capacity(place) {
                return Err(FormatError::invalid(format!("stage {place} claims {keys} keys")).into());
            }
            older.push(Part { link: Link::restore(&mut parts, [kind, a, b], keys)?, stage: place });
        }
        let Some(newest) = older.pop() else {
            return Err(FormatError::invalid("it has no stages").into());
        };
        Ok(Scalable { head: parts.finish()?, schedule, stage, older, newest })
    }

    fn check_contents(&self) -> Result<(), FormatError> {
        self.links().try_for_each(|link| link.filter.check_contents())
    }

    fn set_level(&mut self, level: Level) {
        self.head.level = level;
        let parts = self.older.iter_mut().chain(std::iter::once(&mut self.newest));
        parts.for_each(|part| part.link.filter.set_level(level));
    }
}

impl Set for Scalable {
    fn build(spec: &Spec) -> Result<Scalable> {
        let plan = Scalable::plan(spec)?;
        let Options { tightening, growth, stage } = spec.options().scalable;
        let schedule = Schedule::new(plan.capacity, plan.rate_asked, tightening, growth)?;
        Scalable::first(Head::planned(spec, &plan), schedule, stage)
    }

    /// Keeps the smallest stage and its memory.
    fn clear(&mut self) {
        let rest = self.older.drain(..).next();
        if let Some(first) = rest {
            self.newest = first;
        }
        self.newest.link.clear();
        self.head = self.emptied();
    }

    fn try_clone_empty(&self) -> Result<Scalable> {
        Scalable::first(self.emptied(), self.schedule, self.stage)
    }
}

impl Filter for Scalable {
    fn kind(&self) -> Kind {
        Kind::Scalable
    }

    fn hasher(&self) -> &Hasher {
        &self.head.hasher
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        chain::contains_digest(self.head.level, self.filters(), digest)
    }

    fn contains_tile(&self, tile: &[Digest]) -> u64 {
        chain::contains_tile(self.filters(), tile)
    }

    fn stats(&self) -> Stats {
        let bits = self.links().map(|link| link.size.bits).sum();
        let stages: Vec<Stats> = self.links().map(|link| link.filter.stats()).collect();
        let stats = Stats {
            cells: bits,
            bits,
            hashes: self.newest.link.size.hashes,
            bytes: self.links().map(|link| link.size.bytes).sum(),
            estimate: self.cardinality(&stages),
            details: vec![("stages", stages.len() as f64)],
            ..Stats::from_structure(self)
        };
        chain::sum_up(stats, &stages)
    }

    fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        chain::contains_batch(&self.head, self.filters(), keys)
    }
}

impl Insert for Scalable {
    type Error = Error;

    fn insert_digest(&mut self, digest: Digest) -> Result<bool> {
        let full = self.room() == 0;
        // A stage that accepts keys finds out by itself whether it has the key.
        let others = self.filters().skip(usize::from(!full));
        let known = chain::contains_digest(self.head.level, others, digest);
        let mut new = false;
        if !known {
            if full {
                self.open()?;
            }
            new = self.newest.link.filter.insert_digest(digest);
            self.newest.link.keys += u64::from(new);
        }
        self.head.count_inserted(1);
        Ok(new)
    }

    fn insert_tile(&mut self, tile: &[Digest]) -> Result<()> {
        self.insert_group(&mut Group::from_digests(self.head.level, tile), |_, _| ())
    }

    fn insert_tile_new(&mut self, tile: &[Digest]) -> Result<u64> {
        let (tile, rest) = split_tile(tile);
        let mut new = 0;
        self.insert_group(&mut Group::from_digests(self.head.level, tile), |group, i| {
            new |= 1 << group.place(i)
        })?;
        self.insert_tile(rest)?;
        Ok(new)
    }

    fn insert_batch<B: Batch + ?Sized>(&mut self, keys: &B) -> Result<()> {
        let head = self.head.clone();
        Group::each(&head, keys, |group| self.insert_group(group, |_, _| ()))
    }
}

mod estimate;
mod union;

#[cfg(test)]
mod tests;
