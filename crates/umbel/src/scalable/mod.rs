//! A filter for an unknown number of keys: it grows by opening larger and stricter stages, and its rate never exceeds
//! the one asked for. (Almeida et al. 2007)
//!
//! ```
//! use umbel::{Filter, Insert, Scalable};
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
//! Keys go into the newest stage, until it has as many as it is for. A key that the filter has already, or seems to
//! have, is not inserted again. Lookups go from the newest stage, which has most of the keys, to the oldest.
//!
//! Growing has a price. Bits: at 1 %, 14 per key in a full first stage and 18 in eight full ones, and up to twice that
//! while the newest is still empty. Time: a key that is not there is asked for in every stage, and eight of them take
//! about seven times as long as one filter. Who knows the number of keys beforehand is better off with
//! [`Blocked`](crate::Blocked).

use crate::algebra::{Algebra, Mismatch};
use crate::chain::{self, Group, Link};
use crate::file::FormatError;
use crate::filter::check_tile;
use crate::sizing::Shape;
use crate::sizing::scalable::{Schedule, automatic, compact, compound, partitioned, shape_rate};
use crate::structure::{self, BITS, Head, Parts, Probe, small};
use crate::words::{Mover, Words, relocate_vec};
use crate::{
    Answers, AnyFilter, Batch, Can, Design, Digest, Error, Filter, Hasher, Insert, Kind, Level, Plan, Result,
    Set, Spec, Stats, Structure,
};

/// How a scalable filter grows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// r: by which the rate of each stage is lower than that of the one before, above 0 and below 1. From 0.8 to 0.9
    /// takes the least space.
    pub tightening: f64,
    /// s: how many times the keys of one stage the next one holds. 2 wastes little; 4 makes fewer stages, which is
    /// better for much growth.
    pub growth: u32,
    /// What the stages are.
    pub stage: Stage,
}

impl Default for Options {
    fn default() -> Options {
        Options { tightening: 0.85, growth: 2, stage: Stage::Automatic }
    }
}

/// What the stages of a scalable filter are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Blocked ones, or standard ones where these would be small.
    #[default]
    Automatic = 0,
    /// As in the paper: k = ceil(log2 1/P_i) slices of ceil(n_i / ln 2) bits.
    Partitioned = 1,
    /// Blocked ones, or standard ones where these would be below 64 KiB: a tenth less memory, and more time, while the
    /// filter is small.
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

/// One stage, as it is now.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct StageInfo {
    /// What filter it is.
    pub kind: Kind,
    /// Keys it is for.
    pub capacity: u64,
    /// Keys it has.
    pub keys: u64,
    /// The rate it does not exceed when it is full.
    pub rate: f64,
    /// Bits that keys can land on.
    pub bits: u64,
    /// Bits that a key sets.
    pub hashes: u32,
}

/// A filter that grows; see the [module](self).
#[derive(Debug)]
pub struct Scalable {
    head: Head,
    schedule: Schedule,
    stage: Stage,
    /// Full stages, the oldest first.
    older: Vec<Link>,
    /// The one that takes keys.
    newest: Link,
    /// Whether all of the memory can be changed.
    owned: bool,
}

impl Scalable {
    /// An empty filter with room for `capacity` keys in its first stage, and with a rate of at most `rate` however many
    /// there will be.
    pub fn with_capacity(capacity: u64, rate: f64) -> Result<Scalable> {
        Scalable::build(&Spec::new(capacity, rate)?)
    }

    /// How it grows.
    pub fn schedule(&self) -> Schedule {
        self.schedule
    }

    /// The stages, the oldest first.
    pub fn stages(&self) -> impl Iterator<Item = StageInfo> {
        self.links().enumerate().map(|(i, link)| StageInfo {
            kind: link.filter.kind(),
            capacity: self.schedule.stage_capacity(i),
            keys: link.keys,
            rate: self.schedule.stage_rate(i),
            bits: link.size.bits,
            hashes: link.size.hashes,
        })
    }

    /// All stages, the oldest first.
    fn links(&self) -> impl DoubleEndedIterator<Item = &Link> + Clone {
        self.older.iter().chain(std::iter::once(&self.newest))
    }

    /// The filters of all stages in the order in which they are asked.
    fn filters(&self) -> impl Iterator<Item = &AnyFilter> + Clone {
        self.links().rev().map(|link| &*link.filter)
    }

    /// What stage `i` is for.
    fn stage_design(schedule: &Schedule, i: usize) -> Design {
        Design { capacity: schedule.stage_capacity(i), rate: schedule.stage_rate(i) }
    }

    /// An empty filter of one stage.
    fn first(head: Head, schedule: Schedule, stage: Stage) -> Result<Scalable> {
        let design = Scalable::stage_design(&schedule, 0);
        let newest = Link::new(stage.shape(design.capacity, design.rate)?, &head)?;
        Ok(Scalable { head, schedule, stage, older: Vec::new(), newest, owned: true })
    }

    /// How many keys the newest stage still takes.
    fn room(&self) -> u64 {
        self.schedule.stage_capacity(self.older.len()).saturating_sub(self.newest.keys)
    }

    /// Opens another stage.
    fn open(&mut self) -> Result<()> {
        let i = self.older.len() + 1;
        let full = |why: String| Error::Full { kind: Kind::Scalable, why };
        if i >= Schedule::MAX_STAGES {
            return Err(full(format!("it has {i} stages; build one with a larger capacity or growth")));
        }
        let design = Scalable::stage_design(&self.schedule, i);
        // What digests of 64 bits that coincide add to the rate has to stay below one hundredth of it.
        let keys = (0..=i).map(|i| self.schedule.stage_capacity(i) as f64).sum::<f64>();
        if 100.0 * keys / 2f64.powi(64) > self.schedule.rate() {
            return Err(full("digests of 64 bits cannot tell more keys apart at this rate".into()));
        }
        let shape =
            self.stage.shape(design.capacity, design.rate).map_err(|error| full(error.to_string()))?;
        let stage = Link::new(shape, &self.head)?;
        self.older.push(std::mem::replace(&mut self.newest, stage));
        Ok(())
    }

    /// Inserts a group of digests in order; `new` learns which of them were new.
    fn insert_group(&mut self, group: &mut Group, mut new: impl FnMut(&Group, usize)) -> Result<()> {
        chain::check_owned(self.owned)?;
        group.ask(self.older.iter().rev().map(|link| &*link.filter));
        group.drop_found();
        loop {
            let room = self.room();
            let digests = group.missing();
            let done = self.newest.fill(digests, room, |i| new(group, i))?;
            if done == digests.len() {
                break;
            }
            // It is full, and for the rest one of those that are only asked.
            group.skip(done);
            group.ask(std::iter::once(&*self.newest.filter));
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

impl structure::sealed::Sealed for Scalable {}

/// The parameters of a file before those of the stages, and of each stage.
const FIXED_PARAMS: usize = 5;
const STAGE_PARAMS: usize = 4;

impl Structure for Scalable {
    const KIND: Kind = Kind::Scalable;

    const CAN: Can = Can { grow: true, union: true, ..Can::NOTHING };

    /// The plan of the first stage: `rate` is what it has when it is full, and `rate_asked` what all stages together do
    /// not exceed.
    fn plan(spec: &Spec) -> Result<Plan> {
        let Options { tightening, growth, stage } = spec.tuning().scalable;
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

    /// By the schedule, with as many stages as `n` keys need.
    fn predicted_rate(&self, n: u64) -> Result<f64> {
        let (mut rates, mut rest) = (Vec::new(), n);
        while rest > 0 {
            let i = rates.len();
            if i >= Schedule::MAX_STAGES {
                return Err(Error::parameter("n", n, format!("no more keys than {i} stages hold")));
            }
            let Design { capacity, rate } = Scalable::stage_design(&self.schedule, i);
            let shape = match self.links().nth(i) {
                Some(link) => link.shape,
                None => self.stage.shape(capacity, rate)?,
            };
            rates.push(shape_rate(shape, rest.min(capacity))?);
            rest -= rest.min(capacity);
        }
        Ok(compound(rates))
    }

    fn try_clone_owned(&self) -> Result<Scalable> {
        Ok(Scalable {
            head: self.head.clone(),
            older: self.older.iter().map(Link::try_clone_owned).collect::<Result<_>>()?,
            newest: self.newest.try_clone_owned()?,
            owned: true,
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

    /// n_0, P, r, s and what the stages are; then of each stage its kind, the two numbers of its layout, and its keys.
    fn params(&self) -> Vec<u64> {
        let schedule = &self.schedule;
        let (rate, tightening) = (schedule.rate().to_bits(), schedule.tightening().to_bits());
        let mut params =
            vec![schedule.capacity(), rate, tightening, schedule.growth().into(), self.stage as u64];
        for link in self.links() {
            params.extend(link.numbers());
            params.push(link.keys);
        }
        params
    }

    fn sections(&self) -> Vec<(u32, &Words)> {
        let words = self.links().flat_map(|link| link.filter.sections());
        words.map(|words| (BITS, words)).collect()
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.older.iter_mut().for_each(|link| link.relocate(mover));
        self.newest.relocate(mover);
        relocate_vec(&mut self.older, mover);
    }

    fn restore(mut parts: Parts) -> Result<Scalable> {
        let params = std::mem::take(&mut parts.params);
        let Some((&[capacity, rate, tightening, growth, stage], stages)) =
            params.split_first_chunk::<FIXED_PARAMS>()
        else {
            return Err(FormatError::invalid("there are too few parameters").into());
        };
        let (stages, rest) = stages.as_chunks::<STAGE_PARAMS>();
        let (claimed, sections) = (stages.len(), parts.sections.len());
        if !rest.is_empty() || claimed != sections || claimed > Schedule::MAX_STAGES {
            let what = format!("it claims {claimed} stages, and has {sections} sections");
            return Err(FormatError::invalid(what).into());
        }
        let schedule =
            Schedule::new(capacity, f64::from_bits(rate), f64::from_bits(tightening), small(growth))?;
        let stage = match stage {
            0 => Stage::Automatic,
            1 => Stage::Partitioned,
            2 => Stage::Compact,
            other => return Err(FormatError::Unknown { what: format!("stages of type {other}") }.into()),
        };
        let owned = parts.sections.as_slice().iter().all(|(_, words)| words.is_owned());
        let mut older = Vec::new();
        for (i, &[kind, a, b, keys]) in stages.iter().enumerate() {
            let design = Scalable::stage_design(&schedule, i);
            if keys > design.capacity {
                return Err(FormatError::invalid(format!("stage {i} claims {keys} keys")).into());
            }
            older.push(Link::restore(&mut parts, [kind, a, b], keys)?);
        }
        let Some(newest) = older.pop() else {
            return Err(FormatError::invalid("it has no stages").into());
        };
        Ok(Scalable { head: parts.finish()?, schedule, stage, older, newest, owned })
    }

    fn check_contents(&self) -> Result<(), FormatError> {
        self.links().try_for_each(|link| link.filter.check_contents())
    }

    fn set_level(&mut self, level: Level) {
        self.head.level = level;
        chain::set_level(&mut self.older, level);
        self.newest.filter.set_level(level);
    }
}

impl Set for Scalable {
    fn build(spec: &Spec) -> Result<Scalable> {
        let plan = Scalable::plan(spec)?;
        let Options { tightening, growth, stage } = spec.tuning().scalable;
        let schedule = Schedule::new(plan.capacity, plan.rate_asked, tightening, growth)?;
        Scalable::first(Head::planned(spec, &plan), schedule, stage)
    }

    fn clear(&mut self) -> Result<()> {
        chain::check_owned(self.owned)?;
        *self = self.try_clone_empty()?;
        Ok(())
    }

    fn try_clone_empty(&self) -> Result<Scalable> {
        Scalable::first(self.head.emptied(), self.schedule, self.stage)
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
        self.filters().any(|filter| filter.contains_digest(digest))
    }

    fn contains_tile(&self, tile: &[Digest]) -> u64 {
        chain::contains_tile(self.filters(), tile)
    }

    fn stats(&self) -> Stats {
        let bits = self.links().map(|link| link.size.bits).sum();
        let stats = Stats {
            cells: bits,
            bits,
            hashes: self.newest.size.hashes,
            bytes: self.links().map(|link| link.size.bytes).sum(),
            details: vec![("stages", self.links().count() as f64)],
            ..Stats::of(self)
        };
        chain::sum_up(stats, self.links())
    }

    fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        chain::contains_batch(&self.head, self.filters(), keys)
    }
}

impl Insert for Scalable {
    fn insert_digest(&mut self, digest: Digest) -> Result<bool> {
        chain::check_owned(self.owned)?;
        let full = self.room() == 0;
        // One that takes keys knows itself whether it has had this one.
        let known = self.filters().skip(usize::from(!full)).any(|filter| filter.contains_digest(digest));
        let mut new = false;
        if !known {
            if full {
                self.open()?;
            }
            new = self.newest.filter.insert_digest(digest)?;
            self.newest.keys += u64::from(new);
        }
        self.head.count_inserted(1);
        Ok(new)
    }

    fn insert_tile(&mut self, tile: &[Digest]) -> Result<()> {
        self.insert_group(&mut Group::of(self.head.level, tile), |_, _| ())
    }

    fn insert_tile_new(&mut self, tile: &[Digest]) -> Result<u64> {
        check_tile(tile)?;
        let mut new = 0;
        self.insert_group(&mut Group::of(self.head.level, tile), |group, i| new |= 1 << group.place(i))?;
        Ok(new)
    }

    fn insert_batch<B: Batch + ?Sized>(&mut self, keys: &B) -> Result<()> {
        let head = self.head.clone();
        Group::each(&head, keys, |group| self.insert_group(group, |_, _| ()))
    }
}

impl Algebra for Scalable {
    fn mismatch(&self, other: &Scalable) -> Option<Mismatch> {
        let (ours, theirs) = (&self.schedule, &other.schedule);
        Mismatch::of("capacity of the first stage", ours.capacity(), theirs.capacity())
            .or_else(|| Mismatch::of("rate", ours.rate(), theirs.rate()))
            .or_else(|| Mismatch::of("tightening", ours.tightening(), theirs.tightening()))
            .or_else(|| Mismatch::of("growth", ours.growth(), theirs.growth()))
            .or_else(|| Mismatch::of("type of stages", self.stage as u64, other.stage as u64))
            .or_else(|| Mismatch::of_hashes(self.head.hasher.id(), other.head.hasher.id()))
            .or_else(|| {
                let mut pairs = self.links().zip(other.links());
                pairs.find_map(|(ours, theirs)| ours.filter.mismatch(&theirs.filter))
            })
    }

    /// Stage by stage, as long as no stage then has more keys than it is for; there the rate would exceed the one
    /// promised, and it is refused. A stage that was closed is full, so two filters of which both have grown cannot be
    /// united.
    fn union(&mut self, other: &Scalable) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        chain::check_owned(self.owned)?;
        for (i, (ours, theirs)) in self.links().zip(other.links()).enumerate() {
            let (keys, capacity) = (ours.keys.saturating_add(theirs.keys), self.schedule.stage_capacity(i));
            if keys > capacity {
                let why = format!(
                    "stage {i} of the union would have {keys} keys and is for {capacity}; insert the keys"
                );
                return Err(Error::Full { kind: Kind::Scalable, why });
            }
        }
        let further = other.links().skip(self.older.len() + 1).map(Link::try_clone_owned);
        let further = further.collect::<Result<Vec<_>>>()?;
        let ours = self.older.iter_mut().chain(std::iter::once(&mut self.newest));
        for (ours, theirs) in ours.zip(other.links()) {
            ours.filter.union(&theirs.filter)?;
            ours.keys += theirs.keys;
        }
        for link in further {
            self.older.push(std::mem::replace(&mut self.newest, link));
        }
        self.head.inserted = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
