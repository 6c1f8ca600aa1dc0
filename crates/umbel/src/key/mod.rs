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

mod addresses;
mod arena;
mod batch;
mod buffer;
mod bytes;
mod composites;
mod hashable;
mod integers;
mod pointers;
#[cfg(test)]
mod tests;

pub use crate::lines::split_lines;
pub use arena::{Arena, Offset};
pub(crate) use batch::DigestAll;
pub use batch::{Batch, Hashed};
pub use hashable::Hashable;

use crate::hash::Function;
use crate::{Digest, Hasher};
use buffer::Buffer;

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

    /// Calls `f` with the bytes of an array of such keys. Only `u8` overrides this: an array of bytes is a
    /// byte string, and two implementations of `Key` for arrays would overlap.
    #[doc(hidden)]
    #[inline(always)]
    fn with_array_bytes<R>(array: &[Self], f: impl FnOnce(&[u8]) -> R) -> R
    where
        Self: Sized,
    {
        let mut buffer = Buffer::new();
        array.iter().for_each(|part| buffer.push_part(part));
        f(buffer.bytes())
    }

    /// Returns the digest of an array of such keys. Only `u8` overrides this.
    #[doc(hidden)]
    #[inline(always)]
    fn array_digest(array: &[Self], hasher: &Hasher) -> Digest
    where
        Self: Sized,
    {
        Self::with_array_bytes(array, |bytes| hasher.digest_bytes(bytes))
    }
}

/// Implements `Key` for types that are the same key as a value of another type.
macro_rules! converted_keys {
    ($(|$key:ident: $type:ty| $same:expr;)*) => {$(
        impl Key for $type {
            #[inline(always)]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                let $key = self;
                $same.with_bytes(f)
            }

            #[inline(always)]
            fn digest(&self, hasher: &Hasher) -> Digest {
                let $key = self;
                $same.digest(hasher)
            }
        }
    )*};
}
use converted_keys;

/// Hashes keys one after the other, and looks only once at which function the hasher has.
#[inline(always)]
fn hash_each<K: Key>(keys: impl Iterator<Item = K>, hasher: &Hasher, digests: &mut [Digest]) {
    match hasher.0 {
        Function::Fast { seed } => {
            let hasher = Hasher::fast(seed);
            for (key, digest) in keys.zip(digests) {
                *digest = key.digest(&hasher);
            }
        }
        #[cfg(feature = "secrets")]
        _ => {
            for (key, digest) in keys.zip(digests) {
                *digest = key.digest(hasher);
            }
        }
    }
}
