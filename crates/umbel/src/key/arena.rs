//! Arenas: batches of byte strings in one buffer.

#[cfg(feature = "foreign")]
use super::batch::{START_BYTES, Starts};
use super::{Batch, Key, hash_each};
use crate::arch::{Kernel, Simd, prefetch};
use crate::hash::{Ends, Function};
use crate::memory::LINE_BYTES;
use crate::{Digest, Error, Hasher, Level, Result, TILE};
use std::ops::Range;

/// A position in the buffer of an [`Arena`].
pub trait Offset: Copy {
    /// Returns the number of bytes before the position. A negative offset becomes larger than any
    /// buffer, and is refused.
    fn bytes(self) -> u64;
}

macro_rules! offsets {
    ($($int:ty),*) => {$(
        impl Offset for $int {
            #[inline(always)]
            fn bytes(self) -> u64 {
                self as u64
            }
        }
    )*};
}
offsets!(u32, u64, usize, i32, i64);

/// Byte strings in one buffer: string `i` is `bytes[offsets[i]..offsets[i + 1]]`.
///
/// It needs no allocation and no pointer per key, and has the layout of an Arrow string column. For
/// strings with a separator between them, such as lines of text, use [`Arena::separated`].
///
/// ```
/// use umbel::{Arena, Batch};
/// let arena = Arena::new(b"redgreenblue", &[0u32, 3, 8, 12])?;
/// assert_eq!(arena.len(), 3);
/// assert_eq!(arena.get(1), Some(&b"green"[..]));
/// let lines = Arena::separated(b"red\ngreen\nblue\n", &[0u32, 4, 10, 15])?;
/// assert_eq!(lines.get(1), Some(&b"green"[..]));
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Arena<'a, O> {
    bytes: &'a [u8],
    offsets: &'a [O],
    /// The number of bytes between a string and the next.
    gap: usize,
}

/// The number of bytes ahead of the current tile that are prefetched, as for a slice of keys.
const BYTES_AHEAD: usize = 4096;

impl<'a, O: Offset> Arena<'a, O> {
    /// Makes an arena of adjacent strings.
    ///
    /// # Errors
    ///
    /// If the offsets are not in order or leave the buffer.
    pub fn new(bytes: &'a [u8], offsets: &'a [O]) -> Result<Arena<'a, O>> {
        Arena::with_gap(bytes, offsets, 0)
    }

    /// Makes an arena of strings with one byte between them, such as lines: string `i` is
    /// `bytes[offsets[i]..offsets[i + 1] - 1]`.
    ///
    /// # Errors
    ///
    /// If the offsets do not rise, by at least one each, or leave the buffer.
    pub fn separated(bytes: &'a [u8], offsets: &'a [O]) -> Result<Arena<'a, O>> {
        Arena::with_gap(bytes, offsets, 1)
    }

    fn with_gap(bytes: &'a [u8], offsets: &'a [O], gap: usize) -> Result<Arena<'a, O>> {
        let rising = Level::detect().run(Rising { offsets, by: gap as u64 });
        let end = offsets.last().map_or(0, |&end| end.bytes());
        if !rising || end > bytes.len() as u64 {
            let needs =
                format!("offsets that rise and end at or below {}, the length of the buffer", bytes.len());
            return Err(Error::parameter("offsets", format!("{} entries up to {end}", offsets.len()), needs));
        }
        Ok(Arena { bytes, offsets, gap })
    }

    /// Returns string `index`, if there is one.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        let (from, to) = (*self.offsets.get(index)?, *self.offsets.get(index + 1)?);
        self.bytes.get(from.bytes() as usize..to.bytes() as usize - self.gap)
    }
}

/// Tests whether every offset is at least `by` above the one before it. There is no early exit, so
/// that the compiler vectorizes the loop: it reads all offsets of every batch.
struct Rising<'a, O> {
    offsets: &'a [O],
    by: u64,
}

impl<O: Offset> Kernel for Rising<'_, O> {
    type Output = bool;
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> bool {
        let Rising { offsets, by } = self;
        let later = offsets.get(1..).unwrap_or_default();
        // Not `a + by <= b`, which may overflow. A negative difference wraps around to a large one,
        // so `a <= b` is tested as well.
        offsets.iter().zip(later).fold(true, |rising, (&a, &b)| {
            let (a, b) = (a.bytes(), b.bytes());
            rising & (a <= b) & (b.wrapping_sub(a) >= by)
        })
    }
}

impl<O: Offset> Batch for Arena<'_, O> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    #[inline(always)]
    fn digest_tile(&self, range: Range<usize>, hasher: &Hasher, digests: &mut [Digest]) {
        let strings = range.map(|index| self.get(index).unwrap_or_default());
        hash_each(strings, hasher, digests);
    }

    #[inline(always)]
    fn digest_tile_with<S: Simd>(
        &self,
        _: S,
        range: Range<usize>,
        hasher: &Hasher,
        digests: &mut [Digest],
        ends: &mut Ends,
    ) {
        let (&Function::Fast { seed }, true) = (&hasher.0, S::WIDE && self.bytes.len() >= 16) else {
            return self.digest_tile(range, hasher, digests);
        };
        let offsets = &self.offsets[range.start..=range.end];
        let [start, end] = [offsets[0], offsets[range.len()]].map(|offset| offset.bytes() as usize);
        for at in (start..end).step_by(LINE_BYTES).take(TILE) {
            prefetch(self.bytes, at.wrapping_add(BYTES_AHEAD));
        }
        let mut others = ends.take(self.bytes, start, &offsets[1..], self.gap);
        ends.hash(seed, digests);
        while others != 0 {
            let i = others.trailing_zeros() as usize;
            digests[i] = self.get(range.start + i).unwrap_or_default().digest(&Hasher::fast(seed));
            others &= others - 1;
        }
    }

    /// Copies whole starts, past the ends of short keys, except close to the end of the buffer.
    #[cfg(feature = "foreign")]
    #[inline(always)]
    fn gather(&self, range: Range<usize>, starts: &mut Starts) {
        let offsets = &self.offsets[range.start..=range.end];
        let [first, end] = [offsets[0], offsets[range.len()]].map(|offset| offset.bytes() as usize);
        for at in (first..end).step_by(LINE_BYTES).take(TILE) {
            prefetch(self.bytes, at.wrapping_add(BYTES_AHEAD));
        }
        let mut from = first;
        for (slot, next) in offsets[1..].iter().enumerate() {
            let next = next.bytes() as usize;
            let len = next - self.gap - from;
            match self.bytes.get(from..).and_then(|bytes| bytes.first_chunk()) {
                Some(start) => starts.put(slot, start, len),
                None => {
                    let mut start = [0; START_BYTES];
                    let len = len.min(START_BYTES);
                    start[..len].copy_from_slice(&self.bytes[from..from + len]);
                    starts.put(slot, &start, next - self.gap - from);
                }
            }
            from = next;
        }
    }

    fn with_bytes<R>(&self, index: usize, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self.get(index).unwrap_or_default())
    }
}
