//! Collects keys by the region of memory that they will be written to.

use crate::TILE;
use crate::memory::{AtomicWords, LINE_WORDS};
use std::cell::Cell;

/// A sorter with a bucket of keys for every region.
///
/// Writing to a region requires holding it, and other threads' writes cause cache misses there. A
/// thread that writes a group of keys at once pays for both once per group instead of once per key.
/// A complete group is held back until the next one is complete, so that its lines can be
/// prefetched in the meantime.
#[derive(Debug)]
pub struct Sorter {
    /// The buckets: [`STRIDE`] places for each region.
    keys: Box<[u64]>,
    /// The number of keys in each bucket.
    taken: [u32; MAX_REGIONS],
    /// The regions with a complete group are the first `complete` of these.
    regions: [u16; TILE + 1],
    complete: usize,
    /// The group held back last and the one before it, in turns. `count` and `region` are the size
    /// and the region of the last.
    waiting: [[u64; STRIDE]; 2],
    turns: usize,
    count: usize,
    region: usize,
}

/// Keys of one region.
pub struct Group<'a> {
    pub region: usize,
    pub keys: &'a [u64],
}

const MAX_REGIONS: usize = AtomicWords::MAX_REGIONS;

/// The number of keys in a complete group. Larger groups did not make two threads faster.
const GROUP_KEYS: u32 = 64;

/// The size of a bucket: a group, and the tile that may arrive before the group is taken out. An
/// odd number of cache lines spreads the ends of the groups over the sets of the cache. This is a
/// precaution; no difference was measured.
const STRIDE: usize = GROUP_KEYS as usize + TILE + LINE_WORDS;

thread_local! {
    /// The buckets of the last batch, for reuse: allocating new ones for every batch would cost as
    /// much as the batch itself.
    static SPARE: Cell<Option<Box<[u64]>>> = const { Cell::new(None) };
}

impl Sorter {
    /// Makes a sorter for at most [`MAX_REGIONS`] regions.
    pub(super) fn new(regions: usize) -> Sorter {
        let spare = SPARE.take().filter(|keys| keys.len() >= regions * STRIDE);
        Sorter {
            keys: spare.unwrap_or_else(|| vec![0; regions * STRIDE].into()),
            taken: [0; MAX_REGIONS],
            regions: [0; TILE + 1],
            complete: 0,
            waiting: [[0; STRIDE]; 2],
            turns: 0,
            count: 0,
            region: 0,
        }
    }

    /// Leaves the memory for the next sorter of this thread.
    pub(super) fn retire(self) {
        // If the thread is exiting, the memory is freed instead.
        let _ = SPARE.try_with(|spare| spare.set(Some(self.keys)));
    }

    /// Prepares to sort at most one tile of keys. Take out the complete groups afterwards.
    #[inline(always)]
    pub(super) fn sort(&mut self) -> Sorting<'_> {
        let Sorter { keys, taken, regions, complete, .. } = self;
        Sorting { keys, taken, regions, complete }
    }

    /// Returns a region with a complete group, if there is one.
    #[inline(always)]
    pub(super) fn full(&mut self) -> Option<usize> {
        self.complete = self.complete.checked_sub(1)?;
        Some(self.regions[self.complete].into())
    }

    /// Returns the region of a recent key, as a starting point that differs between threads.
    pub(super) fn somewhere(&self) -> usize {
        self.regions[0].into()
    }

    /// Takes the keys of a region out and holds them back. Returns the group that was held back
    /// before, and these keys.
    #[inline(always)]
    pub(super) fn turn(&mut self, region: usize) -> (Group<'_>, &[u64]) {
        let start = region * STRIDE;
        let count = std::mem::take(&mut self.taken[region]) as usize;
        self.turns += 1;
        let [even, odd] = &mut self.waiting;
        let (now, next) = if self.turns.is_multiple_of(2) { (odd, even) } else { (even, odd) };
        next[..count].copy_from_slice(&self.keys[start..start + count]);
        let before = std::mem::replace(&mut self.count, count);
        let group = Group { region: std::mem::replace(&mut self.region, region), keys: &now[..before] };
        (group, &next[..count])
    }
}

/// The fields of a [`Sorter`] that sorting needs, borrowed separately so that they stay in
/// registers.
pub(super) struct Sorting<'a> {
    keys: &'a mut [u64],
    taken: &'a mut [u32; MAX_REGIONS],
    regions: &'a mut [u16; TILE + 1],
    complete: &'a mut usize,
}

impl Sorting<'_> {
    #[inline(always)]
    pub(super) fn push(&mut self, region: usize, x: u64) {
        let taken = self.taken[region];
        self.keys[region * STRIDE + taken as usize] = x;
        self.taken[region] = taken + 1;
        // Branch-free: always store the region, but advance only if its group has just become
        // complete.
        self.regions[*self.complete] = region as u16;
        *self.complete += usize::from(taken + 1 == GROUP_KEYS);
    }
}
