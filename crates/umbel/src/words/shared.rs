//! Words that several threads change at once.

use super::{LINE_WORDS, Words};
use crate::arch::prefetch;
use crate::{Error, Result};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Owned words seen as atomics.
///
/// It takes the [`Words`] by value: as long as it lives, nobody can look at the same memory through plain loads, which
/// would be a data race. SIMD loads are plain loads, so concurrent lookups read word by word.
#[derive(Debug)]
pub struct AtomicWords {
    words: Words,
    /// One flag for every line, or for every so many-th: see [`AtomicWords::hold`].
    held: Box<[AtomicBool]>,
}

/// The most flags: 64 KiB, few enough to stay in the cache and enough that two threads hardly ever meet at one.
const MOST_FLAGS: usize = 1 << 16;

impl AtomicWords {
    /// Takes owned words; mapped and static memory is refused.
    pub(crate) fn new(words: Words) -> Result<AtomicWords> {
        if !words.is_owned() {
            return Err(Error::ReadOnly);
        }
        let flags = words.lines.next_power_of_two().min(MOST_FLAGS);
        let held = (0..flags).map(|_| AtomicBool::new(false)).collect();
        Ok(AtomicWords { words, held })
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

    /// Line `index`, with the promise that nobody else who holds lines writes to it until the guard is dropped.
    #[inline(always)]
    pub(crate) fn hold(&self, index: usize) -> HeldLine<'_> {
        let line = &self.lines()[index];
        let flag = &self.held[index & (self.held.len() - 1)];
        while flag.swap(true, Ordering::Acquire) {
            wait_for(flag);
        }
        HeldLine { line, flag }
    }

    /// Asks for the flag of a line ahead of time.
    #[inline(always)]
    pub(crate) fn prefetch(&self, index: usize) {
        prefetch(self.lines(), index);
        prefetch(&self.held, index & (self.held.len() - 1));
    }
}

/// Another thread is in the middle of a dozen instructions, or was interrupted there.
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

/// A line that one thread writes to.
pub(crate) struct HeldLine<'a> {
    line: &'a [AtomicU64; LINE_WORDS],
    flag: &'a AtomicBool,
}

impl std::ops::Deref for HeldLine<'_> {
    type Target = [AtomicU64; LINE_WORDS];

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        self.line
    }
}

impl Drop for HeldLine<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.flag.store(false, Ordering::Release);
    }
}
