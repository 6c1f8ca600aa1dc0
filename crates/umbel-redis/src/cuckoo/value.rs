//! The value of `CF.*`: a chain of this module, or a filter that was loaded from RedisBloom.

use super::{CuckooChain, MAX_VAIN_KICKS};
use crate::config;
use crate::family::Lookup;
use crate::persist::Layout;
use crate::server::{Failure, Result, Text};
use umbel::foreign::{Dump, RedisCuckoo};

/// A cuckoo filter under a key.
pub type CuckooValue = Layout<CuckooChain, RedisCuckoo>;

impl Lookup for RedisCuckoo {
    fn contains(&self, item: &[u8]) -> bool {
        self.contains(item)
    }
}

/// The settings and counts of a filter, as `CF.INFO` and `CF.DEBUG` report them.
pub struct Facts {
    /// The number of buckets of a filter of the first level.
    pub first_buckets: u64,
    /// The number of buckets that `CF.INFO` reports: of all filters, or in the layout of RedisBloom
    /// of the first level, as there.
    pub buckets: u64,
    pub levels: u64,
    pub items: u64,
    pub deleted: u64,
    /// The number of slots in a bucket.
    pub slots: u32,
    pub expansion: u32,
    /// The largest number of fingerprints that move to make room for one.
    pub kicks: u32,
    pub fingerprint_bits: u32,
}

impl CuckooValue {
    /// Returns the settings and counts.
    pub fn facts(&self) -> Facts {
        match self {
            Layout::Own(chain) => Facts {
                first_buckets: chain.first().table().buckets(),
                buckets: chain.filters().map(|filter| filter.table().buckets()).sum(),
                levels: chain.levels() as u64,
                items: chain.items(),
                deleted: chain.deleted(),
                slots: chain.first().table().slots(),
                expansion: chain.expansion(),
                kicks: chain.kicks(),
                fingerprint_bits: chain.first().table().fingerprint_bits(),
            },
            Layout::RedisBloom(filter) => Facts {
                first_buckets: filter.buckets(),
                buckets: filter.buckets(),
                levels: filter.levels() as u64,
                items: filter.items(),
                deleted: filter.deleted(),
                slots: filter.slots(),
                expansion: filter.expansion(),
                kicks: filter.max_moves(),
                fingerprint_bits: 8,
            },
        }
    }

    /// Adds items. Returns one element per item: `true`, or its error.
    pub fn add_items(&mut self, items: &[Text]) -> Vec<Result<bool>> {
        match self {
            Layout::Own(chain) => chain.add_items(items),
            Layout::RedisBloom(filter) => add_each(filter, items, |_, _| true),
        }
    }

    /// Adds the items that are not present. Returns one element per item: whether it was added, or
    /// its error.
    pub fn add_absent_items(&mut self, items: &[Text]) -> Vec<Result<bool>> {
        match self {
            Layout::Own(chain) => chain.add_absent_items(items),
            Layout::RedisBloom(filter) => add_each(filter, items, |filter, item| !filter.contains(item)),
        }
    }

    /// Removes one occurrence of an item. Returns whether there was one.
    pub fn remove(&mut self, item: &[u8]) -> Result<bool> {
        match self {
            Layout::Own(chain) => chain.remove(chain.digest(item)),
            Layout::RedisBloom(filter) => Ok(filter.remove(item)),
        }
    }

    /// Returns how often an item, or one that collides with it, was added.
    pub fn count(&self, item: &[u8]) -> u64 {
        match self {
            Layout::Own(chain) => chain.count(chain.digest(item)),
            Layout::RedisBloom(filter) => filter.count(item),
        }
    }

    /// Moves items from newer levels to older ones, and drops the levels that are then empty.
    pub fn compact(&mut self) -> Result<()> {
        match self {
            Layout::Own(chain) => chain.compact()?,
            Layout::RedisBloom(filter) => filter.compact(),
        }
        Ok(())
    }
}

/// Adds the items that `is_wanted` selects to a filter of RedisBloom.
fn add_each(
    filter: &mut RedisCuckoo,
    items: &[Text],
    is_wanted: impl Fn(&RedisCuckoo, &[u8]) -> bool,
) -> Vec<Result<bool>> {
    let bytes = filter.sections().into_iter().map(|words| size_of_val(words.lines())).sum();
    let _budget = config::budget(bytes);
    // As in a chain of this module: once the filter cannot grow, refused items must not cost a
    // search each.
    let mut vain_moves = 0u32;
    let mut add = |item: &[u8]| {
        if !is_wanted(filter, item) {
            return Ok(false);
        }
        let moves = if vain_moves < MAX_VAIN_KICKS { filter.max_moves() } else { 0 };
        match filter.insert(item, moves) {
            Ok(()) => Ok(true),
            Err(error) => {
                vain_moves = vain_moves.saturating_add(moves);
                Err(match error {
                    umbel::Error::Full { .. } if filter.expansion() == 0 => Failure::new("Filter is full"),
                    umbel::Error::Full { .. } => Failure::new("Maximum expansions reached"),
                    other => Failure::from(other),
                })
            }
        }
    };
    items.iter().map(|item| add(item.bytes())).collect()
}
