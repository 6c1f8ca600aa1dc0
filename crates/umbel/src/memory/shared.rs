//! Words that several threads change at once.

use super::{CacheLine, LINE_WORDS, Words};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Owned words seen as atomics.
///
/// It takes the [`Words`] by value: as long as it lives, nobody can look at the same memory through plain loads, which
/// would be a data race. SIMD loads are plain loads, so concurrent lookups read word by word.
#[derive(Debug)]
pub struct AtomicWords {
    words: Words,
    /// One flag for every region: see [`AtomicWords::hold`].
    held: Box<[Flag]>,
    /// A region is `1 << region_shift` lines.
    region_shift: u32,
}

/// Whether a region is held, in a cache line of its own: two threads in two regions do not disturb each other.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Flag(AtomicBool);

impl AtomicWords {
    /// The most regions: few enough that a batch can collect keys for each of them, enough that two threads seldom
    /// meet.
    pub(crate) const MAX_REGIONS: usize = 256;

    /// Takes owned words.
    ///
    /// # Panics
    ///
    /// As [`Words::lines_mut`] does.
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

    /// The words back, once all threads are done.
    pub(crate) fn into_words(self) -> Words {
        self.words
    }

    /// The words, to be read and changed by anybody.
    #[inline(always)]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        let (start, lines) = (self.words.start.as_ptr(), self.words.lines);
        // SAFETY: the memory is owned, valid and initialised, an `AtomicU64` has the size and (on this aligned memory)
        // the alignment of a `u64`, and `self.words` is private: no plain reference to its contents exists while `self`
        // does. `start` comes from the allocator or the kernel, not from a reference, so writing through it is allowed.
        unsafe { std::slice::from_raw_parts(start.cast(), lines * LINE_WORDS) }
    }

    /// The words in groups of eight, one cache line each.
    #[inline(always)]
    pub(crate) fn lines(&self) -> &[[AtomicU64; LINE_WORDS]] {
        self.words().as_chunks().0
    }

    /// How many regions there are.
    pub(crate) fn regions(&self) -> usize {
        self.held.len()
    }

    /// Which region line `index` lies in.
    #[inline(always)]
    pub(crate) fn region_of(&self, index: usize) -> usize {
        index >> self.region_shift
    }

    /// Waits for a region: until the guard is dropped, nobody else who holds regions writes to its lines.
    #[inline(always)]
    pub(crate) fn hold(&self, region: usize) -> HeldRegion<'_> {
        let flag = &self.held[region].0;
        while flag.swap(true, Ordering::Acquire) {
            wait_for(flag);
        }
        HeldRegion { lines: self.lines(), flag }
    }
}

/// Another thread is writing a few keys, or was interrupted there.
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

/// Lines that only one thread writes to.
pub(crate) struct HeldRegion<'a> {
    lines: &'a [[AtomicU64; LINE_WORDS]],
    flag: &'a AtomicBool,
}

impl HeldRegion<'_> {
    /// Sets the bits of `masks` in line `index` of this region, and returns those that were not set before.
    ///
    /// One locked operation per region instead of one per word: while it is held nobody else writes to it, so that
    /// plain loads and stores will do. Readers do not need the line to hold still.
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
