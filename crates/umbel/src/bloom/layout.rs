//! [`Layout`]: the mapping from digests to bits, in which the bit-array filters differ.

use super::sorter::{Group, Sorter};
use crate::arch::Simd;
use crate::memory::{AtomicWords, CacheLine};
use crate::sizing::estimate::Shape;
use crate::tile::{Lookup, Pair};
use crate::{Digest, Error, Kind, Plan, Result, Spec};
use std::fmt::Debug;

/// A mapping from digests to bits, and the loops that read and write them.
///
/// [`Standard`](crate::Standard), [`Partitioned`](crate::Partitioned) and
/// [`Blocked`](crate::Blocked) are layouts. [`Bloom`](crate::Bloom) adds memory, a hash and counts
/// to one. The trait is sealed, because its methods guarantee that every inserted key is found.
#[doc(hidden)]
pub trait Layout:
    Lookup<Memory = [CacheLine]> + Copy + Eq + Debug + Send + Sync + 'static + sealed::Sealed
{
    /// The kind of filter with this layout.
    const KIND: Kind;

    /// Returns the number of 64-byte lines of memory that the layout needs.
    fn lines(&self) -> u64;

    /// Returns the number of bits that keys can set. The memory may be a few bits larger.
    fn bits(&self) -> u64;

    /// Returns the number of bits that a key sets. A bit that is set twice counts twice.
    fn hashes(&self) -> u32;

    /// Returns the layout of half the size, where every cell is the union of two neighbours.
    ///
    /// # Errors
    ///
    /// If the size is odd.
    fn folded(&self) -> Result<Self>;

    /// Returns the layout that a specification leads to, and its plan.
    ///
    /// # Errors
    ///
    /// If the settings are not sufficient or contradict each other.
    fn plan(spec: &Spec) -> Result<(Self, Plan)>;

    /// Returns the shape, for estimates from the number of set bits.
    fn shape(&self) -> Shape;

    /// Computes the false-positive rate that theory predicts after `n` distinct keys.
    ///
    /// # Errors
    ///
    /// If `n` is more than the theory covers.
    fn predicted_rate(&self, n: u64) -> Result<f64>;

    /// Computes the false-positive rate with the current bits.
    #[doc(hidden)]
    fn rate_of(&self, lines: &[CacheLine]) -> f64;

    /// Returns the two numbers that describe the layout in a file.
    #[doc(hidden)]
    fn params(&self) -> [u64; 2];

    /// Returns the layout with these two numbers.
    #[doc(hidden)]
    fn from_params(params: [u64; 2]) -> Result<Self>;

    /// Folds the bits of `from` into the memory of the folded layout.
    #[doc(hidden)]
    fn fold(from: &[CacheLine], to: &mut [CacheLine]);

    /// Visits the bits of a digest in probe order.
    fn visit(&self, digest: Digest, visit: &mut dyn FnMut(u64));

    // The loops, besides those of `Lookup`.

    /// Whether `insert_tile` uses the places.
    #[doc(hidden)]
    const PLACES_TO_INSERT: bool;
    #[doc(hidden)]
    fn contains<S: Simd>(&self, simd: S, lines: &[CacheLine], digest: Digest) -> bool;
    #[doc(hidden)]
    fn insert<S: Simd>(&self, simd: S, lines: &mut [CacheLine], digest: Digest) -> bool;
    #[doc(hidden)]
    fn insert_tile<S: Simd>(
        &self,
        simd: S,
        lines: &mut [CacheLine],
        tile: &[Digest],
        at: Pair<'_, Self::Places>,
    );
    #[doc(hidden)]
    fn prefetch_shared(&self, words: &AtomicWords, places: &Self::Places);
    #[doc(hidden)]
    fn insert_shared<S: Simd>(&self, simd: S, words: &AtomicWords, digest: Digest) -> bool;
    /// Returns the number of places per key by which a batch is sorted before it is written; 0 if
    /// sorting does not pay.
    #[doc(hidden)]
    fn sorts(&self) -> u32 {
        0
    }
    /// Sorts a tile by the regions of place `j`.
    #[doc(hidden)]
    fn sort_shared(&self, _: &AtomicWords, _: &[Digest], _j: u32, _: &mut Sorter) {}
    /// Writes a group of sorted keys and prefetches the lines of the next group.
    #[doc(hidden)]
    fn write_shared<S: Simd>(&self, _: S, _: &AtomicWords, _now: Group<'_>, _next: &[u64]) {}
    #[doc(hidden)]
    fn contains_shared(&self, words: &AtomicWords, digest: Digest) -> bool;
}

/// Returns half of an even number of cells.
pub(super) fn half(name: &'static str, cells: u64) -> Result<u64> {
    let odd = || Error::parameter(name, cells, "an even number to be folded in half");
    cells.is_multiple_of(2).then_some(cells / 2).ok_or_else(odd)
}

pub(crate) mod sealed {
    pub trait Sealed {}
}
