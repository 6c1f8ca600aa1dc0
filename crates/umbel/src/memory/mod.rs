//! The memory under every filter: [`Words`], 64-byte-aligned lines that are owned, mapped from a file, or static.
//!
//! One concrete type instead of a type parameter: a filter does not care where its bits live, and a caller never has
//! to name it. Alignment matters: a filter whose lines straddle two cache lines takes twice the time from memory.
//! [`Packed`] sees them as cells of a few bits. [`AtomicWords`] is the same memory seen by several threads at once.

#![allow(unsafe_code)]

pub(crate) mod bits;
mod cache_line;
mod common;
#[cfg(all(unix, feature = "mmap"))]
mod fault;
mod packed;
mod relocation;
mod shared;

pub use cache_line::{CacheLine, LINE_BITS, LINE_BYTES, LINE_WORDS};
pub use common::count_common;
#[cfg(all(unix, feature = "mmap"))]
pub use fault::release_bus_signal;
pub use packed::Packed;
pub(crate) use packed::{read_bits, write_bits};
pub use relocation::{Mover, relocate_box, relocate_vec};
#[doc(hidden)]
pub use shared::AtomicWords;

use crate::{Error, Result};
#[cfg(feature = "mmap")]
use memmap2::{Mmap, MmapMut};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::borrow::Cow;
#[cfg(feature = "mmap")]
use std::fs::File;
#[cfg(feature = "mmap")]
use std::io;
use std::ptr::NonNull;
#[cfg(feature = "mmap")]
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// From this size on, owned memory is mapped in whole huge pages where the system has them: a filter is read at
/// random, and with 4 KiB pages every read from memory would miss the address translation cache as well.
#[cfg(feature = "mmap")]
const HUGE_PAGE: usize = 2 << 20;

/// Whether all owned memory comes from the allocator.
static FROM_ALLOCATOR: AtomicBool = AtomicBool::new(false);

/// From now on, owned memory of every size comes from the program's allocator: for programs that count it there, or
/// bound it. What is large is no longer in huge pages then.
///
/// ```
/// umbel::memory::take_from_allocator();
/// assert_eq!(umbel::memory::Words::zeroed(1 << 17)?.count_ones(), 0);
/// # Ok::<(), umbel::Error>(())
/// ```
pub fn take_from_allocator() {
    FROM_ALLOCATOR.store(true, Ordering::Relaxed);
}

/// 64-byte-aligned lines of bits: owned, mapped or static.
///
/// Reading costs the same in all three. Only owned words can be changed; [`Words::try_clone`] returns an owned copy.
pub struct Words {
    start: NonNull<CacheLine>,
    lines: usize,
    keep: Keep,
}

/// What keeps the memory alive, and how it is given back.
enum Keep {
    Heap(Layout),
    /// Dropped for its effect: it unmaps the pages.
    #[cfg(feature = "mmap")]
    #[expect(dead_code)]
    Pages(MmapMut),
    /// Dropped for its effect: the last one unmaps the file.
    #[cfg(feature = "mmap")]
    #[expect(dead_code)]
    Mapped(Arc<Mmap>),
    Static,
}

// SAFETY: `Words` owns its memory (or shares memory that nobody writes), hands it out by the usual borrowing rules
// and has no thread affinity.
unsafe impl Send for Words {}
// SAFETY: as above; `&Words` only gives shared slices of plain integers.
unsafe impl Sync for Words {}

impl Words {
    /// Owned lines, all zero. Large ones are mapped lazily, so that pages never touched cost nothing.
    pub fn zeroed(lines: u64) -> Result<Words> {
        let too_large = || Error::OutOfMemory { bytes: lines.saturating_mul(LINE_BYTES as u64) };
        let count = usize::try_from(lines).map_err(|_| too_large())?;
        let layout = Layout::array::<CacheLine>(count).map_err(|_| too_large())?;
        if count == 0 {
            return Err(Error::parameter("lines", 0, "at least one line of 64 bytes"));
        }
        #[cfg(feature = "mmap")]
        if layout.size() >= HUGE_PAGE && !FROM_ALLOCATOR.load(Ordering::Relaxed) {
            return Words::pages(count, layout.size()).ok_or_else(too_large);
        }
        // SAFETY: the layout's size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(too_large)?;
        Ok(Words { start: start.cast(), lines: count, keep: Keep::Heap(layout) })
    }

    /// Fresh anonymous pages, starting at a huge-page boundary; the part before it is never touched.
    #[cfg(feature = "mmap")]
    fn pages(lines: usize, bytes: usize) -> Option<Words> {
        let mut map = MmapMut::map_anon(bytes.checked_add(HUGE_PAGE)?).ok()?;
        #[cfg(target_os = "linux")]
        // Advice only: a system without huge pages answers with an error that changes nothing.
        let _ = map.advise(memmap2::Advice::HugePage);
        let start = map.as_mut_ptr();
        // SAFETY: the map is a whole huge page longer than asked for, so that its first boundary and `bytes` bytes
        // after it lie inside.
        let start = unsafe { start.add(start.align_offset(HUGE_PAGE)) };
        Some(Words { start: NonNull::new(start)?.cast(), lines, keep: Keep::Pages(map) })
    }

    /// A slice of a mapped file, used in place. `None` when the range is not inside it or not aligned.
    #[cfg(feature = "mmap")]
    pub(crate) fn mapped(map: Arc<Mmap>, offset: usize, lines: usize) -> Option<Words> {
        let start = Words::aligned_range(&map, offset, lines)?;
        Some(Words { start, lines, keep: Keep::Mapped(map) })
    }

    /// Static memory, used in place. `None` when the range is not inside it or not aligned.
    pub(crate) fn from_static(bytes: &'static [u8], offset: usize, lines: usize) -> Option<Words> {
        let start = Words::aligned_range(bytes, offset, lines)?;
        Some(Words { start, lines, keep: Keep::Static })
    }

    fn aligned_range(bytes: &[u8], offset: usize, lines: usize) -> Option<NonNull<CacheLine>> {
        let end = lines.checked_mul(LINE_BYTES)?.checked_add(offset)?;
        let range = bytes.get(offset..end)?;
        let start = NonNull::from(range).cast::<CacheLine>();
        (lines > 0 && start.is_aligned()).then_some(start)
    }

    /// The lines.
    #[inline(always)]
    pub fn lines(&self) -> &[CacheLine] {
        // SAFETY: `start` is valid for `lines` initialised lines for as long as `keep` lives, and `&self` keeps any
        // writer of this program away (writing needs `&mut self`, and `AtomicWords` owns its words); that nobody else
        // changes a mapped file is the contract of `file::map`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.lines) }
    }

    /// The lines as 64-bit words: bit `i` of the filter is bit `i % 64` of word `i / 64`.
    #[inline(always)]
    pub fn words(&self) -> &[u64] {
        as_words(self.lines())
    }

    /// The lines, for writing.
    ///
    /// # Panics
    ///
    /// If the memory is mapped or static. Nobody outside the library gets there: structures over such memory are only
    /// handed out behind a shared reference, by [`Mapped`](crate::file::Mapped) and [`ReadOnly`](crate::file::ReadOnly).
    #[inline(always)]
    pub fn lines_mut(&mut self) -> &mut [CacheLine] {
        assert!(self.is_owned(), "mapped and static memory is read-only");
        // SAFETY: as in `lines`; the memory is owned and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.lines) }
    }

    /// The words, for writing.
    ///
    /// # Panics
    ///
    /// As [`Words::lines_mut`] does.
    #[inline(always)]
    pub fn words_mut(&mut self) -> &mut [u64] {
        as_words_mut(self.lines_mut())
    }

    /// Whether the memory belongs to this value alone, so that it can be changed.
    #[inline(always)]
    pub fn is_owned(&self) -> bool {
        match self.keep {
            Keep::Heap(_) => true,
            #[cfg(feature = "mmap")]
            Keep::Pages(_) => true,
            _ => false,
        }
    }

    /// An owned copy, whatever this one is.
    pub fn try_clone(&self) -> Result<Words> {
        let mut copy = Words::zeroed(self.lines as u64)?;
        copy.lines_mut().copy_from_slice(self.lines());
        Ok(copy)
    }

    /// The lines as bytes, in the order of this machine.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        // SAFETY: initialised words are initialised bytes, without padding.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.lines * LINE_BYTES) }
    }

    /// The lines as bytes, to be changed.
    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        let words = self.words_mut();
        // SAFETY: as above, and any bytes make valid words.
        unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
    }

    /// The bytes as files have them, with little-endian words.
    pub(crate) fn to_le_bytes(&self) -> Cow<'_, [u8]> {
        if cfg!(target_endian = "little") {
            return Cow::Borrowed(self.as_bytes());
        }
        Cow::Owned(self.words().iter().flat_map(|word| word.to_le_bytes()).collect())
    }

    /// Turns the words of a file into those of this machine.
    pub(crate) fn convert_from_le(&mut self) {
        if cfg!(target_endian = "big") {
            self.words_mut().iter_mut().for_each(|word| *word = u64::from_le(*word));
        }
    }

    /// Replaces every word by `operation` of it and the word of `other` at the same place.
    pub(crate) fn merge(&mut self, other: &Words, operation: impl Fn(u64, u64) -> u64) {
        for (ours, theirs) in self.words_mut().iter_mut().zip(other.words()) {
            *ours = operation(*ours, *theirs);
        }
    }

    /// How many bits are set in this or in `other`.
    pub(crate) fn count_union(&self, other: &Words) -> u64 {
        self.words().iter().zip(other.words()).map(|(a, b)| u64::from((a | b).count_ones())).sum()
    }

    /// How many bits are set.
    pub fn count_ones(&self) -> u64 {
        self.words().iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        if let Keep::Heap(layout) = self.keep {
            // SAFETY: allocated in `zeroed` with this very layout, and nobody uses it any more.
            unsafe { dealloc(self.start.as_ptr().cast(), layout) }
        }
    }
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let storage = if self.is_owned() { "owned" } else { "read-only" };
        write!(f, "Words({} lines, {storage})", self.lines)
    }
}

/// Maps a whole file for reading.
#[cfg(feature = "mmap")]
pub(crate) fn map_file(file: &File) -> io::Result<Mmap> {
    // SAFETY: that nobody changes or shortens the file meanwhile cannot be guaranteed by any program. Every byte is
    // verified before it is believed, any bytes make a valid filter, and this library replaces files, never edits them;
    // that shortening one raises SIGBUS is documented where files are opened.
    unsafe { Mmap::map(file) }
}

/// Lines seen as the words they consist of.
#[inline(always)]
pub(crate) fn as_words(lines: &[CacheLine]) -> &[u64] {
    // SAFETY: a `CacheLine` is eight `u64` in C layout without padding (its size equals its alignment).
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * LINE_WORDS) }
}

/// `8 N - 7` bits or more from bit `start` on, and above them anything. One load that need not be aligned: half the work
/// of [`read_bits`], but it may touch the next cache line where that would not; the less it loads, the less often.
#[inline(always)]
pub(crate) fn read_near<const N: usize>(words: &[u64], start: u64) -> u64 {
    read_bytes::<N>(words, start / 8) >> (start % 8)
}

/// The `N` bytes from `byte` on, at most 8, as files have them; those beyond the end are 0.
#[inline(always)]
pub(crate) fn read_bytes<const N: usize>(words: &[u64], byte: u64) -> u64 {
    let len = words.len() as u64 * 8;
    // Written so that it cannot overflow, and so that in a loop what does not change is computed once.
    let inside = if N == 1 { byte < len } else { len >= N as u64 && byte <= len - N as u64 };
    if cfg!(target_endian = "little") && inside {
        let mut bytes = [0; 8];
        // SAFETY: `N` bytes from there on end inside the slice, and words are initialised bytes.
        let source = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>().add(byte as usize), N) };
        bytes[..N].copy_from_slice(source);
        return u64::from_le_bytes(bytes);
    }
    read_bytes_at_end::<N>(words, byte)
}

#[cold]
fn read_bytes_at_end<const N: usize>(words: &[u64], byte: u64) -> u64 {
    let word = |index: u64| words.get(index as usize).copied().unwrap_or_default();
    let shift = (byte % 8 * 8) as u32;
    let bytes = word(byte / 8) >> shift | word(byte / 8 + 1) << 1 << (63 - shift);
    bytes & !0 >> (64 - 8 * N)
}

/// Lines seen as the words they consist of, to be changed.
#[inline(always)]
pub(crate) fn as_words_mut(lines: &mut [CacheLine]) -> &mut [u64] {
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * LINE_WORDS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_words_are_zero_and_aligned_on_the_heap_and_in_pages() {
        for lines in [1, 7, 1024, HUGE_PAGE as u64 / 64, 3 * HUGE_PAGE as u64 / 64 + 5] {
            let mut words = Words::zeroed(lines).unwrap();
            assert_eq!(words.lines().len() as u64, lines);
            assert_eq!(words.lines().as_ptr() as usize % 64, 0);
            assert_eq!(words.count_ones(), 0);
            let last = words.words().len() - 1;
            words.words_mut()[last] = 1 << 63;
            words.words_mut()[0] = 1;
            assert_eq!(words.try_clone().unwrap().count_ones(), 2);
        }
    }

    #[test]
    fn bytes_are_read_wherever_they_are() {
        let words: Vec<u64> = (1..4u64).map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).chain([0; 8]).collect();
        for byte in 0..=24 {
            let expected = u64::from_le_bytes(bytes[byte..byte + 8].try_into().unwrap());
            assert_eq!(read_bytes::<8>(&words, byte as u64), expected);
            assert_eq!(read_bytes::<1>(&words, byte as u64), bytes[byte].into());
        }
        assert_eq!(
            (read_bytes::<8>(&words, 25), read_bytes::<8>(&words, 1 << 60), read_bytes::<8>(&[], 0)),
            (0, 0, 0)
        );
        for start in 0..192 - 57 {
            assert_eq!(read_near::<8>(&words, start) << 7, read_bits(&words, start, 57) << 7);
            assert_eq!(read_near::<4>(&words, start) << 39, read_bits(&words, start, 25) << 39);
            assert_eq!(read_near::<2>(&words, start) << 55, read_bits(&words, start, 9) << 55);
        }
    }

    #[test]
    fn absurd_sizes_are_refused_without_an_abort() {
        for lines in [u64::MAX, u64::MAX / 64, 1 << 54] {
            assert!(matches!(Words::zeroed(lines), Err(Error::OutOfMemory { .. })), "{lines}");
        }
        assert!(matches!(Words::zeroed(0), Err(Error::Parameter { .. })));
    }

    #[test]
    fn static_words_are_used_in_place_and_cannot_be_changed() {
        static BYTES: &[CacheLine; 3] = &[CacheLine([1; 8]), CacheLine([2; 8]), CacheLine([4; 8])];
        // SAFETY: three lines are 192 bytes.
        let bytes = unsafe { std::slice::from_raw_parts(BYTES.as_ptr().cast::<u8>(), 192) };
        let mut words = Words::from_static(bytes, 64, 2).unwrap();
        assert_eq!(words.words()[0], 2);
        let change = std::panic::AssertUnwindSafe(|| words.lines_mut().len());
        assert!(std::panic::catch_unwind(change).is_err(), "static memory can be changed");
        let mut copy = words.try_clone().unwrap();
        copy.words_mut()[0] = 7;
        assert_eq!((words.words()[0], copy.words()[0]), (2, 7));
        assert!(Words::from_static(bytes, 32, 1).is_none(), "misaligned");
        assert!(Words::from_static(bytes, 64, 3).is_none(), "too long");
        assert!(Words::from_static(bytes, 64, usize::MAX / 2).is_none(), "overflow");
    }
}
