//! The types that can be keys, and the bytes that are hashed for each.
//!
//! The bytes are documented and the same on every platform and in every language:
//!
//! | key | bytes | the same key as |
//! | --- | --- | --- |
//! | bytes and text: `[u8]`, `[u8; N]`, `Vec<u8>`, `str`, `String` | as they are: no length, no terminator | each other: `b"apple"` and `"apple"` |
//! | `char` | its UTF-8 | the text of this character |
//! | `OsStr`, `OsString`, `Path`, `PathBuf`, on Unix | as they are, not normalised | the text |
//! | integers of up to 64 bits | widened to 64 bits with their sign, 8 bytes little-endian | each other: `7u8`, `7i32` and `7usize`; also `-1` and `u64::MAX` |
//! | 128-bit integers | 16 bytes little-endian | each other: `7u128` and `7i128`; not `7u64` |
//! | `NonZero` integers | those of the integer | the integer |
//! | `bool` | those of the integer 0 or 1 | the integer |
//! | `Ipv4Addr`, `Ipv6Addr`, `IpAddr` | the 4 or 16 octets in network order | the byte string of the octets; `IpAddr::V4(a)` and `a` |
//! | `SocketAddrV4` | those of the tuple (address, port) | the tuple; `SocketAddr::V4(a)` and `a` |
//! | `SocketAddrV6` | those of the tuple (address, port, flow information, scope) | the tuple; `SocketAddr::V6(a)` and `a` |
//! | tuples of 1 to 12 keys; arrays `[K; N]` of keys other than `u8` | for each part: the length of its bytes, 8 bytes little-endian, then its bytes | each other, if the parts are the same keys |
//! | `Option` | `Some(key)`: those of the tuple `(key,)`; `None`: one byte 0 | the tuple |
//! | `&K`, `Box<K>`, `Rc<K>`, `Arc<K>`, `Cow<K>` | those of the key they point to | the key |
//! | [`Hashable`], for every `T: Hash` | not documented: within one process only | |
//!
//! Within one type, different values have different bytes: `("a", "bc")` is not `("ab", "c")`, and
//! `Some("")` is not `None`. Values of different types are the same key if their bytes are equal.
//! The last column lists where this is intended; elsewhere it is a coincidence, such as an
//! `Ipv4Addr` and a text of four bytes. A filter that holds several types avoids coincidences with
//! a tag: `("address", address)`. The integer 42 and the text "42" are different keys.
//!
//! Keys are compared by their bytes alone. `Path::new("a//b")` and `Path::new("a/b")` are equal
//! paths, but different keys. An IPv4 address and the IPv6 address that it is mapped to are
//! different keys.
//!
//! Slices and vectors of keys other than bytes are not keys but a [`Batch`]: many keys at once. So
//! is an [`Arena`] of byte strings in one buffer.

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
pub use batch::{Batch, Hashed, Visitor};
#[cfg(feature = "foreign")]
pub(crate) use batch::{START_BYTES, Starts};
pub use hashable::Hashable;

use crate::hash::Function;
use crate::{Digest, Hasher};
use buffer::Buffer;

/// A value that can be inserted into a filter and looked up. The [module](self) lists the types
/// that are keys.
///
/// ```
/// use std::net::Ipv4Addr;
/// use umbel::BloomFilter;
///
/// let mut seen = BloomFilter::with_capacity(1000, 0.001)?;
/// seen.insert("apple");
/// seen.insert(&42);
/// seen.insert(&(Ipv4Addr::LOCALHOST, "GET", Some(200)));
/// assert!(seen.contains(b"apple") && seen.contains(&42u64));
/// assert!(!seen.contains("42") && !seen.contains(&(Ipv4Addr::LOCALHOST, "GET", None::<u16>)));
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// Implement [`with_bytes`](Key::with_bytes) for your own types; the bytes of a tuple are a good
/// choice:
///
/// ```
/// use umbel::{Hasher, Key};
///
/// struct Point { x: u32, y: u32 }
///
/// impl Key for Point {
///     fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
///         (self.x, self.y).with_bytes(f)
///     }
/// }
///
/// let hasher = Hasher::default();
/// assert_eq!(Point { x: 1, y: 2 }.digest(&hasher), (1, 2).digest(&hasher));
/// assert_ne!(Point { x: 1, y: 2 }.digest(&hasher), Point { x: 2, y: 1 }.digest(&hasher));
/// ```
///
/// A slice or a vector of keys is a [`Batch`], and passing one as a single key does not compile:
///
/// ```compile_fail,E0277
/// # let mut seen = umbel::BloomFilter::with_capacity(1000, 0.001).unwrap();
/// seen.insert(&vec![1u64, 2]);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key",
    note = "for many keys at once, such as a `Vec` or a slice, use `insert_batch` and `contains_batch`",
    note = "for a type of your own, implement `Key`, or wrap the value in `umbel::Hashable` if it implements `Hash`"
)]
pub trait Key {
    /// Calls `f` with the key's bytes.
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R;

    /// Returns the digest of the key.
    #[inline(always)]
    fn digest(&self, hasher: &Hasher) -> Digest {
        self.with_bytes(|bytes| hasher.digest_bytes(bytes))
    }

    /// Hashes a tile: sets `digests[i]` to the digest of `keys[i]`, up to the end of the shorter
    /// slice.
    #[inline(always)]
    fn digest_tile(keys: &[Self], hasher: &Hasher, digests: &mut [Digest])
    where
        Self: Sized,
    {
        hash_each(keys.iter(), hasher, digests);
    }

    /// Calls `f` with the bytes of an array of such keys. Only `u8` overrides this: an array of
    /// bytes is a byte string, and two implementations of `Key` for arrays would overlap.
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

/// Hashes keys one by one, but checks only once which function the hasher has.
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
