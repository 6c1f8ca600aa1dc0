//! The memory under every filter: [`Words`], 64-byte-aligned lines that are owned, mapped from a
//! file, or static.
//!
//! This is one concrete type instead of a type parameter, so that filters do not depend on where
//! their bits are stored, and callers never have to name it. Alignment matters: lines that straddle
//! two cache lines take twice as long to read from memory. [`Packed`] divides the memory into cells
//! of a few bits. [`AtomicWords`] shares it between threads.

#![allow(unsafe_code)]

pub(crate) mod bits;
mod cache_line;
mod common;
#[cfg(all(unix, feature = "mmap"))]
mod fault;
mod order;
mod packed;
mod relocation;
mod shared;

pub use cache_line::{CacheLine, LINE_BITS, LINE_BYTES, LINE_WORDS};
pub use common::count_common;
#[cfg(all(unix, feature = "mmap"))]
pub use fault::release_bus_signal;
pub(crate) use order::byte_place;
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

/// The size from which owned memory is mapped in whole huge pages, if the system has them. A filter
/// is read at random, and with 4 KiB pages every read from memory would miss the address
/// translation cache as well.
#[cfg(feature = "mmap")]
const HUGE_PAGE: usize = 2 << 20;

/// Whether all owned memory is taken from the allocator.
static FROM_ALLOCATOR: AtomicBool = AtomicBool::new(false);

/// Takes owned memory of every size from the program's allocator from now on, for programs that
/// count or limit it there. Large filters are then no longer in huge pages.
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
/// Reading costs the same for all three. Only owned words can be changed; [`Words::try_clone`]
/// returns an owned copy.
pub struct Words {
    start: NonNull<CacheLine>,
    lines: usize,
    keep: Keep,
}

/// The owner of the memory, which determines how it is freed.
enum Keep {
    Heap(Layout),
    /// Held only to unmap the pages when it is dropped.
    #[cfg(feature = "mmap")]
    #[expect(dead_code)]
    Pages(MmapMut),
    /// Held only to unmap the file when the last clone is dropped.
    #[cfg(feature = "mmap")]
    #[expect(dead_code)]
    Mapped(Arc<Mmap>),
    Static,
}

// SAFETY: `Words` owns its memory (or shares memory that is never written), lends it by the usual
// borrowing rules and has no thread affinity.
unsafe impl Send for Words {}
// SAFETY: as above; `&Words` only lends shared slices of plain integers.
unsafe impl Sync for Words {}

impl Words {
    /// Allocates lines of zeros. Large allocations are mapped lazily, so pages that are never
    /// touched cost nothing.
    ///
    /// # Errors
    ///
    /// If `lines` is 0 or there is not enough memory.
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

    /// Maps new anonymous pages. The words start at a huge-page boundary; the part before it is
    /// never touched.
    #[cfg(feature = "mmap")]
    fn pages(lines: usize, bytes: usize) -> Option<Words> {
        let mut map = MmapMut::map_anon(bytes.checked_add(HUGE_PAGE)?).ok()?;
        #[cfg(target_os = "linux")]
        // Only a hint: on a system without huge pages it fails without any effect.
        let _ = map.advise(memmap2::Advice::HugePage);
        let start = map.as_mut_ptr();
        // SAFETY: the map is one huge page longer than requested, so its first huge-page boundary
        // and the `bytes` bytes after it are inside.
        let start = unsafe { start.add(start.align_offset(HUGE_PAGE)) };
        Some(Words { start: NonNull::new(start)?.cast(), lines, keep: Keep::Pages(map) })
    }

    /// Uses a part of a mapped file in place. Returns `None` if the range is not inside the file or
    /// not aligned.
    #[cfg(feature = "mmap")]
    pub(crate) fn mapped(map: Arc<Mmap>, offset: usize, lines: usize) -> Option<Words> {
        let start = Words::aligned_range(&map, offset, lines)?;
        Some(Words { start, lines, keep: Keep::Mapped(map) })
    }

    /// Uses static memory in place. Returns `None` if the range is not inside it or not aligned.
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

    /// Returns the lines.
    #[inline(always)]
    pub fn lines(&self) -> &[CacheLine] {
        // SAFETY: `start` is valid for `lines` initialised lines as long as `keep` lives. `&self`
        // excludes writers in this program (writing needs `&mut self`, and `AtomicWords` owns its
        // words). The contract of `file::map` is that no other program changes a mapped file.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.lines) }
    }

    /// Returns the lines as 64-bit words: bit `i` of the filter is bit `i % 64` of word `i / 64`.
    #[inline(always)]
    pub fn words(&self) -> &[u64] {
        as_words(self.lines())
    }

    /// Returns the lines for writing.
    ///
    /// # Panics
    ///
    /// If the memory is mapped or static. Code outside the library cannot cause this: structures
    /// over such memory are only lent as shared references, by [`Mapped`](crate::file::Mapped) and
    /// [`ReadOnly`](crate::file::ReadOnly).
    #[inline(always)]
    pub fn lines_mut(&mut self) -> &mut [CacheLine] {
        assert!(self.is_owned(), "mapped and static memory is read-only");
        // SAFETY: as in `lines`; the memory is owned and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.lines) }
    }

    /// Returns the words for writing.
    ///
    /// # Panics
    ///
    /// As [`Words::lines_mut`].
    #[inline(always)]
    pub fn words_mut(&mut self) -> &mut [u64] {
        as_words_mut(self.lines_mut())
    }

    /// Returns whether the memory belongs to this value alone, so that it can be changed.
    #[inline(always)]
    pub fn is_owned(&self) -> bool {
        match self.keep {
            Keep::Heap(_) => true,
            #[cfg(feature = "mmap")]
            Keep::Pages(_) => true,
            _ => false,
        }
    }

    /// Returns an owned copy.
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    pub fn try_clone(&self) -> Result<Words> {
        let mut copy = Words::zeroed(self.lines as u64)?;
        copy.lines_mut().copy_from_slice(self.lines());
        Ok(copy)
    }

    /// Returns the lines as bytes, in the byte order of this machine.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        // SAFETY: initialised words are initialised bytes, without padding.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.lines * LINE_BYTES) }
    }

    /// Returns the lines as bytes for writing.
    pub(crate) fn as_bytes_mut(&mut self) -> &mut [u8] {
        let words = self.words_mut();
        // SAFETY: as above, and any bytes make valid words.
        unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
    }

    /// Returns the bytes in the format of files, with little-endian words.
    pub(crate) fn to_le_bytes(&self) -> Cow<'_, [u8]> {
        if cfg!(target_endian = "little") {
            return Cow::Borrowed(self.as_bytes());
        }
        Cow::Owned(self.words().iter().flat_map(|word| word.to_le_bytes()).collect())
    }

    /// Converts the words of a file to the byte order of this machine.
    pub(crate) fn convert_from_le(&mut self) {
        if cfg!(target_endian = "big") {
            self.words_mut().iter_mut().for_each(|word| *word = u64::from_le(*word));
        }
    }

    /// Replaces every word by the result of `operation` on it and the corresponding word of
    /// `other`.
    pub(crate) fn merge(&mut self, other: &Words, operation: impl Fn(u64, u64) -> u64) {
        for (ours, theirs) in self.words_mut().iter_mut().zip(other.words()) {
            *ours = operation(*ours, *theirs);
        }
    }

    /// Counts the bits that are set in this or in `other`.
    pub(crate) fn count_union(&self, other: &Words) -> u64 {
        self.words().iter().zip(other.words()).map(|(a, b)| u64::from((a | b).count_ones())).sum()
    }

    /// Counts the bits that are set.
    pub fn count_ones(&self) -> u64 {
        self.words().iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        if let Keep::Heap(layout) = self.keep {
            // SAFETY: allocated in `zeroed` with this layout, and not used after this.
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
    // SAFETY: no program can guarantee that others do not change or shorten the file meanwhile. But
    // every byte is verified before it is used, any bytes make a valid filter, and this library
    // replaces files and never edits them. The functions that open files document that shortening
    // one raises SIGBUS.
    unsafe { Mmap::map(file) }
}

/// Returns the words of lines.
#[inline(always)]
pub(crate) fn as_words(lines: &[CacheLine]) -> &[u64] {
    // SAFETY: a `CacheLine` is eight `u64` in C layout without padding (its size equals its
    // alignment).
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len() * LINE_WORDS) }
}

/// Reads at least `8 N - 7` bits from bit `start` on, with arbitrary bits above them. It is a
/// single unaligned load: half the work of [`read_bits`], but it may touch the next cache line
/// where `read_bits` would not. The fewer bytes it loads, the less often that happens.
#[inline(always)]
pub(crate) fn read_near<const N: usize>(words: &[u64], start: u64) -> u64 {
    read_bytes::<N>(words, start / 8) >> (start % 8)
}

/// Reads `N` bytes from `byte` on, at most 8, in the byte order of files. Bytes beyond the end
/// are 0.
#[inline(always)]
pub(crate) fn read_bytes<const N: usize>(words: &[u64], byte: u64) -> u64 {
    let len = words.len() as u64 * 8;
    // Written so that it cannot overflow, and so that a loop computes the loop-invariant part once.
    let inside = if N == 1 { byte < len } else { len >= N as u64 && byte <= len - N as u64 };
    if cfg!(target_endian = "little") && inside {
        let mut bytes = [0; 8];
        // SAFETY: these `N` bytes are inside the slice, and words are initialised bytes.
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

/// Returns the words of lines for writing.
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
    fn bytes_are_read_at_every_offset() {
        let words: Vec<u64> = (1..4u64).map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).chain([0; 8]).collect();
        for byte in 0..=24 {
            let expected = u64::from_le_bytes(bytes[byte..byte + 8].try_into().unwrap());
            assert_eq!(read_bytes::<8>(&words, byte as u64), expected);
            assert_eq!(read_bytes::<1>(&words, byte as u64), bytes[byte].into());
            // The only way on a big-endian machine: by arithmetic on whole words.
            assert_eq!(read_bytes_at_end::<8>(&words, byte as u64), expected);
            assert_eq!(read_bytes_at_end::<1>(&words, byte as u64), bytes[byte].into());
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
        assert!(std::panic::catch_unwind(change).is_err(), "static memory must not be writable");
        let mut copy = words.try_clone().unwrap();
        copy.words_mut()[0] = 7;
        assert_eq!((words.words()[0], copy.words()[0]), (2, 7));
        assert!(Words::from_static(bytes, 32, 1).is_none(), "misaligned");
        assert!(Words::from_static(bytes, 64, 3).is_none(), "too long");
        assert!(Words::from_static(bytes, 64, usize::MAX / 2).is_none(), "overflow");
    }
}
