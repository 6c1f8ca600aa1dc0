//! `CF.*`: cuckoo filters, from which items can be deleted.
//!
//! [`Cuckoos`] is the value: levels of filters, since a full one cannot grow. [`commands`] is what can be done with it.
//!
//! All filters have one shape, and a further level has more of them instead of larger ones: `expansion` times as many as
//! the one before. Which of them an item belongs to is a further hash, cut finer at every level. So items that look alike
//! in one level look alike in all older ones, and it makes no difference whose fingerprint is deleted. With filters of
//! different sizes it would: the fingerprint of another item, which looks alike only there, would be lost.

pub mod commands;

pub use commands::add_all;

use crate::config;
use crate::persist::Persist;
use crate::server::{Failure, Result, TypeHandle};
use std::ffi::CStr;
use umbel::any::Stored;
use umbel::cuckoo::{Options, Table};
use umbel::file::Storable;
use umbel::hash::reduce;

use umbel::memory::{Mover, Words, relocate_vec};
use umbel::sizing::CuckooParams;
use umbel::sizing::scalable::compound;
use umbel::{AnyFilter, Cuckoo, Digest, Hasher, Kind, Removed, Stats};

/// The most levels of a value.
const MAX_LEVELS: usize = 32;

/// The most filters in all levels of a value.
const MAX_FILTERS: usize = 10_000;

/// The most fingerprints that may move to make room for one.
pub const MAX_KICKS: u32 = 65_535;

/// The largest factor from the number of filters in one level to the next.
pub const MAX_EXPANSION: u32 = 32_768;

/// What a chain is to be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    /// How many items the first filter holds.
    pub capacity: u64,
    /// How many slots a bucket has.
    pub slots: u32,
    /// How many fingerprints move at most to make room for one.
    pub kicks: u32,
    /// How many times as many filters each level has as the one before; 0 if there is only one level.
    pub expansion: u32,
    /// How many bits a fingerprint has.
    pub bits: u32,
    /// The secret with which items are hashed.
    pub secret: [u8; 16],
}

impl Default for Design {
    /// As RedisBloom has it.
    fn default() -> Design {
        let capacity = config::get().cuckoo_size;
        Design { capacity, slots: 2, kicks: 20, expansion: 1, bits: 8, secret: config::secret() }
    }
}

/// Cuckoo filters under a key.
#[derive(Debug)]
pub struct Cuckoos {
    /// The oldest level first; there is one at least, with one filter.
    levels: Vec<Vec<Cuckoo>>,
    kicks: u32,
    expansion: u32,
    deleted: u64,
}

/// The shape of a filter.
fn table(capacity: u64, slots: u32, bits: u32) -> Result<Table> {
    let options = Options { slots, fingerprint_bits: Some(bits), ..Options::default() };
    let params = CuckooParams::for_fingerprints(capacity, &options)?;
    Ok(Table::new(params.buckets, bits, slots, params.form)?)
}

impl Cuckoos {
    /// Empty, with one filter.
    pub fn new(design: &Design) -> Result<Cuckoos> {
        let Design { capacity, slots, kicks, expansion, bits, secret } = *design;
        let table = table(capacity, slots, bits)?;
        config::check_memory(64 * table.lines())?;
        let first = Cuckoo::with_table(table, Hasher::keyed(secret))?;
        Ok(Cuckoos { levels: vec![vec![first]], kicks, expansion, deleted: 0 })
    }

    /// A filter that was made elsewhere.
    pub fn from_filter(filter: Cuckoo) -> Cuckoos {
        let Design { kicks, expansion, .. } = Design::default();
        Cuckoos { levels: vec![vec![filter]], kicks, expansion, deleted: 0 }
    }

    /// All filters, the oldest first.
    pub fn filters(&self) -> impl Iterator<Item = &Cuckoo> {
        self.levels.iter().flatten()
    }

    /// How many levels there are.
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// The first filter, to which all others are like.
    pub fn first(&self) -> &Cuckoo {
        self.levels[0].first().expect("there is one at least")
    }

    pub fn kicks(&self) -> u32 {
        self.kicks
    }

    pub fn expansion(&self) -> u32 {
        self.expansion
    }

    pub fn deleted(&self) -> u64 {
        self.deleted
    }

    /// How many items are in it.
    pub fn items(&self) -> u64 {
        self.filters().map(Cuckoo::len).sum()
    }

    pub fn digest(&self, item: &[u8]) -> Digest {
        self.first().hasher().digest_bytes(item)
    }

    /// The filter of each level that an item belongs to, the newest first.
    fn of(&self, digest: Digest) -> impl Iterator<Item = &Cuckoo> {
        self.levels.iter().rev().map(move |level| &level[which(digest, level.len())])
    }

    fn of_mut(&mut self, digest: Digest) -> impl Iterator<Item = &mut Cuckoo> {
        self.levels.iter_mut().rev().map(move |level| {
            let which = which(digest, level.len());
            &mut level[which]
        })
    }

    pub fn contains(&self, digest: Digest) -> bool {
        self.of(digest).any(|filter| filter.contains_digest(digest))
    }

    /// Which items of a tile it has.
    pub fn contains_tile(&self, tile: &[Digest]) -> u64 {
        self.levels.iter().fold(0, |found, level| match &level[..] {
            [filter] => found | filter.contains_tile(tile),
            filters => {
                let has = |digest: Digest| filters[which(digest, filters.len())].contains_digest(digest);
                tile.iter().enumerate().fold(found, |found, (i, digest)| found | u64::from(has(*digest)) << i)
            }
        })
    }

    /// How often an item was added, and whatever else looks like it.
    pub fn count(&self, digest: Digest) -> u64 {
        self.of(digest).map(|filter| u64::from(filter.count_digest(digest))).sum()
    }

    /// Adds an item, in a further level if there is no room in those that are there.
    pub fn add(&mut self, digest: Digest) -> Result<()> {
        let kicks = self.kicks;
        // If a slot is free, no fingerprint has to move.
        if self.of_mut(digest).any(|filter| filter.insert_digest_within(digest, 0).is_ok()) {
            return Ok(());
        }
        if self.of_mut(digest).take(1).any(|newest| newest.insert_digest_within(digest, kicks).is_ok()) {
            return Ok(());
        }
        self.grow()?;
        for newest in self.of_mut(digest).take(1) {
            newest.insert_digest_within(digest, kicks)?;
        }
        Ok(())
    }

    /// Opens another level.
    fn grow(&mut self) -> Result<()> {
        if self.expansion == 0 {
            return Err(Failure::new("Filter is full"));
        }
        let last = self.levels.last().map_or(1, Vec::len);
        let more = last.saturating_mul(self.expansion as usize);
        if self.levels.len() >= MAX_LEVELS || self.filters().count().saturating_add(more) > MAX_FILTERS {
            return Err(Failure::new("Maximum expansions reached"));
        }
        let _budget = config::budget(self.memory_bytes());
        let new = || Cuckoo::with_table(*self.first().table(), self.first().hasher().clone());
        let level = (0..more).map(|_| new()).collect::<umbel::Result<Vec<Cuckoo>>>()?;
        self.levels.push(level);
        Ok(())
    }

    /// Takes an item out once, of the newest level that has it; whether one had.
    pub fn remove(&mut self, digest: Digest) -> Result<bool> {
        let mut removed = false;
        for filter in self.of_mut(digest) {
            removed = filter.remove_digest(digest) == Removed::Removed;
            if removed {
                break;
            }
        }
        self.deleted = self.deleted.saturating_add(removed.into());
        Ok(removed)
    }

    /// Takes in all items of another chain, as often as they are in both: into filters that are cut as fine, or less; what
    /// finds no room there becomes further levels, if those have one filter each. In a finer cut nobody knows where an
    /// item belongs.
    pub fn merge(&mut self, other: &Cuckoos) -> umbel::Result<()> {
        if let Some(mismatch) = self.first().mismatch(other.first()) {
            return Err(umbel::Error::Mismatch(mismatch));
        }
        if self.items() == 0 && self.expansion == other.expansion {
            self.levels = other.copy()?.levels;
        } else {
            other.copy()?.levels.into_iter().try_for_each(|level| self.take_in(level))?;
        }
        self.deleted = self.deleted.saturating_add(other.deleted);
        Ok(())
    }

    /// Takes in a level of another chain.
    fn take_in(&mut self, mut level: Vec<Cuckoo>) -> umbel::Result<()> {
        let width = level.len();
        for (i, from) in level.iter_mut().enumerate() {
            for older in self.levels.iter_mut().filter(|older| width.is_multiple_of(older.len())) {
                let into = i * older.len() / width;
                from.pour(&mut older[into])?;
            }
        }
        if level.iter().all(Cuckoo::is_empty) {
            return Ok(());
        }
        if self.expansion == 1 && width == 1 && self.levels.len() < MAX_LEVELS {
            self.levels.push(level);
            return Ok(());
        }
        let why = "what both have does not fit into filters as they grow; reserve larger ones".into();
        Err(umbel::Error::Full { kind: Kind::Cuckoo, why })
    }

    /// How full it is, all levels together.
    pub fn stats(&self) -> Stats {
        let levels: Vec<Vec<Stats>> =
            self.levels.iter().map(|level| level.iter().map(Cuckoo::stats).collect()).collect();
        let parts = || levels.iter().flatten();
        let sum = |number: fn(&Stats) -> u64| parts().map(number).sum::<u64>();
        // An item is looked for in one filter of each level.
        let rate =
            |level: &Vec<Stats>| level.iter().map(|part| part.rate_now).sum::<f64>() / level.len() as f64;
        let mut stats = levels[0][0].clone();
        stats.cells = sum(|part| part.cells);
        stats.used_cells = sum(|part| part.used_cells);
        stats.bits = sum(|part| part.bits);
        stats.bytes = sum(|part| part.bytes);
        stats.inserted = Some(self.items());
        stats.estimate = parts().map(|part| part.estimate).sum();
        stats.rate_now = compound(levels.iter().map(rate));
        stats.details.push(("levels", self.levels.len() as f64));
        stats
    }

    /// Moves items from newer levels to older ones, and gives up levels that are empty then.
    pub fn compact(&mut self) -> umbel::Result<()> {
        for newer in (1..self.levels.len()).rev() {
            let (older, rest) = self.levels.split_at_mut(newer);
            let Some(from) = rest.first_mut() else { break };
            let width = from.len();
            for (i, from) in from.iter_mut().enumerate() {
                for level in older.iter_mut() {
                    // A level that is cut less fine has the items of several of these in one.
                    let into = i * level.len() / width;
                    from.pour(&mut level[into])?;
                }
            }
        }
        while self.levels.len() > 1
            && self.levels.last().is_some_and(|level| level.iter().all(Cuckoo::is_empty))
        {
            self.levels.pop();
        }
        Ok(())
    }
}

/// How many filters each level has. Without expansion there is one level.
fn widths_of(expansion: u32) -> impl Iterator<Item = usize> {
    let next = move |width: &usize| Some(width.saturating_mul(expansion as usize)).filter(|width| *width > 0);
    std::iter::successors(Some(1), next)
}

/// Which of so many filters an item belongs to: the finer the cut, the more bits of the same hash.
fn which(digest: Digest, filters: usize) -> usize {
    reduce(digest.salted(0).get(), filters as u64) as usize
}

static TYPE_HANDLE: TypeHandle = TypeHandle::new();

impl Persist for Cuckoos {
    const NAME: &'static CStr = c"umbel-cf-";

    const LOAD_COMMAND: &'static CStr = c"CF.LOADCHUNK";

    fn type_handle() -> &'static TypeHandle {
        &TYPE_HANDLE
    }

    fn numbers(&self) -> Vec<u64> {
        vec![self.kicks.into(), self.expansion.into(), self.deleted]
    }

    fn filters(&self) -> Vec<&dyn Storable> {
        self.levels.iter().flatten().map(|filter| filter as &dyn Storable).collect()
    }

    fn sections(&self) -> Vec<&Words> {
        self.levels.iter().flatten().map(Cuckoo::words).collect()
    }

    fn restore(numbers: &[u64], filters: Vec<Stored>, _extra: &[u8]) -> Option<Cuckoos> {
        let &[kicks, expansion, deleted] = numbers else { return None };
        let (kicks, expansion) = (u32::try_from(kicks).ok()?, u32::try_from(expansion).ok()?);
        let cuckoo = |filter| match filter {
            Stored::Set(AnyFilter::Cuckoo(filter)) => Some(filter),
            _ => None,
        };
        let filters: Vec<Cuckoo> = filters.into_iter().map(cuckoo).collect::<Option<_>>()?;
        let first = filters.first()?;
        let (shape, hash) = (*first.table(), first.hasher().id());
        let alike = filters.iter().all(|filter| *filter.table() == shape && filter.hasher().id() == hash);
        if !alike || filters.len() > MAX_FILTERS || kicks > MAX_KICKS || expansion > MAX_EXPANSION {
            return None;
        }
        let (mut levels, mut rest, mut widths) = (Vec::new(), filters.into_iter(), widths_of(expansion));
        while rest.len() > 0 {
            let width = widths.next()?;
            let level: Vec<Cuckoo> = rest.by_ref().take(width).collect();
            if level.len() < width || levels.len() >= MAX_LEVELS {
                return None;
            }
            levels.push(level);
        }
        Some(Cuckoos { levels, kicks, expansion, deleted })
    }

    fn memory_bytes(&self) -> usize {
        self.filters().map(|filter| size_of_val(filter.words().lines()) + size_of::<Cuckoo>()).sum()
    }

    fn copy(&self) -> umbel::Result<Cuckoos> {
        let level = |level: &Vec<Cuckoo>| level.iter().map(umbel::internals::Structure::try_clone).collect();
        let levels = self.levels.iter().map(level).collect::<umbel::Result<Vec<Vec<Cuckoo>>>>()?;
        Ok(Cuckoos { levels, ..*self })
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        for level in &mut self.levels {
            level.iter_mut().for_each(|filter| umbel::internals::Structure::relocate(filter, mover));
            relocate_vec(level, mover);
        }
        relocate_vec(&mut self.levels, mover);
    }
}
