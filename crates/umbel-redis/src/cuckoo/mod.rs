//! `CF.*`: cuckoo filters, from which items can be deleted.
//!
//! [`Cuckoos`] is the value: a chain of filters, since a full one cannot grow. [`commands`] is what can be done with it.

mod commands;

pub use commands::COMMANDS;

use crate::config;
use crate::engine::{Failure, Result, TypeSlot};
use crate::kept::Kept;
use std::ffi::CStr;
use umbel::cuckoo::{Options, Table};
use umbel::file::Storable;
use umbel::sizing::CuckooParams;
use umbel::{AnyFilter, Cuckoo, Digest, Filter, Hasher, Remove, Removed, Stored};

/// No more filters are in a chain.
const MOST_FILTERS: usize = 32;

/// What a chain is to be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    /// How many items the first filter holds.
    pub capacity: u64,
    /// How many slots a bucket has.
    pub slots: u32,
    /// How many fingerprints move at most to make room for one.
    pub kicks: u32,
    /// How many times as large each filter is as the one before; 0 if there is only one.
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

/// A chain of cuckoo filters under a key.
#[derive(Debug)]
pub struct Cuckoos {
    /// The oldest first; there is one at least.
    filters: Vec<Cuckoo>,
    capacity: u64,
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
    /// An empty chain of one filter.
    pub fn new(design: &Design) -> Result<Cuckoos> {
        let Design { capacity, slots, kicks, expansion, bits, secret } = *design;
        let table = table(capacity, slots, bits)?;
        config::check_memory(64 * table.lines())?;
        let first = Cuckoo::with_table(table, Hasher::keyed(secret))?;
        Ok(Cuckoos { filters: vec![first], capacity, kicks, expansion, deleted: 0 })
    }

    /// A filter that was made elsewhere.
    pub fn from_filter(filter: Cuckoo) -> Cuckoos {
        let capacity =
            umbel::Structure::design(&filter).map_or(filter.table().cells(), |design| design.capacity);
        let Design { kicks, expansion, .. } = Design::default();
        Cuckoos { filters: vec![filter], capacity: capacity.max(1), kicks, expansion, deleted: 0 }
    }

    pub fn filters(&self) -> &[Cuckoo] {
        &self.filters
    }

    /// The slots of a bucket.
    pub fn slots(&self) -> u32 {
        self.first().table().slots()
    }

    /// The bits of a fingerprint.
    pub fn bits(&self) -> u32 {
        self.first().table().fingerprint_bits()
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
        self.filters.iter().map(Cuckoo::len).sum()
    }

    fn first(&self) -> &Cuckoo {
        self.filters.first().expect("there is one at least")
    }

    pub fn digest(&self, item: &[u8]) -> Digest {
        self.first().hasher().digest_bytes(item)
    }

    pub fn contains(&self, digest: Digest) -> bool {
        self.filters.iter().rev().any(|filter| filter.contains_digest(digest))
    }

    /// Which items of a tile it has.
    pub fn contains_tile(&self, tile: &[Digest]) -> u64 {
        self.filters.iter().fold(0, |found, filter| found | filter.contains_tile(tile))
    }

    /// How often an item was added, and whatever else looks like it.
    pub fn count(&self, digest: Digest) -> u64 {
        self.filters.iter().map(|filter| u64::from(filter.count_digest(digest))).sum()
    }

    /// Adds an item, in a further filter if there is no room in those that are there.
    pub fn add(&mut self, digest: Digest) -> Result<()> {
        // Where a slot is free nothing has to move.
        if self.filters.iter_mut().rev().any(|filter| filter.insert_digest_within(digest, 0).is_ok()) {
            return Ok(());
        }
        let newest = self.filters.last_mut().expect("there is one at least");
        if newest.insert_digest_within(digest, self.kicks).is_ok() {
            return Ok(());
        }
        let kicks = self.kicks;
        self.grow()?.insert_digest_within(digest, kicks)?;
        Ok(())
    }

    /// Opens another filter.
    fn grow(&mut self) -> Result<&mut Cuckoo> {
        if self.expansion == 0 {
            return Err(Failure::new("Filter is full"));
        }
        if self.filters.len() >= MOST_FILTERS {
            return Err(Failure::new("Maximum expansions reached"));
        }
        let factor = u64::from(self.expansion).saturating_pow(self.filters.len() as u32);
        let table = table(self.capacity.saturating_mul(factor), self.slots(), self.bits())?;
        let _budget = config::budget(self.memory());
        self.filters.push(Cuckoo::with_table(table, self.first().hasher().clone())?);
        Ok(self.filters.last_mut().expect("one was just added"))
    }

    /// Takes an item out once, of the newest filter that has it; whether one had.
    pub fn remove(&mut self, digest: Digest) -> Result<bool> {
        for filter in self.filters.iter_mut().rev() {
            if filter.remove_digest(digest)? == Removed::Removed {
                self.deleted += 1;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Moves items from newer filters to older ones of the same size, and gives up those that are empty then.
    pub fn compact(&mut self) -> Result<()> {
        for newer in (1..self.filters.len()).rev() {
            let (older, rest) = self.filters.split_at_mut(newer);
            let Some(from) = rest.first_mut() else { break };
            let shape = *from.table();
            for into in older.iter_mut().filter(|into| *into.table() == shape) {
                from.pour(into)?;
            }
        }
        while self.filters.len() > 1 && self.filters.last().is_some_and(Cuckoo::is_empty) {
            self.filters.pop();
        }
        Ok(())
    }
}

static SLOT: TypeSlot = TypeSlot::new();

impl Kept for Cuckoos {
    const NAME: &'static CStr = c"umbel-cf-";

    const LOADER: &'static CStr = c"CF.LOADCHUNK";

    fn slot() -> &'static TypeSlot {
        &SLOT
    }

    fn numbers(&self) -> Vec<u64> {
        vec![self.capacity, self.kicks.into(), self.expansion.into(), self.deleted]
    }

    fn filters(&self) -> Vec<&dyn Storable> {
        self.filters.iter().map(|filter| filter as &dyn Storable).collect()
    }

    fn restore(numbers: &[u64], filters: Vec<Stored>, _rest: &[u8]) -> Option<Cuckoos> {
        let &[capacity, kicks, expansion, deleted] = numbers else { return None };
        let cuckoo = |filter| match filter {
            Stored::Set(AnyFilter::Cuckoo(filter)) => Some(filter),
            _ => None,
        };
        let filters: Vec<Cuckoo> = filters.into_iter().map(cuckoo).collect::<Option<_>>()?;
        let first = filters.first()?;
        let alike = |filter: &Cuckoo| {
            let (a, b) = (filter.table(), first.table());
            filter.hasher().id() == first.hasher().id()
                && (a.slots(), a.fingerprint_bits(), a.form()) == (b.slots(), b.fingerprint_bits(), b.form())
        };
        let sane = filters.len() <= MOST_FILTERS && filters.iter().all(alike) && capacity > 0;
        let (kicks, expansion) = (u32::try_from(kicks).ok()?, u32::try_from(expansion).ok()?);
        sane.then_some(Cuckoos { filters, capacity, kicks, expansion, deleted })
    }

    fn memory(&self) -> usize {
        self.filters.iter().map(|filter| size_of_val(filter.words().lines()) + size_of::<Cuckoo>()).sum()
    }

    fn copy(&self) -> umbel::Result<Cuckoos> {
        let filters =
            self.filters.iter().map(umbel::Structure::try_clone_owned).collect::<umbel::Result<_>>()?;
        Ok(Cuckoos { filters, ..*self })
    }
}
