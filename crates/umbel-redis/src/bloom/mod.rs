//! `BF.*`: Bloom filters that grow.
//!
//! [`Bloom`] is a filter of this module, and [`BloomValue`] the value of a key: such a filter, or one
//! of RedisBloom. [`commands`] are the commands on it.

pub mod commands;
mod value;

pub use value::BloomValue;

use crate::config::{self, HashSecret, seed_argument};
use crate::error::{self, Error};
use crate::family::Family;
use crate::persist::Persist;
use crate::server::{AddCommand, Failure, Result, Text, TypeHandle};
use std::ffi::CStr;
use umbel::any::Stored;
use umbel::file::Storable;
use umbel::hash::HashId;
use umbel::internals::TILE;
use umbel::memory::{Mover, Words};
use umbel::scalable::Stage;
use umbel::spec::KindOptions;
use umbel::{AnyFilter, Digest, Hasher, Kind, Spec};

/// The largest factor from the capacity of one stage to the next.
pub const MAX_EXPANSION: u32 = 32_768;

/// The settings of a Bloom filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BloomDesign {
    pub rate: f64,
    pub capacity: u64,
    /// The growth factor from one stage to the next; 0 for a filter of one stage.
    pub expansion: u32,
    /// The hash secret.
    pub secret: HashSecret,
}

impl Default for BloomDesign {
    fn default() -> BloomDesign {
        let config = config::get();
        BloomDesign {
            rate: config.error_rate,
            capacity: config.initial_size,
            expansion: config.expansion,
            secret: config::secret(),
        }
    }
}

/// A Bloom filter of this module.
#[derive(Debug)]
pub struct Bloom {
    filter: AnyFilter,
    /// The growth factor from one stage to the next; 0 for a filter of one stage.
    expansion: u32,
    /// The number of items that were new when they were added. Scalable filters count items
    /// themselves.
    items: u64,
}

impl Bloom {
    /// Wraps a filter that was imported or merged.
    pub fn from_filter(filter: AnyFilter) -> Bloom {
        let expansion = match &filter {
            AnyFilter::Scalable(filter) => filter.schedule().growth(),
            _ => 0,
        };
        let mut bloom = Bloom { filter, expansion, items: 0 };
        let estimate = bloom.filter.stats().estimate.estimate();
        bloom.items = estimate.map_or(bloom.capacity(), |estimate| estimate.value.round() as u64);
        bloom
    }

    /// Returns the capacity of all present stages.
    pub fn capacity(&self) -> u64 {
        match &self.filter {
            AnyFilter::Scalable(filter) => filter.stages().map(|stage| stage.capacity).sum(),
            // An imported filter may have no known capacity.
            filter => filter.design().map_or(i64::MAX as u64, |design| design.capacity),
        }
    }

    /// Returns the number of items that can be added before the filter grows or is full.
    fn room(&self) -> u64 {
        match &self.filter {
            AnyFilter::Scalable(filter) => filter.room(),
            _ => self.capacity().saturating_sub(self.items),
        }
    }

    /// Returns the number of stages.
    pub fn stages(&self) -> u64 {
        match &self.filter {
            AnyFilter::Scalable(filter) => filter.stages().count() as u64,
            _ => 1,
        }
    }

    /// Returns the number of items that were new when they were added.
    pub fn items(&self) -> u64 {
        match &self.filter {
            AnyFilter::Scalable(filter) => filter.stages().map(|stage| stage.keys).sum(),
            _ => self.items,
        }
    }

    pub fn filter(&self) -> &AnyFilter {
        &self.filter
    }

    /// Adds items. Returns one element per item: whether it was new, or its error.
    pub fn add_items(&mut self, items: &[Text]) -> Vec<Result<bool>> {
        let items: Vec<&[u8]> = items.iter().map(Text::bytes).collect();
        let digests = self.filter.hasher().digest_batch(&items[..]);
        let mut added = Vec::with_capacity(digests.len());
        for tile in digests.chunks(TILE) {
            // With room for the whole tile, no item can fail, and no memory is allocated.
            if self.room() < tile.len() as u64 {
                let _budget = config::budget(self.memory_bytes());
                added.extend(tile.iter().map(|digest| self.add_one(*digest)));
                continue;
            }
            match self.filter.insert_tile_new(tile) {
                Ok(new) => {
                    self.items = self.items.saturating_add(new.count_ones().into());
                    added.extend((0..tile.len()).map(|i| Ok(new >> i & 1 > 0)));
                }
                Err(error) => added.extend(vec![Err(Failure::from(error)); tile.len()]),
            }
        }
        added
    }

    /// Adds an item to a filter that may have to grow, or may be full.
    fn add_one(&mut self, digest: Digest) -> Result<bool> {
        if self.filter.contains_digest(digest) {
            return Ok(false);
        }
        if self.expansion == 0 && self.items() >= self.capacity() {
            return Err(Failure::new("non scaling filter is full"));
        }
        let new = self.filter.insert_digest(digest)?;
        self.items = self.items.saturating_add(new.into());
        Ok(new)
    }
}

impl Family for Bloom {
    type Options = commands::BloomOptions;
    type Design = BloomDesign;

    const RESERVE: &'static CStr = c"BF.RESERVE";
    const ADD: AddCommand = AddCommand { name: c"BF.MADD", options: &[] };
    const RESERVE_EVENT: &'static CStr = c"bf.reserve";
    const ADD_EVENT: &'static CStr = c"bf.add";

    fn new(design: &BloomDesign) -> Result<Bloom> {
        let BloomDesign { rate, capacity, expansion, secret } = *design;
        let mut options = KindOptions::default();
        options.scalable.growth = expansion.max(1);
        // A server has many keys, and most filters are small.
        options.scalable.stage = Stage::Compact;
        let spec = Spec::new(capacity, rate)?.with_hasher(Hasher::keyed(secret.0)).with_options(options);
        // The library builds a standard filter in place of a small blocked one, whose rate would
        // depend on its keys.
        let kind = if expansion == 0 { Kind::Blocked } else { Kind::Scalable };
        config::check_memory(umbel::spec::plan(kind, &spec)?.bytes)?;
        Ok(Bloom { filter: AnyFilter::build(kind, &spec)?, expansion, items: 0 })
    }

    fn reserve_arguments(design: &BloomDesign) -> Vec<String> {
        let BloomDesign { rate, capacity, expansion, secret } = design;
        let (rate, capacity) = (format!("{rate:?}"), capacity.to_string());
        let (expansion, secret) = (expansion.to_string(), seed_argument(secret));
        vec![rate, capacity, "EXPANSION".into(), expansion, "SEED".into(), secret]
    }

    fn contains(&self, item: &[u8]) -> bool {
        self.filter.contains(item)
    }

    fn contains_many(&self, items: &[&[u8]]) -> Vec<bool> {
        self.filter.contains_batch(items).iter().collect()
    }
}

static TYPE_HANDLE: TypeHandle = TypeHandle::new();

impl Persist for Bloom {
    const NAME: &'static CStr = c"umbel-bf-";

    const LOAD_COMMAND: &'static CStr = c"BF.LOADCHUNK";

    fn type_handle() -> &'static TypeHandle {
        &TYPE_HANDLE
    }

    fn hash_id(&self) -> Option<HashId> {
        Some(self.filter.hasher().id())
    }

    fn numbers(&self) -> Vec<u64> {
        vec![self.expansion.into(), self.items()]
    }

    fn sections(&self) -> Vec<&Words> {
        self.filter.sections()
    }

    fn filters(&self) -> Vec<&dyn Storable> {
        vec![&self.filter]
    }

    fn restore(numbers: &[u64], filters: Vec<Stored>, _extra: &[u8]) -> error::Result<Bloom> {
        let &[expansion, items] = numbers else { return Err(Error::CONTRADICTORY) };
        let Ok([Stored::Set(filter)]) = <[Stored; 1]>::try_from(filters) else {
            return Err(Error::CONTRADICTORY);
        };
        let expansion = u32::try_from(expansion).map_err(|_| Error::CONTRADICTORY)?;
        let fits = match &filter {
            AnyFilter::Scalable(filter) => filter.schedule().growth() == expansion,
            filter => {
                matches!(filter.kind(), Kind::Blocked | Kind::Standard | Kind::Partitioned) && expansion == 0
            }
        };
        fits.then_some(Bloom { filter, expansion, items }).ok_or(Error::CONTRADICTORY)
    }

    fn memory_bytes(&self) -> usize {
        self.filter.sections().iter().map(|words| size_of_val(words.lines())).sum::<usize>()
            + size_of::<AnyFilter>()
    }

    fn copy(&self) -> umbel::Result<Bloom> {
        Ok(Bloom { filter: self.filter.try_clone()?, ..*self })
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.filter.relocate(mover);
    }
}
