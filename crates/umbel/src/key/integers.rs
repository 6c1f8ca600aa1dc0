//! Integers as keys, and the types that are the same key as an integer. Integers are hashed as
//! numbers, not as byte strings, so that the compiler vectorizes the loop over a tile.

use super::{Key, converted_keys};
#[cfg(feature = "secrets")]
use crate::hash::sip13_u64;
use crate::hash::{Function, xxh3_u64};
use crate::{Digest, Hasher};
use std::num::NonZero;

/// Not inlined: the loops of the callers already use most registers.
#[cfg(feature = "secrets")]
#[inline(never)]
fn digest_word(hasher: &Hasher, key: u64) -> Digest {
    hasher.digest_bytes(&key.to_le_bytes())
}

macro_rules! integer_keys {
    ($($int:ty $({ $($more:tt)* })?),* $(,)?) => {$(
        impl Key for $int {
            $($($more)*)?

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
                // One loop per function, without a branch inside, so that the compiler vectorizes
                // each.
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
integer_keys!(
    u8 {
        #[inline(always)]
        fn with_array_bytes<R>(array: &[u8], f: impl FnOnce(&[u8]) -> R) -> R {
            f(array)
        }

        // Here the compiler knows the length of the array, and hashes it without a branch on the
        // length.
        #[inline(always)]
        fn array_digest(array: &[u8], hasher: &Hasher) -> Digest {
            hasher.digest_bytes(array)
        }
    },
    u16, u32, u64, usize, i8, i16, i32, i64, isize,
);

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

macro_rules! nonzero_keys {
    ($($int:ty),*) => {
        converted_keys! { $(|number: NonZero<$int>| number.get();)* }
    };
}
nonzero_keys!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);

converted_keys! {
    |flag: bool| u64::from(*flag);
}
