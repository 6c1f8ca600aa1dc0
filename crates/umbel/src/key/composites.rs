//! Keys made of keys: tuples, arrays and options.
//!
//! ```text
//! ("a", "bc")    1  'a'  2  'b' 'c'      each part follows its length, a number of 8 bytes
//! ("ab", "c")    2  'a' 'b'  1  'c'
//! Some("a")      1  'a'                  the tuple ("a",)
//! None           one byte 0              shorter than any length
//! ```
//!
//! The type of the key determines the number of parts and their types, so neither is encoded.

use super::Key;
use super::buffer::Buffer;
use crate::{Digest, Hasher};

impl<K: Key, const N: usize> Key for [K; N] {
    #[inline(always)]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        K::with_array_bytes(self, f)
    }

    #[inline(always)]
    fn digest(&self, hasher: &Hasher) -> Digest {
        K::array_digest(self, hasher)
    }
}

/// Implements `Key` for the tuple of these types and for all shorter ones.
macro_rules! tuple_keys {
    () => {};
    ($last:ident $($part:ident)*) => {
        tuple_keys!($($part)*);

        impl<$($part: Key,)* $last: Key> Key for ($($part,)* $last,) {
            #[inline]
            fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
                #[allow(non_snake_case)]
                let ($($part,)* $last,) = self;
                let mut buffer = Buffer::new();
                $(buffer.push_part($part);)*
                buffer.push_part($last);
                f(buffer.bytes())
            }
        }
    };
}
tuple_keys!(L K J I H G F E D C B A);

impl<K: Key> Key for Option<K> {
    #[inline]
    fn with_bytes<R>(&self, f: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Some(key) => (key,).with_bytes(f),
            None => f(&[0]),
        }
    }
}
