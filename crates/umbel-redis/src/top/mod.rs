//! `TOPK.*`: the items that come most often. (HeavyKeeper: Yang et al. 2018)
//!
//! [`Top`] is the value, [`commands`] what can be done with it.

mod commands;

pub use commands::COMMANDS;

use crate::config;
use crate::engine::{Failure, Result, TypeSlot};
use crate::kept::Kept;
use std::ffi::CStr;
use umbel::file::fields::{Fields, put_varint};
use umbel::hash::reduce;
use umbel::words::{Mover, Words, relocate_vec};
use umbel::{Digest, Hasher};

/// No more rows: each is fought for by every item.
pub const MOST_DEPTH: u64 = 32;

/// What a list is to be like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Design {
    /// How many items it tells.
    pub k: u64,
    pub width: u64,
    pub depth: u64,
    /// The base of the probability with which a counter is lowered when another item wants it.
    pub decay: f64,
    pub secret: [u8; 16],
}

/// The most frequent items, and the counters of those that may become so.
///
/// A counter belongs to an item, by its fingerprint. Others that meet it lower it, the more seldom the higher it is:
/// those that come often stay, and the others take turns.
#[derive(Debug)]
pub struct Top {
    design: Design,
    /// A fingerprint and a count in a word, the rows behind one another.
    words: Words,
    /// A place for each item that is told: the lightest first, and below each two that are not lighter.
    heap: Vec<Entry>,
    /// How often chance was asked: the same commands give the same list everywhere.
    chances: u64,
}

impl Top {
    /// One to which nothing was added.
    pub fn new(design: Design) -> Result<Top> {
        let cells =
            design.width.checked_mul(design.depth).ok_or_else(|| Failure::new("TopK: it is too large"))?;
        // The items themselves come later, each with its own length.
        let bytes = cells.div_ceil(8).saturating_mul(64);
        config::check_memory(bytes.saturating_add(design.k.saturating_mul(64)))?;
        let (words, heap) = (Words::zeroed(cells.div_ceil(8))?, places(design.k)?);
        Ok(Top { design, words, heap, chances: 0 })
    }

    pub fn design(&self) -> &Design {
        &self.design
    }

    /// The items, the heaviest first.
    pub fn items(&self) -> Vec<&Entry> {
        let mut items: Vec<&Entry> = self.heap.iter().filter(|entry| entry.count > 0).collect();
        items.sort_by_key(|entry| std::cmp::Reverse(entry.count));
        items
    }

    /// Whether it is one of those that are told.
    pub fn contains(&self, item: &[u8]) -> bool {
        self.heap.iter().any(|entry| entry.count > 0 && entry.item == item)
    }

    fn digest(&self, item: &[u8]) -> Digest {
        Hasher::keyed(self.design.secret).digest_bytes(item)
    }

    /// The cells of an item, one in each row.
    fn places(&self, digest: Digest) -> impl Iterator<Item = usize> + use<> {
        let Design { width, depth, .. } = self.design;
        (0..depth).map(move |row| (row * width + reduce(digest.salted(row).get(), width)) as usize)
    }

    /// How often it came, or less.
    pub fn count(&self, item: &[u8]) -> u32 {
        let known =
            self.heap.iter().find(|entry| entry.count > 0 && entry.item == item).map(|entry| entry.count);
        known.unwrap_or_else(|| {
            let digest = self.digest(item);
            let cells = self.places(digest).map(|place| Cell::of(self.words.words()[place]));
            cells.filter(|cell| cell.mark == mark(digest)).map(|cell| cell.count).max().unwrap_or_default()
        })
    }

    /// Adds an item so often; the one that is no longer told, if it takes its place.
    pub fn add(&mut self, item: &[u8], times: u32) -> Result<Option<Vec<u8>>> {
        let digest = self.digest(item);
        let mark = mark(digest);
        let mut count = 0;
        for place in self.places(digest) {
            let mut cell = Cell::of(self.words.words()[place]);
            if cell.count == 0 || cell.mark == mark {
                cell = Cell { mark, count: cell.count.saturating_add(times) };
            } else {
                cell = self.contend(cell, mark, times);
            }
            if cell.mark == mark {
                count = count.max(cell.count);
            }
            self.words.words_mut()[place] = cell.word();
        }
        Ok(self.place(item, count))
    }

    /// What becomes of a counter that another item wants so often.
    fn contend(&mut self, mut cell: Cell, mark: u32, times: u32) -> Cell {
        for left in (1..=times).rev() {
            self.chances = self.chances.wrapping_add(1);
            let chance = Digest::from_hash(self.chances).salted(u64::from(mark)).get() as f64 / 2f64.powi(64);
            let likely = self.design.decay.powf(f64::from(cell.count));
            if chance < likely {
                cell.count -= 1;
                if cell.count == 0 {
                    return Cell { mark, count: left };
                }
            }
            // Where a lower count is out of reach, the rest of the attempts would be too.
            if likely < 1e-12 {
                break;
            }
        }
        cell
    }

    /// Gives an item its count, and a place if it has none; the one that had it, if it is no longer told. Who comes as
    /// often as the least of them is told instead, as RedisBloom has it.
    fn place(&mut self, item: &[u8], count: u32) -> Option<Vec<u8>> {
        if let Some(known) = self.heap.iter().position(|entry| entry.count > 0 && entry.item == item) {
            let entry = &mut self.heap[known];
            entry.count = entry.count.max(count);
            self.sink(known);
            return None;
        }
        let least = self.heap.first_mut()?;
        if count < least.count {
            return None;
        }
        let gone = std::mem::replace(least, Entry { count, item: item.to_vec() });
        self.sink(0);
        (gone.count > 0).then_some(gone.item)
    }

    /// Moves an entry down to where those below it are heavier. Of equal ones the one that came first goes up, to be the
    /// first that loses its place.
    fn sink(&mut self, mut at: usize) {
        loop {
            let below = (2 * at + 1..=2 * at + 2).filter(|below| *below < self.heap.len());
            let Some(lightest) =
                below.min_by_key(|below| (self.heap[*below].count, std::cmp::Reverse(*below)))
            else {
                return;
            };
            if self.heap[lightest].count > self.heap[at].count {
                return;
            }
            self.heap.swap(at, lightest);
            at = lightest;
        }
    }
}

/// An item that is told, and how often it came; 0 if the place is free.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub count: u32,
    pub item: Vec<u8>,
}

/// So many free places.
fn places(k: u64) -> Result<Vec<Entry>> {
    let mut heap = Vec::new();
    let count = usize::try_from(k).unwrap_or(usize::MAX);
    heap.try_reserve_exact(count).map_err(|_| Failure::new("TopK: there is no memory for so many"))?;
    heap.resize(count, Entry::default());
    Ok(heap)
}

/// The fingerprint of an item.
fn mark(digest: Digest) -> u32 {
    (digest.salted(u64::MAX).get() >> 32) as u32
}

/// A counter, and whose it is.
#[derive(Clone, Copy)]
struct Cell {
    mark: u32,
    count: u32,
}

impl Cell {
    fn of(word: u64) -> Cell {
        Cell { mark: (word >> 32) as u32, count: word as u32 }
    }

    fn word(self) -> u64 {
        u64::from(self.mark) << 32 | u64::from(self.count)
    }
}

static SLOT: TypeSlot = TypeSlot::new();

impl Kept for Top {
    const NAME: &'static CStr = c"umbel-top";

    const LOADER: &'static CStr = c"TOPK.LOADCHUNK";

    fn slot() -> &'static TypeSlot {
        &SLOT
    }

    fn numbers(&self) -> Vec<u64> {
        let Design { k, width, depth, decay, secret } = self.design;
        let (low, high) = config::as_numbers(&secret);
        vec![k, width, depth, decay.to_bits(), self.chances, low, high]
    }

    fn words(&self) -> Vec<&Words> {
        vec![&self.words]
    }

    fn rest(&self) -> umbel::Result<Vec<u8>> {
        let mut rest = crate::kept::bytes_of(&self.words)?;
        for Entry { count, item } in &self.heap {
            put_varint(&mut rest, u64::from(*count));
            put_varint(&mut rest, item.len() as u64);
            rest.extend(item);
        }
        Ok(rest)
    }

    fn restore(numbers: &[u64], filters: Vec<umbel::any::Stored>, rest: &[u8]) -> Option<Top> {
        let &[k, width, depth, decay, chances, low, high] = numbers else { return None };
        let design =
            Design { k, width, depth, decay: f64::from_bits(decay), secret: config::from_numbers(low, high) };
        let lines = width.checked_mul(depth)?.div_ceil(8);
        let (words, items) = rest.split_at_checked(usize::try_from(lines.checked_mul(64)?).ok()?)?;
        if !filters.is_empty()
            || lines == 0
            || k == 0
            || depth > MOST_DEPTH
            || !(0.0..=1.0).contains(&design.decay)
        {
            return None;
        }
        let mut top = Top { design, words: Words::zeroed(lines).ok()?, heap: Vec::new(), chances };
        let numbers = words.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        top.words.words_mut().iter_mut().zip(numbers).for_each(|(word, number)| *word = number);
        let mut fields = Fields(items);
        while !fields.0.is_empty() {
            let (count, len) = (u32::try_from(fields.varint()?).ok()?, fields.varint()?);
            top.heap.push(Entry { count, item: fields.bytes(len)?.to_vec() });
        }
        let heap = &top.heap;
        let ordered = (1..heap.len()).all(|i| heap[(i - 1) / 2].count <= heap[i].count);
        (ordered && heap.len() as u64 == k).then_some(top)
    }

    fn memory(&self) -> usize {
        let items = self.heap.iter().map(|entry| size_of_val(entry) + entry.item.capacity());
        size_of_val(self.words.lines()) + items.sum::<usize>()
    }

    fn copy(&self) -> umbel::Result<Top> {
        Ok(Top { words: self.words.try_clone()?, heap: self.heap.clone(), ..*self })
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.words.relocate(mover);
        self.heap.iter_mut().for_each(|entry| relocate_vec(&mut entry.item, mover));
        relocate_vec(&mut self.heap, mover);
    }
}
