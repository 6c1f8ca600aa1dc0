//! What can be a key, and as which bytes it is hashed.
//!
//! The bytes are documented and the same on every platform and in every language, unlike those of `std::hash::Hash`:
//!
//! | key | bytes |
//! | --- | --- |
//! | bytes, strings | as they are; no length, no terminator |
//! | integers up to 64 bits | widened to 64 bits with their sign, 8 bytes little-endian: `7u8`, `7i32`, `7usize` are one key |
//! | 128-bit integers | 16 bytes little-endian |
//!
//! A [`Batch`] is many keys at once: a slice of keys, or an [`Arena`] of byte strings in one buffer.

use crate::arch::{Kernel, Simd, prefetch};
#[cfg(feature = "secrets")]
use crate::hash::sip13_u64;
use crate::hash::{Ends, Function, xxh3_u64};
pub use crate::lines::split_lines;
use crate::words::LINE_BYTES;
use crate::{Digest, Error, Hasher, Level, Result, TILE};
use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// Something that has key bytes. A new key type has to say only which.
///
/// ```
/// use umbel::{Hasher, Key};
/// struct Point { x: u32, y: u32 }
/// impl Key for Point {
///     fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
///         let mut bytes = [0; 8];
///         bytes[..4].copy_from_slice(&self.x.to_le_bytes());
///         bytes[4..].copy_from_slice(&self.y.to_le_bytes());
///         f(&bytes)
///     }
/// }
/// let hasher = Hasher::default();
/// assert_eq!(7i32.digest(&hasher), 7usize.digest(&hasher));
/// assert_ne!(Point { x: 1, y: 2 }.digest(&hasher), Point { x: 2, y: 1 }.digest(&hasher));
/// ```
pub trait Key {
    /// Calls `f` with the key's bytes.
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R;

    /// The key, hashed.
    #[inline(always)]
    fn digest(&self, hasher: &Hasher) -> Digest {
        self.with_bytes(|bytes| hasher.digest_bytes(bytes))
    }

    /// Hashes a tile: `digests[i]` becomes the digest of `keys[i]`, as far as both slices reach.
    #[inline(always)]
    fn digest_tile(keys: &[Self], hasher: &Hasher, digests: &mut [Digest])
    where
        Self: Sized,
    {
        hash_each(keys.iter(), hasher, digests);
    }
}

/// Hashes keys one after the other, having looked only once at which function it is.
#[inline(always)]
fn hash_each<K: Key>(keys: impl Iterator<Item = K>, hasher: &Hasher, digests: &mut [Digest]) {
    if let Function::Fast { seed } = hasher.0 {
        let hasher = Hasher::fast(seed);
        for (key, digest) in keys.zip(digests) {
            *digest = key.digest(&hasher);
        }
    } else {
        for (key, digest) in keys.zip(digests) {
            *digest = key.digest(hasher);
        }
    }
}

/// Apart from the loops of callers, which have enough to keep in registers.
#[cfg(feature = "secrets")]
#[inline(never)]
fn digest_word(hasher: &Hasher, key: u64) -> Digest {
    hasher.digest_bytes(&key.to_le_bytes())
}

macro_rules! integer_keys {
    ($($int:ty),*) => {$(
        impl Key for $int {
            #[inline(always)]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                f(&(*self as u64).to_le_bytes())
            }

            #[inline(always)]
            fn digest(&self, hasher: &Hasher) -> Digest {
                match hasher.0 {
                    Function::Fast { seed } => Digest::from_hash(xxh3_u64(*self as u64, seed)),
                    #[cfg(feature = "secrets")]
                    _ => digest_word(hasher, *self as u64),
                }
            }

            #[inline(always)]
            fn digest_tile(keys: &[Self], hasher: &Hasher, digests: &mut [Digest]) {
                // One loop per function, without a branch inside, so that each becomes SIMD.
                match &hasher.0 {
                    Function::Fast { seed } => {
                        for (key, digest) in keys.iter().zip(digests) {
                            *digest = Digest::from_hash(xxh3_u64(*key as u64, *seed));
                        }
                    }
                    #[cfg(feature = "secrets")]
                    Function::Keyed { key: secret, .. } => {
                        let [k0, k1] = [&secret[..8], &secret[8..]]
                            .map(|half| u64::from_le_bytes(half.try_into().expect("eight bytes")));
                        for (key, digest) in keys.iter().zip(digests) {
                            *digest = Digest::from_hash(sip13_u64(*key as u64, k0, k1));
                        }
                    }
                    #[cfg(feature = "secrets")]
                    Function::Sealed { .. } => {
                        for (key, digest) in keys.iter().zip(digests) {
                            *digest = key.digest(hasher);
                        }
                    }
                }
            }
        }
    )*};
}
integer_keys!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

macro_rules! wide_keys {
    ($($int:ty),*) => {$(
        impl Key for $int {
            #[inline(always)]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                f(&self.to_le_bytes())
            }

            #[inline(always)]
            fn digest(&self, hasher: &Hasher) -> Digest {
                hasher.digest_bytes(&self.to_le_bytes())
            }
        }
    )*};
}
wide_keys!(u128, i128);

macro_rules! byte_keys {
    ($([$($generics:tt)*] $bytes:ty),*) => {$(
        impl<$($generics)*> Key for $bytes {
            #[inline(always)]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                f(self.as_ref())
            }

            // Not through `with_bytes`: a closure that is not inlined is compiled without the instruction set.
            #[inline(always)]
            fn digest(&self, hasher: &Hasher) -> Digest {
                hasher.digest_bytes(self.as_ref())
            }
        }
    )*};
}
byte_keys!([] [u8], [] str, [] String, [] Vec<u8>, [const N: usize] [u8; N]);

macro_rules! pointer_keys {
    ($($pointer:ty),*) => {$(
        impl<K: Key + ?Sized> Key for $pointer {
            #[inline(always)]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                (**self).with_bytes(f)
            }

            #[inline(always)]
            fn digest(&self, hasher: &Hasher) -> Digest {
                (**self).digest(hasher)
            }
        }
    )*};
}
pointer_keys!(&K, Box<K>, Rc<K>, Arc<K>);

impl<K: Key + ToOwned + ?Sized> Key for Cow<'_, K> {
    #[inline(always)]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_bytes(f)
    }
}

/// Many keys at once, in whatever shape the caller holds them: a slice, a vector or an array of keys, or an [`Arena`].
pub trait Batch {
    /// How many keys there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hashes the keys of `range`, which lies inside `0..len()`, into the first places of `digests`.
    fn digest_tile(&self, range: Range<usize>, hasher: &Hasher, digests: &mut [Digest]);

    /// `digest_tile` inside a kernel, with room to gather strings in.
    #[doc(hidden)]
    #[inline(always)]
    fn digest_tile_with<S: Simd>(
        &self,
        _: S,
        range: Range<usize>,
        hasher: &Hasher,
        digests: &mut [Digest],
        _: &mut Ends,
    ) {
        self.digest_tile(range, hasher, digests);
    }

    /// Calls `f` with the bytes of key `index`, which is below `len()`.
    fn with_bytes<R>(&self, index: usize, f: impl FnOnce(&[u8]) -> R) -> R;
}

impl<K: Key> Batch for [K] {
    #[inline(always)]
    fn len(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn digest_tile(&self, range: Range<usize>, hasher: &Hasher, digests: &mut [Digest]) {
        let keys_per_line = LINE_BYTES / size_of::<K>().clamp(1, LINE_BYTES);
        for at in range.clone().step_by(keys_per_line) {
            prefetch(self, at.wrapping_add(KEYS_AHEAD));
        }
        K::digest_tile(&self[range], hasher, digests);
    }

    fn with_bytes<R>(&self, index: usize, f: impl FnOnce(&[u8]) -> R) -> R {
        self[index].with_bytes(f)
    }
}

macro_rules! slice_batches {
    ($([$($generics:tt)*] $keys:ty),*) => {$(
        impl<K: Key, $($generics)*> Batch for $keys {
            #[inline(always)]
            fn len(&self) -> usize {
                self[..].len()
            }

            #[inline(always)]
            fn digest_tile(&self, range: Range<usize>, hasher: &Hasher, digests: &mut [Digest]) {
                self[..].digest_tile(range, hasher, digests);
            }

            fn with_bytes<R>(&self, index: usize, f: impl FnOnce(&[u8]) -> R) -> R {
                self[index].with_bytes(f)
            }
        }
    )*};
}
slice_batches!([] Vec<K>, [const N: usize] [K; N]);

/// How many keys ahead a slice of keys is asked for, and in [`BYTES_AHEAD`] how many bytes of an arena. Keys are read
/// in order, but in bursts of one tile, between which the processor's own prefetching falls behind.
const KEYS_AHEAD: usize = 4 * TILE;

/// A place in the buffer of an [`Arena`].
pub trait Offset: Copy {
    /// The number of bytes before it; a negative one becomes larger than any buffer, and is refused.
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
/// No allocation and no pointer per key; the shape of an Arrow string column. Lines of text have a byte between them
/// that belongs to none: for those there is [`Arena::separated`].
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
    /// How many bytes lie between a string and the next.
    gap: usize,
}

/// See [`KEYS_AHEAD`].
const BYTES_AHEAD: usize = 4096;

impl<'a, O: Offset> Arena<'a, O> {
    /// Checks that the offsets rise and stay inside the buffer.
    pub fn new(bytes: &'a [u8], offsets: &'a [O]) -> Result<Arena<'a, O>> {
        Arena::with_gap(bytes, offsets, 0)
    }

    /// Strings with one byte between them, as lines have: string `i` is `bytes[offsets[i]..offsets[i + 1] - 1]`. Checks
    /// that the offsets rise, by one at least, and stay inside the buffer.
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

    /// String `index`, if there are so many.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        let (from, to) = (*self.offsets.get(index)?, *self.offsets.get(index + 1)?);
        self.bytes.get(from.bytes() as usize..to.bytes() as usize - self.gap)
    }
}

/// Whether every offset is at least `by` above the one before it. Without an early exit, so that it becomes SIMD: the
/// check reads all offsets of every batch.
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
        // Not `a + by <= b`: that may overflow. A difference below zero is a large one, so both ends are compared.
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

    fn with_bytes<R>(&self, index: usize, f: impl FnOnce(&[u8]) -> R) -> R {
        f(self.get(index).unwrap_or_default())
    }
}

/// Keys that were hashed before, by the hasher of the filter they are meant for: what is left of keys that were kept as
/// digests. Only filters that take digests understand them.
///
/// ```
/// use umbel::key::Hashed;
/// use umbel::{Bloom, Blocked, Hasher, Key};
/// let mut filter = Bloom::<Blocked>::with_capacity(100_000, 0.01)?;
/// let digests: Vec<_> = ["apple", "pear"].iter().map(|key| key.digest(filter.hasher())).collect();
/// filter.insert_batch(&Hashed(&digests));
/// assert!(filter.contains("pear"));
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Hashed<'a>(pub &'a [Digest]);

impl Batch for Hashed<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn digest_tile(&self, range: Range<usize>, _: &Hasher, digests: &mut [Digest]) {
        digests.copy_from_slice(&self.0[range]);
    }

    /// The bytes of the digest: the key's own are gone.
    fn with_bytes<R>(&self, index: usize, f: impl FnOnce(&[u8]) -> R) -> R {
        f(&self.0[index].get().to_le_bytes())
    }
}

/// Consecutive keys of a batch, hashed: as many as there are digests.
pub(crate) struct DigestAll<'a, B: ?Sized> {
    pub keys: &'a B,
    /// The first of them.
    pub start: usize,
    pub hasher: &'a Hasher,
    pub digests: &'a mut [Digest],
}

impl<B: Batch + ?Sized> Kernel for DigestAll<'_, B> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let DigestAll { keys, start, hasher, digests } = self;
        let mut ends = Ends::EMPTY;
        for (i, tile) in digests.chunks_mut(TILE).enumerate() {
            let from = start + i * TILE;
            keys.digest_tile_with(simd, from..from + tile.len(), hasher, tile, &mut ends);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hashers() -> [Hasher; 3] {
        [Hasher::fast(99), Hasher::keyed([3; 16]), Hasher::sealed([4; 32])]
    }

    #[test]
    fn integers_of_all_widths_are_one_key_and_keep_their_sign() {
        for hasher in hashers() {
            let seven = 7u64.to_le_bytes().digest(&hasher);
            let digests =
                [7u8.digest(&hasher), 7u16.digest(&hasher), 7i32.digest(&hasher), 7usize.digest(&hasher)];
            assert_eq!(digests, [seven; 4]);
            assert_eq!((-7i8).digest(&hasher), (-7i64).digest(&hasher));
            assert_eq!((-7i8).digest(&hasher), (-7i64).to_le_bytes().digest(&hasher));
            assert_eq!((-7i128).digest(&hasher), (-7i128).to_le_bytes().digest(&hasher));
            assert_ne!(7u128.digest(&hasher), seven);
        }
    }

    proptest! {
        #![proptest_config(crate::fixed_cases())]
        #[test]
        fn a_tile_is_hashed_like_its_keys_one_by_one(ints: Vec<u64>, texts: Vec<String>) {
            let bytes: Vec<u8> = texts.iter().flat_map(|text| text.bytes()).collect();
            let mut offsets = vec![0u32];
            offsets.extend(texts.iter().scan(0, |end, text| { *end += text.len() as u32; Some(*end) }));
            let arena = Arena::new(&bytes, &offsets).unwrap();
            prop_assert_eq!(arena.len(), texts.len());
            for hasher in hashers() {
                let mut tile = vec![Digest::default(); ints.len()];
                ints[..].digest_tile(0..ints.len(), &hasher, &mut tile);
                for (int, digest) in ints.iter().zip(&tile) {
                    prop_assert_eq!(*digest, hasher.digest_bytes(&int.to_le_bytes()));
                }
                let mut tile = vec![Digest::default(); texts.len()];
                arena.digest_tile(0..texts.len(), &hasher, &mut tile);
                let mut same = tile.clone();
                texts[..].digest_tile(0..texts.len(), &hasher, &mut same);
                prop_assert_eq!(&tile, &same);
                prop_assert_eq!(&tile, &hasher.digest_batch(&arena));
                prop_assert_eq!(&tile, &hasher.digest_batch(&Hashed(&tile)));
                // The same strings as lines.
                let lines: Vec<u8> = texts.iter().flat_map(|text| text.bytes().chain([b'\n'])).collect();
                let starts: Vec<u32> = offsets.iter().zip(0..).map(|(offset, i)| offset + i).collect();
                let separated = Arena::separated(&lines, &starts).unwrap();
                prop_assert_eq!(&tile, &hasher.digest_batch(&separated));
                for (text, digest) in texts.iter().zip(&tile) {
                    prop_assert_eq!(*digest, hasher.digest_bytes(text.as_bytes()));
                }
            }
        }
    }

    #[test]
    fn a_pointer_to_a_key_and_a_container_of_keys_are_what_they_hold() {
        let hasher = Hasher::fast(5);
        let digest = "key".digest(&hasher);
        let (boxed, shared): (Box<str>, Arc<[u8]>) = ("key".into(), b"key"[..].into());
        assert_eq!(
            [boxed.digest(&hasher), shared.digest(&hasher), Cow::from("key").digest(&hasher)],
            [digest; 3]
        );
        let tile = |batch: &dyn Fn(&mut [Digest])| {
            let mut tile = [Digest::default(); 2];
            batch(&mut tile);
            tile
        };
        let expected = [7u64.digest(&hasher), 8u64.digest(&hasher)];
        assert_eq!(tile(&|out| vec![7u64, 8].digest_tile(0..2, &hasher, out)), expected);
        assert_eq!(tile(&|out| Batch::digest_tile(&[7u64, 8], 0..2, &hasher, out)), expected);
    }

    #[test]
    fn an_arena_refuses_offsets_that_fall_or_leave_the_buffer() {
        assert!(Arena::new(b"abc", &[0u64, 2, 1]).is_err());
        assert!(Arena::new(b"abc", &[0u32, 4]).is_err());
        assert!(Arena::new(b"abc", &[-1i32, 2]).is_err());
        assert_eq!(Arena::new(b"abc", &[0usize, 2, 3]).unwrap().get(1), Some(&b"c"[..]));
        assert_eq!(Arena::<u64>::new(b"abc", &[]).unwrap().len(), 0);
        assert!(Arena::separated(b"a\nb\n", &[0u32, 2, 2]).is_err(), "no room for the byte between");
        assert!(Arena::separated(b"a\nb\n", &[0u32, 2, 5]).is_err());
        assert!(Arena::separated(b"a\nb\n", &[3u64, u64::MAX, 2]).is_err());
        assert_eq!(Arena::separated(b"\nb\n", &[0u32, 1, 3]).unwrap().get(0), Some(&b""[..]));
        assert_eq!(Arena::new(b"abc", &[0u32, 0, 3]).unwrap().get(0), Some(&b""[..]));
    }
}
