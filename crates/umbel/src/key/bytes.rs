//! Byte strings and text as keys.

use super::Key;
use crate::{Digest, Hasher};

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
