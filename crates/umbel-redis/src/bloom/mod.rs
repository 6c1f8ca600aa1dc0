//! `BF.*`: Bloom filters that grow.
//!
//! [`Bloom`] is the value, [`commands`] what can be done with it.

pub mod commands;

pub use commands::add_all;

use crate::config;
use crate::persist::Persist;
use crate::server::{Failure, Reply, Result, TypeHandle};
use std::ffi::CStr;
use umbel::any::Stored;
use umbel::file::Storable;
use umbel::internals::TILE;
use umbel::memory::{Mover, Words};
use umbel::scalable::Stage;
use umbel::spec::KindOptions;
use umbel::{AnyFilter, Batch, Digest, Hasher, Kind, Spec};

/// The largest factor from the capacity of one stage to the next.
pub const MAX_EXPANSION: u32 = 32_768;

/// What a filter is to be like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Design {
    pub rate: f64,
    pub capacity: u64,
    /// By which it grows; 0 if it does not.
    pub expansion: u32,
    /// The secret it hashes with.
    pub secret: [u8; 16],
}

impl Default for Design {
    fn default() -> Design {
        let config = config::get();
        Design {
            rate: config.error_rate,
            capacity: config.initial_size,
            expansion: config.expansion,
            secret: config::secret(),
        }
    }
}

/// A Bloom filter under a key.
#[derive(Debug)]
pub struct Bloom {
    filter: AnyFilter,
    /// By which it grows; 0 if it does not.
    expansion: u32,
    /// How many of its keys were new when they came; one that grows knows that by itself.
    items: u64,
}

impl Bloom {
    /// An empty filter.
    pub fn new(design: &Design) -> Result<Bloom> {
        let Design { rate, capacity, expansion, secret } = *design;
        let mut options = KindOptions::default();
        options.scalable.growth = expansion.max(1);
        // Most keys of a server hold little, and there are many of them.
        options.scalable.stage = Stage::Compact;
        let spec = Spec::new(capacity, rate)?.with_hasher(Hasher::keyed(secret)).with_options(options);
        // The library takes a standard filter instead of a small blocked one, whose rate would vary with its keys.
        let kind = if expansion == 0 { Kind::Blocked } else { Kind::Scalable };
        config::check_memory(umbel::spec::plan(kind, &spec)?.bytes)?;
        Ok(Bloom { filter: AnyFilter::build(kind, &spec)?, expansion, items: 0 })
    }

    /// A filter that was made elsewhere.
    pub fn from_filter(filter: AnyFilter) -> Bloom {
        let expansion = match &filter {
            AnyFilter::Scalable(filter) => filter.schedule().growth(),
            _ => 0,
        };
        let mut bloom = Bloom { filter, expansion, items: 0 };
        let seen = bloom.filter.stats().estimate.estimate();
        bloom.items = seen.map_or(bloom.capacity(), |seen| seen.value.round() as u64);
        bloom
    }

    /// How many keys it is for, so far.
    pub fn capacity(&self) -> u64 {
        match &self.filter {
            AnyFilter::Scalable(filter) => filter.stages().map(|stage| stage.capacity).sum(),
            // One that nobody planned has no end that could be told.
            filter => filter.design().map_or(i64::MAX as u64, |design| design.capacity),
        }
    }

    /// How many keys it takes without growing.
    fn room(&self) -> u64 {
        match &self.filter {
            AnyFilter::Scalable(filter) => filter.room(),
            _ => self.capacity().saturating_sub(self.items),
        }
    }

    /// How many filters it consists of.
    pub fn stages(&self) -> u64 {
        match &self.filter {
            AnyFilter::Scalable(filter) => filter.stages().count() as u64,
            _ => 1,
        }
    }

    /// How many of its keys were new when they came.
    pub fn items(&self) -> u64 {
        match &self.filter {
            AnyFilter::Scalable(filter) => filter.stages().map(|stage| stage.keys).sum(),
            _ => self.items,
        }
    }

    pub fn filter(&self) -> &AnyFilter {
        &self.filter
    }

    /// Adds keys; of each, whether it was new, or why it is not in.
    pub fn add<B: Batch + ?Sized>(&mut self, keys: &B) -> Vec<Result<bool>> {
        let digests = self.filter.hasher().digest_batch(keys);
        let mut added = Vec::with_capacity(digests.len());
        for tile in digests.chunks(TILE) {
            // Where there is room for all, none can fail, and no memory is needed.
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

    /// Adds a key that may find no room.
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

    /// What `BF.INFO` tells, in its order.
    fn facts(&self) -> [(&'static str, &'static str, Reply); 5] {
        let expansion = match self.expansion {
            0 => Reply::Null,
            factor => Reply::from(u64::from(factor)),
        };
        [
            ("CAPACITY", "Capacity", self.capacity().into()),
            ("SIZE", "Size", (self.memory_bytes() as u64).into()),
            ("FILTERS", "Number of filters", self.stages().into()),
            ("ITEMS", "Number of items inserted", self.items().into()),
            ("EXPANSION", "Expansion rate", expansion),
        ]
    }
}

static TYPE_HANDLE: TypeHandle = TypeHandle::new();

impl Persist for Bloom {
    const NAME: &'static CStr = c"umbel-bf-";

    const LOAD_COMMAND: &'static CStr = c"BF.LOADCHUNK";

    fn type_handle() -> &'static TypeHandle {
        &TYPE_HANDLE
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

    fn restore(numbers: &[u64], filters: Vec<Stored>, _extra: &[u8]) -> Option<Bloom> {
        let &[expansion, items] = numbers else { return None };
        let Ok([Stored::Set(filter)]) = <[Stored; 1]>::try_from(filters) else { return None };
        let expansion = u32::try_from(expansion).ok()?;
        let fits = match &filter {
            AnyFilter::Scalable(filter) => filter.schedule().growth() == expansion,
            filter => matches!(filter.kind(), Kind::Blocked | Kind::Standard) && expansion == 0,
        };
        fits.then_some(Bloom { filter, expansion, items })
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
