//! Unions of scalable filters, and intersections and overlaps of those that have not grown yet.

use super::{Kind, Part, Scalable, Schedule};
use crate::algebra::{Algebra, Mismatch};
use crate::sizing::Overlap;
use crate::{BloomFilter, Error, Result};
use std::cmp::Reverse;

impl Algebra for Scalable {
    fn mismatch(&self, other: &Scalable) -> Option<Mismatch> {
        let (ours, theirs) = (&self.schedule, &other.schedule);
        Mismatch::between("capacity of the first stage", ours.capacity(), theirs.capacity())
            .or_else(|| Mismatch::between("rate", ours.rate(), theirs.rate()))
            .or_else(|| Mismatch::between("tightening", ours.tightening(), theirs.tightening()))
            .or_else(|| Mismatch::between("growth", ours.growth(), theirs.growth()))
            .or_else(|| Mismatch::between("type of stages", self.stage as u64, other.stage as u64))
            .or_else(|| Mismatch::between_hashes(self.head.hasher.id(), other.head.hasher.id()))
            .or_else(|| {
                other.parts().find_map(|theirs| {
                    let mut same = self.parts().filter(|ours| ours.stage == theirs.stage);
                    same.find_map(|ours| ours.link.filter.mismatch(&theirs.link.filter))
                })
            })
    }

    /// Two filters of the same stage become one if it then holds no more keys than it is planned
    /// for. Otherwise both are kept and searched, and the promised rate increases by that of the
    /// stage.
    ///
    /// ```
    /// use umbel::Scalable;
    ///
    /// let mut filter = Scalable::with_capacity(1000, 0.01)?;
    /// let mut other = Scalable::with_capacity(1000, 0.01)?;
    /// filter.insert_batch(&(0..5000u64).collect::<Vec<_>>())?;
    /// other.insert_batch(&(5000..10_000u64).collect::<Vec<_>>())?;
    /// filter.union(&other)?;
    /// assert!(filter.contains(&1u64) && filter.contains(&9999u64));
    /// assert!(filter.design().is_some_and(|design| design.rate > 0.01 && design.rate < 0.02));
    /// # Ok::<(), umbel::Error>(())
    /// ```
    fn union(&mut self, other: &Scalable) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        // Everything that can fail comes first.
        let (mut joined, mut added) = (Vec::new(), Vec::new());
        let mut free = vec![true; self.older.len() + 1];
        for theirs in other.parts() {
            match self.place_for(theirs, &free)? {
                Some((place, keys)) => {
                    free[place] = false;
                    joined.push((place, theirs, keys));
                }
                // A stage without keys adds nothing.
                None if theirs.link.filter.stats().used_cells == 0 => {}
                None => added.push(theirs.try_clone()?),
            }
        }
        let promised = self.promised(added.iter().map(|part| part.stage));
        let parts = self.older.len() + 1 + added.len();
        if promised >= 1.0 || parts > Schedule::MAX_STAGES {
            let why = format!("the union would have {parts} stages, and a rate of {promised:.2}");
            return Err(Error::Full { kind: Kind::Scalable, why });
        }
        for (place, theirs, keys) in joined {
            let ours = if place < self.older.len() { &mut self.older[place] } else { &mut self.newest };
            ours.link.filter.union(&theirs.link.filter)?;
            ours.link.keys = keys;
        }
        added.into_iter().for_each(|part| self.put(part));
        if let Some(design) = &mut self.head.design {
            design.rate = promised.max(design.rate);
        }
        self.head.inserted = None;
        Ok(())
    }

    /// Only for filters that have not grown; see [`Scalable::overlap`].
    fn intersect(&mut self, other: &Scalable) -> Result<()> {
        self.singles(other, "be intersected")?;
        let (ours, theirs) = (&mut self.newest.link, &other.newest.link);
        ours.filter.intersect(&theirs.filter)?;
        ours.keys = ours.keys.min(theirs.keys);
        self.head.inserted = None;
        Ok(())
    }

    /// Estimates how many keys two filters that have not grown have in common. In grown filters, a
    /// common key may be in different stages.
    fn overlap(&self, other: &Scalable) -> Result<Option<Overlap>> {
        let [ours, theirs] = self.singles(other, "be compared")?;
        ours.overlap(theirs)
    }
}

/// The number of our stages that one of the other filter is compared with. Each comparison counts
/// all bits of both.
const MAX_COMPARED: usize = 4;

impl Scalable {
    /// Returns the filters of both if they have not grown.
    fn singles<'a>(&'a self, other: &'a Scalable, what: &'static str) -> Result<[&'a BloomFilter; 2]> {
        Mismatch::refuse(self.mismatch(other))?;
        let why = "they have grown, and a key may be in another stage of each; build them for as many keys as they have";
        let both = self.single().zip(other.single());
        both.map(|(ours, theirs)| [ours, theirs]).ok_or_else(|| Error::cannot(Kind::Scalable, what, why))
    }

    /// Finds a free stage of ours that can absorb one of theirs. Returns its index and the number
    /// of keys it then has.
    fn place_for(&self, theirs: &Part, free: &[bool]) -> Result<Option<(usize, u64)>> {
        let same = self.parts().enumerate().filter(|(i, ours)| free[*i] && ours.stage == theirs.stage);
        for (place, ours) in same.take(MAX_COMPARED) {
            let keys = self.united(ours, theirs)?;
            if keys <= self.schedule.stage_capacity(ours.stage) {
                return Ok(Some((place, keys)));
            }
        }
        Ok(None)
    }

    /// Returns the number of keys that two stages have together. If the sum exceeds the capacity,
    /// some keys may be in both, so the number is estimated from the bits.
    fn united(&self, ours: &Part, theirs: &Part) -> Result<u64> {
        let (a, b) = (ours.link.keys, theirs.link.keys);
        let overlap = ours.link.filter.overlap(&theirs.link.filter)?;
        // If one has all bits of the other, as after an earlier union, the other adds nothing.
        match &overlap {
            Some(overlap) if overlap.union.value <= overlap.left.value => return Ok(a),
            Some(overlap) if overlap.union.value <= overlap.right.value => return Ok(b),
            _ => {}
        }
        let sum = a.saturating_add(b);
        if sum <= self.schedule.stage_capacity(ours.stage) {
            return Ok(sum);
        }
        let most = overlap.map(|overlap| overlap.union.value + 2.0 * overlap.union.standard_error);
        Ok(most.map_or(sum, |most| (most.ceil() as u64).clamp(a.max(b), sum)))
    }

    /// Returns the limit of the rate, however many keys are inserted, with these stages in addition
    /// to its own.
    fn promised(&self, added: impl Iterator<Item = usize> + Clone) -> f64 {
        let stages = self.parts().map(|part| part.stage).chain(added);
        let next = stages.clone().max().map_or(0, |last| last + 1);
        // All stages that follow: P_0 (r^next + r^(next+1) + ...).
        let tail = self.schedule.rate() * self.schedule.tightening().powi(next as i32);
        stages.map(|stage| self.schedule.stage_rate(stage)).sum::<f64>() + tail
    }

    /// Adds a stage at its place. Among the highest stages, the one with the most room accepts
    /// keys.
    fn put(&mut self, mut part: Part) {
        let rank = |part: &Part| (part.stage, Reverse(part.link.keys));
        if rank(&part) > rank(&self.newest) {
            std::mem::swap(&mut part, &mut self.newest);
        }
        let place = self.older.partition_point(|other| other.stage <= part.stage);
        self.older.insert(place, part);
    }
}
