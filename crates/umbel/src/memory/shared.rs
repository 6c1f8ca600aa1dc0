//! Words that several threads change at the same time.

use super::{CacheLine, LINE_WORDS, Words};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Owned words, accessed as atomics.
///
/// It takes the [`Words`] by value: while it lives, the same memory cannot be read with plain
/// loads, which would be a data race. SIMD loads are plain loads, so concurrent lookups read word
/// by word.
#[derive(Debug)]
pub struct AtomicWords {
    words: Words,
    /// One flag per region: see [`AtomicWords::hold`].
    held: Box<[Flag]>,
    /// The binary logarithm of the number of lines in a region.
    region_shift: u32,
}

/// Whether a region is held. Each flag has its own cache line, so that threads in different regions
/// do not disturb each other.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Flag(AtomicBool);

impl AtomicWords {
    /// The maximum number of regions: small enough that a batch can collect keys for each of them,
    /// large enough that two threads seldom need the same one.
    pub(crate) const MAX_REGIONS: usize = 256;

    /// Makes atomics of owned words.
    ///
    /// # Panics
    ///
    /// As [`Words::lines_mut`].
    pub(crate) fn new(words: Words) -> AtomicWords {
        assert!(words.is_owned(), "mapped and static memory is read-only");
        let mut region_shift = 0;
        while words.lines.saturating_sub(1) >> region_shift >= Self::MAX_REGIONS {
            region_shift += 1;
        }
        let regions = (words.lines.saturating_sub(1) >> region_shift) + 1;
        let held = (0..regions).map(|_| Flag::default()).collect();
        AtomicWords { words, held, region_shift }
    }

    /// Returns the words when all threads are done.
    pub(crate) fn into_words(self) -> Words {
        self.words
    }

    /// Returns the words, which any thread may read and change.
    #[inline(always)]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        let (start, lines) = (self.words.start.as_ptr(), self.words.lines);
        // SAFETY: the memory is owned, valid and initialised. An `AtomicU64` has the size and (on
        // this aligned memory) the alignment of a `u64`. `self.words` is private, so no plain
        // reference to its contents exists while `self` does. `start` comes from the allocator or
        // the kernel, not from a reference, so writing through it is allowed.
        unsafe { std::slice::from_raw_parts(start.cast(), lines * LINE_WORDS) }
    }

    /// Returns the words in groups of eight, one cache line each.
    #[inline(always)]
    pub(crate) fn lines(&self) -> &[[AtomicU64; LINE_WORDS]] {
        self.words().as_chunks().0
    }

    /// Returns the number of regions.
    pub(crate) fn regions(&self) -> usize {
        self.held.len()
    }

    /// Returns the region of line `index`.
    #[inline(always)]
    pub(crate) fn region_of(&self, index: usize) -> usize {
        index >> self.region_shift
    }

    /// Waits until no other thread holds the region, and holds it until the guard is dropped. Other
    /// threads that hold regions do not write to its lines in the meantime.
    #[inline(always)]
    pub(crate) fn hold(&self, region: usize) -> HeldRegion<'_> {
        let flag = &self.held[region].0;
        while flag.swap(true, Ordering::Acquire) {
            wait_for(flag);
        }
        HeldRegion { lines: self.lines(), flag }
    }
}

/// Waits for a thread that is writing a few keys, or was interrupted while doing so.
#[cold]
fn wait_for(flag: &AtomicBool) {
    for _ in 0..1000 {
        if !flag.load(Ordering::Relaxed) {
            return;
        }
        std::hint::spin_loop();
    }
    std::thread::yield_now();
}

/// A region that only this thread writes to.
pub(crate) struct HeldRegion<'a> {
    lines: &'a [[AtomicU64; LINE_WORDS]],
    flag: &'a AtomicBool,
}

impl HeldRegion<'_> {
    /// Sets the bits of `masks` in line `index` of this region and returns the bits that were not
    /// set before.
    ///
    /// This needs one locked operation per region instead of one per word: no other thread writes
    /// to a held region, so plain loads and stores suffice. Readers tolerate a line that is partly
    /// written.
    #[inline(always)]
    pub(crate) fn set(&self, index: usize, masks: CacheLine) -> u64 {
        let mut missing = 0;
        for (word, mask) in self.lines[index].iter().zip(masks.0) {
            let before = word.load(Ordering::Relaxed);
            missing |= mask & !before;
            word.store(before | mask, Ordering::Relaxed);
        }
        missing
    }
}

impl Drop for HeldRegion<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.flag.store(false, Ordering::Release);
    }
}
