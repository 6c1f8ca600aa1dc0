//! `CMS.*`: count-min sketches, which tell how often items came: never too few, and seldom many too many. (Cormode and
//! Muthukrishnan 2005)
//!
//! [`Sketch`] is the value, [`commands`] what can be done with it.

mod commands;

pub use commands::COMMANDS;

use crate::config;
use crate::engine::{Failure, Result, TypeSlot};
use crate::kept::Kept;
use std::ffi::CStr;
use umbel::Hasher;
use umbel::hash::reduce;
use umbel::words::{Mover, Words};

/// No more rows: each is looked at for every item.
pub const MOST_DEPTH: u64 = 256;

/// A row of counters for each hash: an item counts in one of each row, and the lowest of them is what is told.
#[derive(Debug)]
pub struct Sketch {
    width: u64,
    depth: u64,
    /// The sum of everything that was counted.
    count: u64,
    secret: [u8; 16],
    /// Two counters in a word, the rows behind one another.
    words: Words,
}

impl Sketch {
    /// One in which nothing was counted.
    pub fn new(width: u64, depth: u64, secret: [u8; 16]) -> Result<Sketch> {
        let counters =
            width.checked_mul(depth).ok_or_else(|| Failure::new("CMS: the sketch is too large"))?;
        let lines = counters.div_ceil(16);
        config::check_memory(lines.saturating_mul(64))?;
        Ok(Sketch { width, depth, count: 0, secret, words: Words::zeroed(lines)? })
    }

    pub fn width(&self) -> u64 {
        self.width
    }

    pub fn depth(&self) -> u64 {
        self.depth
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// The counters of an item, one in each row.
    fn places(&self, item: &[u8]) -> impl Iterator<Item = u64> + use<> {
        let (width, depth) = (self.width, self.depth);
        let digest = Hasher::keyed(self.secret).digest_bytes(item);
        (0..depth).map(move |row| row * width + reduce(digest.salted(row).get(), width))
    }

    fn get(&self, place: u64) -> u32 {
        (self.words.words()[(place / 2) as usize] >> (32 * (place % 2))) as u32
    }

    fn set(&mut self, place: u64, value: u32) -> Result<()> {
        let (word, shift) = ((place / 2) as usize, 32 * (place % 2));
        let words = self.words.words_mut();
        words[word] = words[word] & !(u64::from(u32::MAX) << shift) | u64::from(value) << shift;
        Ok(())
    }

    /// How often an item came, at most.
    pub fn query(&self, item: &[u8]) -> u32 {
        self.places(item).map(|place| self.get(place)).min().unwrap_or_default()
    }

    /// Counts an item so often; how often it has come then. A counter that is full stays so.
    pub fn add(&mut self, item: &[u8], times: u32) -> Result<u32> {
        let mut least = u32::MAX;
        for place in self.places(item) {
            let sum = self.get(place).saturating_add(times);
            self.set(place, sum)?;
            least = least.min(sum);
        }
        self.count = self.count.saturating_add(times.into());
        Ok(least)
    }

    /// Whether counters of another mean the same items.
    pub fn is_like(&self, other: &Sketch) -> bool {
        (self.width, self.depth, self.secret) == (other.width, other.depth, other.secret)
    }

    /// An empty sum of sketches like it.
    pub fn sum(&self) -> Result<Sum> {
        let cells = (self.width * self.depth) as usize;
        let mut cells_sum = Vec::new();
        cells_sum
            .try_reserve_exact(cells)
            .map_err(|_| Failure::new("CMS: there is no memory for the sum"))?;
        cells_sum.resize(cells, 0i64);
        Ok(Sum { cells: cells_sum, count: 0 })
    }

    /// Becomes a sum.
    pub fn become_sum(&mut self, sum: &Sum) -> Result<()> {
        for (place, cell) in (0..).zip(&sum.cells) {
            self.set(place, u32::try_from((*cell).max(0)).unwrap_or(u32::MAX))?;
        }
        self.count = u64::try_from(sum.count.max(0)).unwrap_or(u64::MAX);
        Ok(())
    }
}

/// A weighted sum of sketches. What is too large for it stays as large as it can be.
pub struct Sum {
    cells: Vec<i64>,
    count: i128,
}

impl Sum {
    pub fn add(&mut self, sketch: &Sketch, weight: i64) {
        for (place, cell) in (0..).zip(&mut self.cells) {
            *cell = cell.saturating_add(i64::from(sketch.get(place)).saturating_mul(weight));
        }
        self.count = self.count.saturating_add(i128::from(sketch.count) * i128::from(weight));
    }
}

static SLOT: TypeSlot = TypeSlot::new();

impl Kept for Sketch {
    const NAME: &'static CStr = c"umbel-cms";

    const LOADER: &'static CStr = c"CMS.LOADCHUNK";

    fn slot() -> &'static TypeSlot {
        &SLOT
    }

    fn numbers(&self) -> Vec<u64> {
        let (low, high) = crate::config::as_numbers(&self.secret);
        vec![self.width, self.depth, self.count, low, high]
    }

    fn words(&self) -> Vec<&Words> {
        vec![&self.words]
    }

    fn rest(&self) -> umbel::Result<Vec<u8>> {
        crate::kept::bytes_of(&self.words)
    }

    fn restore(numbers: &[u64], filters: Vec<umbel::any::Stored>, rest: &[u8]) -> Option<Sketch> {
        let &[width, depth, count, low, high] = numbers else { return None };
        let lines = width.checked_mul(depth)?.div_ceil(16);
        if !filters.is_empty()
            || width == 0
            || depth == 0
            || depth > MOST_DEPTH
            || rest.len() as u64 != lines.checked_mul(64)?
        {
            return None;
        }
        let mut words = Words::zeroed(lines).ok()?;
        let numbers = rest.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        words.words_mut().iter_mut().zip(numbers).for_each(|(word, number)| *word = number);
        Some(Sketch { width, depth, count, secret: config::from_numbers(low, high), words })
    }

    fn memory(&self) -> usize {
        size_of_val(self.words.lines())
    }

    fn copy(&self) -> umbel::Result<Sketch> {
        Ok(Sketch { words: self.words.try_clone()?, ..*self })
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.words.relocate(mover);
    }
}
