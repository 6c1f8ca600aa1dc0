//! `TOPK.*`: the most frequent items.
//!
//! [`Top`] is the value, and [`commands`] are the commands on it. The structure itself is the
//! library's [`TopK`].

pub mod commands;

use crate::config;
use crate::persist::{self, Persist};
use crate::server::{Result, TypeHandle};
use std::ffi::CStr;
use umbel::Hasher;
use umbel::any::Stored;
use umbel::file::fields::{Fields, put_varint};
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
    pub secret: [u8; 16],
}

impl TopDesign {
    /// Returns a builder of the library with these settings.
    fn builder(&self) -> TopKBuilder {
        TopK::builder(self.k).width(self.width).depth(self.depth).decay(self.decay)
    }

    /// Returns the cache lines for the cells, 8 bytes each.
    fn cell_lines(&self) -> Option<u64> {
        Some(self.width.checked_mul(self.depth.into())?.div_ceil(LINE_BYTES as u64 / 8))
    }
}

/// The most frequent items and the secret of their hash function, which streams contain.
#[derive(Debug)]
pub struct Top {
    list: TopK,
    secret: [u8; 16],
}

impl Top {
    /// Creates an empty list.
    ///
    /// # Errors
    ///
    /// If the list is larger than a key may be, or there is not enough memory.
    pub fn new(design: TopDesign) -> Result<Top> {
        // 64 bytes for each place in the list; the bytes of its item are not known yet.
        let lines = design.cell_lines().unwrap_or(u64::MAX).saturating_add(design.k);
        config::check_memory(lines.saturating_mul(LINE_BYTES as u64))?;
        let list = design.builder().build_with_hasher(Hasher::keyed(design.secret))?;
        Ok(Top { list, secret: design.secret })
    }
}

static TYPE_HANDLE: TypeHandle = TypeHandle::new();

impl Persist for Top {
    const NAME: &'static CStr = c"umbel-top";

    const LOAD_COMMAND: &'static CStr = c"TOPK.LOADCHUNK";

    fn type_handle() -> &'static TypeHandle {
        &TYPE_HANDLE
    }

    fn numbers(&self) -> Vec<u64> {
        let (list, (low, high)) = (&self.list, config::secret_to_numbers(&self.secret));
        let decay = list.decay().to_bits();
        vec![list.k(), list.width(), list.depth().into(), decay, list.draws(), low, high]
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

    fn restore(numbers: &[u64], filters: Vec<Stored>, extra: &[u8]) -> Option<Top> {
        let &[k, width, depth, decay, draws, low, high] = numbers else { return None };
        let (depth, decay) = (u32::try_from(depth).ok()?, f64::from_bits(decay));
        let secret = config::secret_from_numbers(low, high);
        let design = TopDesign { k, width, depth, decay, secret };
        let cells = usize::try_from(design.cell_lines()?.checked_mul(LINE_BYTES as u64)?).ok()?;
        let (cells, items) = extra.split_at_checked(cells)?;
        if !filters.is_empty() {
            return None;
        }
        // The library refuses a list of fewer than k places, so an item that cannot be read is an
        // error.
        let mut items = Fields(items);
        let heap = (0..k).map_while(|_| read_item(&mut items));
        let cells = persist::words_from_bytes(cells)?;
        let list = TopK::from_parts(design.builder(), Hasher::keyed(secret), draws, cells, heap).ok()?;
        items.0.is_empty().then_some(Top { list, secret })
    }

    fn memory_bytes(&self) -> usize {
        self.list.bytes() as usize
    }

    fn copy(&self) -> umbel::Result<Top> {
        Ok(Top { list: self.list.try_clone()?, ..*self })
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
