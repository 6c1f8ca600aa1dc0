//! `CF.*`: cuckoo filters, from which items can be deleted.
//!
//! [`CuckooChain`] is a filter of this module: levels of filters, since a full one cannot grow.
//! [`CuckooValue`] is the value of a key: a chain, or a filter of RedisBloom. [`commands`] are the
//! commands on it.
//!
//! All filters have the same shape. A new level does not have larger filters but more of them:
//! `expansion` times as many as the level before. A second hash of an item selects its filter, with
//! more bits at every level. So items that collide in one level collide in all older ones, and it
//! makes no difference whose fingerprint is deleted. With filters of different sizes, items could
//! be lost: two items may collide in one level only, and deleting one might remove the fingerprint
//! of the other.

pub mod commands;
mod value;

pub use value::CuckooValue;

use crate::config::{self, HashSecret, seed_argument};
use crate::error::{self, Error};
use crate::family::Family;
use crate::persist::Persist;
use crate::server::{AddCommand, Failure, Result, Text, TypeHandle};
use std::ffi::CStr;
use umbel::any::Stored;
use umbel::cuckoo::{Options, Table};
use umbel::file::Storable;
use umbel::hash::{HashId, reduce};
use umbel::internals::TILE;
use umbel::memory::{Mover, Words, relocate_vec};
use umbel::sizing::CuckooParams;
use umbel::sizing::scalable::compound;
use umbel::{AnyFilter, Cuckoo, Digest, Hasher, Kind, Removed, Stats};

/// The largest number of levels of a value.
const MAX_LEVELS: usize = 32;

/// The largest number of filters in all levels of a value.
const MAX_FILTERS: usize = 10_000;

/// The largest number of fingerprints that may move to make room for one.
pub const MAX_KICKS: u32 = 65_535;

/// The largest number of fingerprints that a command moves for items that are then refused.
const MAX_VAIN_KICKS: u32 = 1 << 18;

/// The largest factor from the number of filters in one level to the next.
pub const MAX_EXPANSION: u32 = 32_768;

/// The settings of a chain, and the options of `CF.RESERVE` and `CF.INSERT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CuckooDesign {
    /// The capacity of the first filter.
    pub capacity: u64,
    /// The number of slots in a bucket.
    pub slots: u32,
    /// The largest number of fingerprints that move to make room for one.
    pub kicks: u32,
    /// The factor from the number of filters in one level to the next; 0 if there is only one
    /// level.
    pub expansion: u32,
    /// The number of bits in a fingerprint.
    pub bits: u32,
    /// The hash secret.
    pub secret: HashSecret,
}

impl Default for CuckooDesign {
    /// The defaults of RedisBloom.
    fn default() -> CuckooDesign {
        let capacity = config::get().cuckoo_size;
        CuckooDesign { capacity, slots: 2, kicks: 20, expansion: 1, bits: 8, secret: config::secret() }
    }
}

/// A chain of cuckoo filters.
#[derive(Debug)]
pub struct CuckooChain {
    /// The levels, the oldest first. There is at least one, and the first has one filter.
    levels: Vec<Vec<Cuckoo>>,
    kicks: u32,
    expansion: u32,
    deleted: u64,
}

/// Returns the shape of a filter.
fn table(capacity: u64, slots: u32, bits: u32) -> Result<Table> {
    let options = Options { slots, fingerprint_bits: Some(bits), ..Options::default() };
    let params = CuckooParams::for_fingerprints(capacity, &options)?;
    Ok(Table::new(params.buckets, bits, slots, params.form)?)
}

impl CuckooChain {
    /// Wraps a filter that was imported or merged.
    pub fn from_filter(filter: Cuckoo) -> CuckooChain {
        let CuckooDesign { kicks, expansion, .. } = CuckooDesign::default();
        CuckooChain { levels: vec![vec![filter]], kicks, expansion, deleted: 0 }
    }

    /// Returns all filters, the oldest first.
    pub fn filters(&self) -> impl Iterator<Item = &Cuckoo> {
        self.levels.iter().flatten()
    }

    /// Returns the number of levels.
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// Returns the first filter. All others have its shape.
    pub fn first(&self) -> &Cuckoo {
        self.levels[0].first().expect("there is at least one")
    }

    pub fn kicks(&self) -> u32 {
        self.kicks
    }

    pub fn expansion(&self) -> u32 {
        self.expansion
    }

    /// Returns the number of items that were deleted.
    pub fn deleted(&self) -> u64 {
        self.deleted
    }

    /// Returns the number of items.
    pub fn items(&self) -> u64 {
        self.filters().map(Cuckoo::len).sum()
    }

    /// Returns the digest of an item.
    pub fn digest(&self, item: &[u8]) -> Digest {
        self.first().hasher().digest_bytes(item)
    }

    /// Returns the filter of each level for an item, the newest first.
    fn filters_for(&self, digest: Digest) -> impl Iterator<Item = &Cuckoo> {
        self.levels.iter().rev().map(move |level| &level[filter_index(digest, level.len())])
    }

    fn filters_for_mut(&mut self, digest: Digest) -> impl Iterator<Item = &mut Cuckoo> {
        self.levels.iter_mut().rev().map(move |level| {
            let index = filter_index(digest, level.len());
            &mut level[index]
        })
    }

    /// Returns whether the chain may contain an item.
    pub fn contains_digest(&self, digest: Digest) -> bool {
        self.filters_for(digest).any(|filter| filter.contains_digest(digest))
    }

    /// Returns the items of a tile that the chain may contain, as a bit mask.
    pub fn contains_tile(&self, tile: &[Digest]) -> u64 {
        self.levels.iter().fold(0, |found, level| match &level[..] {
            [filter] => found | filter.contains_tile(tile),
            filters => {
                let has =
                    |digest: Digest| filters[filter_index(digest, filters.len())].contains_digest(digest);
                tile.iter().enumerate().fold(found, |found, (i, digest)| found | u64::from(has(*digest)) << i)
            }
        })
    }

    /// Returns how often an item, or one that collides with it, was added.
    pub fn count(&self, digest: Digest) -> u64 {
        self.filters_for(digest).map(|filter| u64::from(filter.count_digest(digest))).sum()
    }

    /// Adds items. Returns one element per item: `true`, or its error.
    pub fn add_items(&mut self, items: &[Text]) -> Vec<Result<bool>> {
        self.add_each(items, |_, _| true)
    }

    /// Adds the items that are not present. Returns one element per item: whether it was added, or
    /// its error.
    pub fn add_absent_items(&mut self, items: &[Text]) -> Vec<Result<bool>> {
        self.add_each(items, |chain, digest| !chain.contains_digest(digest))
    }

    /// Adds the items that `is_wanted` selects.
    fn add_each(
        &mut self,
        items: &[Text],
        is_wanted: impl Fn(&CuckooChain, Digest) -> bool,
    ) -> Vec<Result<bool>> {
        // An item is refused if the chain cannot grow, and then it cannot grow for later items
        // either. Moving fingerprints for each of them would block the server. A replica does not
        // get the refused items, and finds room for the others within as many moves.
        let mut vain_kicks = 0u32;
        let add = |item: &Text| {
            let digest = self.digest(item.bytes());
            if !is_wanted(self, digest) {
                return Ok(false);
            }
            let kicks = if vain_kicks < MAX_VAIN_KICKS { self.kicks } else { 0 };
            let added = self.add(digest, kicks);
            vain_kicks = vain_kicks.saturating_add(if added.is_err() { kicks } else { 0 });
            added.map(|()| true)
        };
        items.iter().map(add).collect()
    }

    /// Adds an item, in a new level if the present ones have no room after this many moves.
    fn add(&mut self, digest: Digest, kicks: u32) -> Result<()> {
        // If a slot is free, no fingerprint has to move.
        if self.filters_for_mut(digest).any(|filter| filter.insert_digest_within(digest, 0).is_ok()) {
            return Ok(());
        }
        if self
            .filters_for_mut(digest)
            .take(1)
            .any(|newest| newest.insert_digest_within(digest, kicks).is_ok())
        {
            return Ok(());
        }
        self.grow()?;
        for newest in self.filters_for_mut(digest).take(1) {
            newest.insert_digest_within(digest, kicks)?;
        }
        Ok(())
    }

    /// Adds a level.
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

    /// Removes one occurrence of an item from the newest level that contains it. Returns whether
    /// there was one.
    pub fn remove(&mut self, digest: Digest) -> Result<bool> {
        let mut removed = false;
        for filter in self.filters_for_mut(digest) {
            removed = filter.remove_digest(digest) == Removed::Removed;
            if removed {
                break;
            }
        }
        self.deleted = self.deleted.saturating_add(removed.into());
        Ok(removed)
    }

    /// Adds all items of another chain. Fingerprints move into levels with equally many or fewer
    /// filters, since a fingerprint does not determine the filter of its item among more. Levels of
    /// one filter that do not fit are appended.
    ///
    /// # Errors
    ///
    /// If the filters have different shapes or secrets, or there is no room.
    pub fn merge(&mut self, other: &CuckooChain) -> umbel::Result<()> {
        if let Some(mismatch) = self.first().mismatch(other.first()) {
            return Err(umbel::Error::Mismatch(mismatch));
        }
        if self.items() == 0 && self.expansion == other.expansion {
            self.levels = other.copy()?.levels;
        } else {
            other.copy()?.levels.into_iter().try_for_each(|level| self.merge_level(level))?;
        }
        self.deleted = self.deleted.saturating_add(other.deleted);
        Ok(())
    }

    /// Adds all items of a level of another chain.
    fn merge_level(&mut self, mut level: Vec<Cuckoo>) -> umbel::Result<()> {
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
        let why = "the union does not fit into the levels of the filter; reserve larger filters".into();
        Err(umbel::Error::Full { kind: Kind::Cuckoo, why })
    }

    /// Returns the statistics of all levels together.
    pub fn stats(&self) -> Stats {
        let levels: Vec<Vec<Stats>> =
            self.levels.iter().map(|level| level.iter().map(Cuckoo::stats).collect()).collect();
        let parts = || levels.iter().flatten();
        let sum = |number: fn(&Stats) -> u64| parts().map(number).sum::<u64>();
        // A lookup tests one filter of each level.
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

    /// Moves items from newer levels to older ones, and drops the levels that are then empty.
    pub fn compact(&mut self) -> umbel::Result<()> {
        for newer in (1..self.levels.len()).rev() {
            let (older, rest) = self.levels.split_at_mut(newer);
            let Some(from) = rest.first_mut() else { break };
            let width = from.len();
            for (i, from) in from.iter_mut().enumerate() {
                for level in older.iter_mut() {
                    // A level with fewer filters holds the items of several of these filters in
                    // one.
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

/// Returns the number of filters in each level. Without expansion there is one level.
fn level_widths(expansion: u32) -> impl Iterator<Item = usize> {
    let next = move |width: &usize| Some(width.saturating_mul(expansion as usize)).filter(|width| *width > 0);
    std::iter::successors(Some(1), next)
}

/// Returns the index of the filter for an item among `filters` of a level. More filters use more
/// bits of the same hash.
fn filter_index(digest: Digest, filters: usize) -> usize {
    reduce(digest.salted(0).get(), filters as u64) as usize
}

impl Family for CuckooChain {
    type Options = CuckooDesign;
    type Design = CuckooDesign;

    const RESERVE: &'static CStr = c"CF.RESERVE";
    const ADD: AddCommand = AddCommand { name: c"CF.INSERT", options: &[b"NOCREATE", b"ITEMS"] };
    const RESERVE_EVENT: &'static CStr = c"cf.reserve";
    const ADD_EVENT: &'static CStr = c"cf.add";

    fn new(design: &CuckooDesign) -> Result<CuckooChain> {
        let CuckooDesign { capacity, slots, kicks, expansion, bits, secret } = *design;
        let table = table(capacity, slots, bits)?;
        config::check_memory(64 * table.lines())?;
        let first = Cuckoo::with_table(table, Hasher::keyed(secret.0))?;
        Ok(CuckooChain { levels: vec![vec![first]], kicks, expansion, deleted: 0 })
    }

    fn reserve_arguments(design: &CuckooDesign) -> Vec<String> {
        let CuckooDesign { capacity, slots, kicks, expansion, bits, secret } = design;
        let mut arguments = vec![capacity.to_string()];
        let options = [
            ("BUCKETSIZE", slots),
            ("MAXITERATIONS", kicks),
            ("EXPANSION", expansion),
            ("FINGERPRINT", bits),
        ];
        arguments.extend(options.iter().flat_map(|(name, value)| [name.to_string(), value.to_string()]));
        arguments.extend(["SEED".into(), seed_argument(secret)]);
        arguments
    }

    fn contains(&self, item: &[u8]) -> bool {
        self.contains_digest(self.digest(item))
    }

    fn contains_many(&self, items: &[&[u8]]) -> Vec<bool> {
        let digests = self.first().hasher().digest_batch(items);
        let mut found = Vec::with_capacity(items.len());
        for tile in digests.chunks(TILE) {
            let mask = self.contains_tile(tile);
            found.extend((0..tile.len()).map(|i| mask >> i & 1 > 0));
        }
        found
    }
}

static TYPE_HANDLE: TypeHandle = TypeHandle::new();

impl Persist for CuckooChain {
    const NAME: &'static CStr = c"umbel-cf-";

    const LOAD_COMMAND: &'static CStr = c"CF.LOADCHUNK";

    fn type_handle() -> &'static TypeHandle {
        &TYPE_HANDLE
    }

    fn hash_id(&self) -> Option<HashId> {
        Some(self.first().hasher().id())
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

    fn restore(numbers: &[u64], filters: Vec<Stored>, _extra: &[u8]) -> error::Result<CuckooChain> {
        CuckooChain::from_parts(numbers, filters).ok_or(Error::CONTRADICTORY)
    }

    fn memory_bytes(&self) -> usize {
        self.filters().map(|filter| size_of_val(filter.words().lines()) + size_of::<Cuckoo>()).sum()
    }

    fn copy(&self) -> umbel::Result<CuckooChain> {
        let level = |level: &Vec<Cuckoo>| level.iter().map(umbel::internals::Structure::try_clone).collect();
        let levels = self.levels.iter().map(level).collect::<umbel::Result<Vec<Vec<Cuckoo>>>>()?;
        Ok(CuckooChain { levels, ..*self })
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        for level in &mut self.levels {
            level.iter_mut().for_each(|filter| umbel::internals::Structure::relocate(filter, mover));
            relocate_vec(level, mover);
        }
        relocate_vec(&mut self.levels, mover);
    }
}

impl CuckooChain {
    /// Rebuilds a chain from the parts of its stream, or returns `None` if they do not fit together.
    fn from_parts(numbers: &[u64], filters: Vec<Stored>) -> Option<CuckooChain> {
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
        let (mut levels, mut rest, mut widths) = (Vec::new(), filters.into_iter(), level_widths(expansion));
        while rest.len() > 0 {
            let width = widths.next()?;
            let level: Vec<Cuckoo> = rest.by_ref().take(width).collect();
            if level.len() < width || levels.len() >= MAX_LEVELS {
                return None;
            }
            levels.push(level);
        }
        Some(CuckooChain { levels, kicks, expansion, deleted })
    }
}
