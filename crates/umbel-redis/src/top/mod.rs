//! `TOPK.*`: the most frequent items.
//!
//! [`Top`] is the value, and [`commands`] are the commands on it. The structure itself is the
//! library's [`TopK`].

pub mod commands;

use crate::config::{self, HashSecret};
use crate::error::{self, Error};
use crate::persist::{self, Persist};
use crate::server::memory::Charge;
use crate::server::{Result, TypeHandle};
use std::ffi::CStr;
use umbel::Hasher;
use umbel::any::Stored;
use umbel::file::fields::{Fields, put_varint};
use umbel::hash::HashId;
use umbel::memory::{LINE_BYTES, Mover, Words};
use umbel::sketch::{TopK, TopKBuilder};

/// The largest number of rows of a list: every item competes for a cell in each.
pub const MAX_DEPTH: u32 = 32;

/// The settings of a list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopDesign {
    /// The number of items in the list.
    pub k: u64,
    pub width: u64,
    pub depth: u32,
    /// The base of the probability with which another item lowers a count.
    pub decay: f64,
    pub secret: HashSecret,
}

impl TopDesign {
    /// Returns a builder of the library with these settings.
    fn builder(&self) -> TopKBuilder {
        TopK::builder(self.k).width(self.width).depth(self.depth).decay(self.decay)
    }

    /// Returns the bytes of an empty list, with 64 for each place.
    fn bytes(&self) -> u64 {
        let lines = self.cell_lines().unwrap_or(u64::MAX).saturating_add(self.k);
        lines.saturating_mul(LINE_BYTES as u64)
    }

    /// Returns the cache lines for the cells, 8 bytes each.
    fn cell_lines(&self) -> Option<u64> {
        Some(self.width.checked_mul(self.depth.into())?.div_ceil(LINE_BYTES as u64 / 8))
    }
}

/// The largest number of items in a new list: all places are prepared when it is created.
pub const MAX_K: u64 = 1 << 20;

/// The most frequent items and the secret of their hash function, for streams.
#[derive(Debug)]
pub struct Top {
    list: TopK,
    secret: HashSecret,
    /// The bytes of the places and of their items.
    charge: Charge,
}

impl Top {
    /// Creates an empty list.
    ///
    /// # Errors
    ///
    /// If the list is larger than a key may be, or there is not enough memory.
    pub fn new(design: TopDesign) -> Result<Top> {
        config::check_memory(design.bytes())?;
        let list = design.builder().build_with_hasher(Hasher::keyed(design.secret.0))?;
        Ok(Top::with_list(list, design.secret)?)
    }

    fn with_list(list: TopK, secret: HashSecret) -> umbel::Result<Top> {
        let mut top = Top { list, secret, charge: Charge::default() };
        let bytes = top.place_bytes();
        match top.charge.set(bytes) {
            true => Ok(top),
            false => Err(umbel::Error::OutOfMemory { bytes: bytes as u64 }),
        }
    }

    /// Returns the bytes of the places and of their items.
    fn place_bytes(&self) -> usize {
        self.memory_bytes() - size_of_val(self.list.words().lines())
    }

    /// Counts an item this many times. Returns the item that it displaced.
    ///
    /// # Errors
    ///
    /// If the item might exceed a memory limit.
    pub fn add(&mut self, item: &[u8], times: u32) -> Result<Option<Vec<u8>>> {
        // An item in the list needs no more memory.
        let bytes = if self.list.contains(item) { 0 } else { item.len() };
        config::check_memory((self.memory_bytes() + bytes) as u64)?;
        let places = self.place_bytes();
        if !self.charge.set(places + bytes) {
            return Err(umbel::Error::OutOfMemory { bytes: bytes as u64 }.into());
        }
        let displaced = self.list.insert_times(item, times);
        let places = self.place_bytes();
        self.charge.set(places);
        Ok(displaced)
    }
}

static TYPE_HANDLE: TypeHandle = TypeHandle::new();

impl Persist for Top {
    const NAME: &'static CStr = c"umbel-top";

    const LOAD_COMMAND: &'static CStr = c"TOPK.LOADCHUNK";

    fn type_handle() -> &'static TypeHandle {
        &TYPE_HANDLE
    }

    fn hash_id(&self) -> Option<HashId> {
        Some(self.list.hasher().id())
    }

    fn numbers(&self) -> Vec<u64> {
        let list = &self.list;
        let mut numbers =
            vec![list.k(), list.width(), list.depth().into(), list.decay().to_bits(), list.draws()];
        numbers.extend(config::secret_to_numbers(&self.secret));
        numbers
    }

    fn sections(&self) -> Vec<&Words> {
        vec![self.list.words()]
    }

    fn extra(&self) -> umbel::Result<Vec<u8>> {
        let mut extra = persist::words_to_bytes(self.list.words())?;
        for item in self.list.heap() {
            put_varint(&mut extra, item.count);
            put_varint(&mut extra, item.key.len() as u64);
            extra.extend(item.key);
        }
        Ok(extra)
    }

    fn restore(numbers: &[u64], filters: Vec<Stored>, extra: &[u8]) -> error::Result<Top> {
        let &[k, width, depth, decay, draws, ref secret @ ..] = numbers else {
            return Err(Error::CONTRADICTORY);
        };
        let depth = u32::try_from(depth).map_err(|_| Error::CONTRADICTORY)?;
        let secret = config::secret_from_numbers(secret)?;
        let design = TopDesign { k, width, depth, decay: f64::from_bits(decay), secret };
        let bytes = design.cell_lines().and_then(|lines| lines.checked_mul(LINE_BYTES as u64));
        let parts = bytes.and_then(|bytes| extra.split_at_checked(usize::try_from(bytes).ok()?));
        let Some((cells, items)) = parts.filter(|_| filters.is_empty()) else {
            return Err(Error::CONTRADICTORY);
        };
        // An empty place takes two bytes of a stream and many more of memory.
        config::check_memory(design.bytes()).map_err(Error::Part)?;
        let mut items = Fields(items);
        let mut heap = Vec::new();
        // The library refuses a list of fewer than k places, so an item that cannot be read is an
        // error.
        for (count, item) in (0..k).map_while(|_| read_item(&mut items)) {
            config::check_item(&item).map_err(Error::Part)?;
            heap.push((count, item));
        }
        if !items.0.is_empty() {
            return Err(Error::CONTRADICTORY);
        }
        let cells = persist::words_from_bytes(cells)?;
        let list = TopK::from_parts(design.builder(), Hasher::keyed(secret.0), draws, cells, heap);
        Ok(Top::with_list(list.map_err(|_| Error::CONTRADICTORY)?, secret)?)
    }

    fn memory_bytes(&self) -> usize {
        self.list.bytes() as usize
    }

    fn copy(&self) -> umbel::Result<Top> {
        Top::with_list(self.list.try_clone()?, self.secret)
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.list.relocate(mover);
    }
}

/// Reads the count and the bytes of an item.
fn read_item(items: &mut Fields<'_>) -> Option<(u32, Vec<u8>)> {
    let (count, len) = (u32::try_from(items.varint()?).ok()?, items.varint()?);
    Some((count, items.bytes(len)?.to_vec()))
}
