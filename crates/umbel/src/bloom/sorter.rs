//! Keys collected by the region of memory they will be written to.

use crate::TILE;
use crate::memory::{AtomicWords, LINE_WORDS};
use std::cell::Cell;

/// A pigeonhole for every region.
///
/// A thread that writes a group of keys to one region pays for the right to do so, and for the cache misses that other
/// threads cause it, once per group instead of once per key. A group is put off until the next one is complete, so that
/// its lines can be fetched meanwhile.
#[derive(Debug)]
pub struct Sorter {
    /// [`STRIDE`] places for each region.
    keys: Box<[u64]>,
    /// How many of them are taken.
    taken: [u32; MAX_REGIONS],
    /// The regions that have enough: the first `complete` of these.
    regions: [u16; TILE + 1],
    complete: usize,
    /// The group put off last and the one before it, in turns; then the size and the region of the last.
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

/// The keys of a full group. Larger groups did not make two threads faster.
const GROUP_KEYS: u32 = 64;

/// Room for a group and the tile that may arrive before it is taken out. An odd number of cache lines spreads the ends
/// of the groups over the sets of the cache: a precaution, no difference was measured.
const STRIDE: usize = GROUP_KEYS as usize + TILE + LINE_WORDS;

thread_local! {
    /// The pigeonholes of the last batch: fresh memory for every one would cost as much as the batch itself.
    static SPARE: Cell<Option<Box<[u64]>>> = const { Cell::new(None) };
}

impl Sorter {
    /// For at most [`MAX_REGIONS`] regions.
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

    /// Leaves the memory to the next sorter of this thread.
    pub(super) fn retire(self) {
        // When the thread is at its end the memory goes with it.
        let _ = SPARE.try_with(|spare| spare.set(Some(self.keys)));
    }

    /// To sort at most a tile of keys, after which the complete groups have to be taken out.
    #[inline(always)]
    pub(super) fn sort(&mut self) -> Sorting<'_> {
        let Sorter { keys, taken, regions, complete, .. } = self;
        Sorting { keys, taken, regions, complete }
    }

    /// A region that has enough keys, if there is one.
    #[inline(always)]
    pub(super) fn full(&mut self) -> Option<usize> {
        self.complete = self.complete.checked_sub(1)?;
        Some(self.regions[self.complete].into())
    }

    /// The region of one of the last keys.
    pub(super) fn somewhere(&self) -> usize {
        self.regions[0].into()
    }

    /// Takes out the keys of a region and puts them off; the group put off before, and these.
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

/// The parts of a [`Sorter`] that sorting needs, borrowed apart so that they stay in registers.
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
        // Without a branch: the region is written down always and counted when it has just got enough.
        self.regions[*self.complete] = region as u16;
        *self.complete += usize::from(taken + 1 == GROUP_KEYS);
    }
}
