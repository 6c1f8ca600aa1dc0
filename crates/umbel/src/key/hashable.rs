//! Any value that implements `std::hash::Hash`, as a key within one process.

use super::Key;
use super::buffer::Buffer;
use crate::Hasher;
use std::fmt;
use std::hash::Hash;

/// A key made from any value that implements [`Hash`], for use within one process.
///
/// The bytes of this key are those that the value's `Hash` implementation writes. They depend on
/// the platform and on the releases of the compiler and of the crate that defines the type. A
/// filter of such keys may be saved, but **another process or release may not find the keys
/// again**. For keys with documented bytes, use a type from the [table of keys](crate::key), or
/// implement [`Key`].
///
/// The filter's own hasher receives all of these bytes, so a `keyed` or `sealed` filter is as
/// strong as with any other key.
///
/// Look up a key with the type that was inserted, or with a type that hashes alike, as `String` and
/// `str` do. `Hashable(&value)` and `value` are in general different keys.
///
/// ```
/// use umbel::{BloomFilter, Hashable};
///
/// #[derive(Hash)]
/// struct Visit { user: String, page: Option<u32> }
///
/// let mut seen = BloomFilter::with_capacity(1000, 0.001)?;
/// let visit = Visit { user: "ann".into(), page: Some(7) };
/// seen.insert(&Hashable(&visit));
/// assert!(seen.contains(&Hashable(&visit)));
/// assert!(!seen.contains(&Hashable(&Visit { page: None, ..visit })));
/// # Ok::<(), umbel::Error>(())
/// ```
pub struct Hashable<'a, T: ?Sized>(pub &'a T);

impl<T: Hash + ?Sized> Key for Hashable<'_, T> {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        let mut collected = Collected(Buffer::new());
        self.0.hash(&mut collected);
        f(collected.0.bytes())
    }
}

impl<T: ?Sized> Clone for Hashable<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Hashable<'_, T> {}

impl<T: fmt::Debug + ?Sized> fmt::Debug for Hashable<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hashable").field(&self.0).finish()
    }
}

/// A `std::hash::Hasher` that collects the bytes of a value instead of hashing them.
struct Collected(Buffer);

impl std::hash::Hasher for Collected {
    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// Hashes the bytes so far, for an unusual implementation of `Hash` that requests an
    /// intermediate hash.
    fn finish(&self) -> u64 {
        Hasher::default().digest_bytes(self.0.bytes()).get()
    }
}
