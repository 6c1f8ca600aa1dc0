//! Sketches: summaries of a stream of keys in memory that does not depend on its length.
//!
//! A filter answers questions about one key. A sketch answers questions about all of them:
//!
//! | sketch | question | memory | error |
//! | --- | --- | --- | --- |
//! | [`Distinct`] | How many different keys were there? | 16 KiB at 0.8 % | standard error 1.04 / √m with m bytes |
//! | [`CountMin`] | How often did this key occur? | 53 KiB at 0.1 % of the total | never too low; too high by more than that for one key in a hundred |
//! | [`TopK`] | Which keys occurred most often? | 32 KiB and the keys | probably right, without a bound |
//! | [`Frequent`] | Which keys make up more than a share of the total? | the keys and 48 bytes for each | certain: no such key is missing |
//!
//! ```
//! use umbel::sketch::{Distinct, Frequent};
//!
//! let visits = ["/", "/about", "/", "/login", "/", "/login"];
//! let mut pages = Distinct::with_error(0.01)?;
//! pages.insert_batch(&visits);
//! assert_eq!(pages.count().to_string(), "3.0 ± 0.5");
//!
//! // Every page with more than a third of the visits.
//! let mut busy = Frequent::new(2)?;
//! busy.insert_batch(&visits);
//! assert_eq!(busy.items()[0].key, b"/");
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # Keys, hashes and files
//!
//! Sketches take the same keys as filters and hash them with [`Hasher::default`](crate::Hasher).
//! `with_hasher` sets another function. Use [`Hasher::keyed`](crate::Hasher::keyed) for keys from
//! untrusted sources: an attacker who knows the function can choose keys that share their cells.
//! [`Distinct`] and [`CountMin`] store no keys. [`TopK`] and [`Frequent`] store the bytes of their
//! keys, in memory and in files, whatever the hash.
//!
//! `save`, `load`, `to_bytes` and `from_bytes` use the container of the filters; see
//! [`mod@crate::file`].
//!
//! # Unions
//!
//! Two sketches that were filled separately can be united, except those of [`TopK`]. The union
//! makes the same promises as a single sketch that was filled with everything.

mod count_min;
mod distinct;
mod frequent;
mod items;
mod table;
mod top_k;

pub use count_min::{CountMin, WeightedSum};
pub use distinct::Distinct;
pub use frequent::Frequent;
pub use top_k::{TopK, TopKBuilder};

use crate::file::FormatError;
use crate::structure::{Head, Parts};
use crate::{Batch, Digest, Hasher, Result, tile};
use std::convert::Infallible;
use std::fmt;

/// A key of a sketch and its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Item<'a> {
    /// The bytes of the key.
    pub key: &'a [u8],
    /// The number of times the key was counted, as the sketch estimates it.
    pub count: u64,
}

/// Methods of every sketch.
macro_rules! sketch_methods {
    ($type:ident) => {
        impl $type {
            /// Returns the function that turns keys into digests.
            pub fn hasher(&self) -> &$crate::Hasher {
                &self.head.hasher
            }

            /// Returns an empty sketch of the same shape that uses another hash function. Keys
            /// counted before are dropped, since they were hashed with the old one.
            #[must_use]
            pub fn with_hasher(mut self, hasher: $crate::Hasher) -> Self {
                self.clear();
                self.head.hasher = hasher;
                self
            }

            /// Returns a copy that owns its memory.
            ///
            /// # Errors
            ///
            /// If there is not enough memory for it.
            pub fn try_clone(&self) -> $crate::Result<Self> {
                $crate::structure::Structure::try_clone(self)
            }

            /// Allows the memory to be moved.
            #[doc(hidden)]
            pub fn relocate(&mut self, mover: &mut dyn $crate::memory::Mover) {
                $crate::structure::Structure::relocate(self, mover);
            }
        }

        $crate::methods::file_methods!([] $type);

        impl $crate::structure::sealed::Sealed for $type {}

        impl<K: $crate::Key> Extend<K> for $type {
            /// Counts keys one by one; `insert_batch` is faster for keys in memory.
            fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
                for key in keys {
                    self.insert(&key);
                }
            }
        }
    };
}

use sketch_methods;

/// Formats a summary of a sketch: its shape, but neither its cells nor its keys nor secrets.
fn summarize(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    shape: &[(&str, &dyn fmt::Debug)],
    bytes: u64,
    head: &Head,
) -> fmt::Result {
    let mut summary = f.debug_struct(name);
    for (name, value) in shape {
        summary.field(name, value);
    }
    if let Some(inserted) = head.inserted {
        summary.field("inserted", &inserted);
    }
    summary.field("bytes", &bytes).field("hash", &format_args!("{}", head.hasher.id())).finish()
}

/// Returns the head of a sketch in a file, once all sections are taken. Sketches are not planned
/// for a number of keys, so a capacity is an error.
fn finish(parts: Parts) -> Result<Head> {
    let head = parts.finish()?;
    match head.design {
        Some(_) => Err(FormatError::invalid("a sketch that claims a capacity").into()),
        None => Ok(head),
    }
}

/// Returns the sum of all counts, or `u64::MAX` if it is larger. Files store it as the number of
/// insertions, where that value means unknown.
fn total(head: &Head) -> u64 {
    head.inserted.unwrap_or(u64::MAX)
}

fn set_total(head: &mut Head, total: u64) {
    head.inserted = (total < u64::MAX).then_some(total);
}

fn add_to_total(head: &mut Head, count: u64) {
    set_total(head, total(head).saturating_add(count));
}

/// Passes the digest and the bytes of each key of a batch to `work`, for sketches that store keys.
fn each_key<B: Batch + ?Sized>(keys: &B, hasher: &Hasher, mut work: impl FnMut(Digest, &[u8])) {
    let mut at = 0;
    let Ok(()) = tile::each(keys, hasher, |digests| {
        for digest in digests {
            keys.with_bytes(at, |key| work(*digest, key));
            at += 1;
        }
        Ok::<(), Infallible>(())
    });
}
