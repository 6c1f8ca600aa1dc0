//! The trait by which bit-array filters differ: where the bits of a digest are.

use super::sorter::{Group, Sorter};
use crate::arch::Simd;
use crate::memory::{AtomicWords, CacheLine};
use crate::sizing::estimate::Shape;
use crate::tile::{Lookup, Pair};
use crate::{Digest, Error, Kind, Plan, Result, Spec};
use std::fmt::Debug;

/// Where the bits of a digest are, and the loops that touch them.
///
/// [`Standard`](crate::Standard), [`Partitioned`](crate::Partitioned) and [`Blocked`](crate::Blocked) are layouts;
/// [`Bloom`](crate::Bloom) puts memory, a hash and counts under one. The trait is sealed: its methods promise that
/// whatever was inserted is found.
#[doc(hidden)]
pub trait Layout:
    Lookup<Memory = [CacheLine]> + Copy + Eq + Debug + Send + Sync + 'static + sealed::Sealed
{
    /// The kind of filter this layout makes.
    const KIND: Kind;

    /// How many 64-byte lines of memory the layout needs.
    fn lines(&self) -> u64;

    /// How many bits a key can land on; the memory may be a few bits larger.
    fn bits(&self) -> u64;

    /// How many bits a key sets, coinciding ones counted as often as they are set.
    fn hashes(&self) -> u32;

    /// Half the size, where every cell is the union of two neighbours; refused when the size is odd.
    fn folded(&self) -> Result<Self>;

    /// The layout that a specification leads to, and its plan.
    fn plan(spec: &Spec) -> Result<(Self, Plan)>;

    /// The shape, for estimates from the number of set bits.
    fn shape(&self) -> Shape;

    /// The false-positive rate the theory predicts after `n` distinct keys.
    fn predicted_rate(&self, n: u64) -> Result<f64>;

    /// The false-positive rate that these very bits have.
    #[doc(hidden)]
    fn rate_of(&self, lines: &[CacheLine]) -> f64;

    /// The two numbers that describe the layout in a file.
    #[doc(hidden)]
    fn params(&self) -> [u64; 2];

    /// The layout with these two numbers.
    #[doc(hidden)]
    fn from_params(params: [u64; 2]) -> Result<Self>;

    /// Folds the bits of `from` into the memory of the folded layout.
    #[doc(hidden)]
    fn fold(from: &[CacheLine], to: &mut [CacheLine]);

    /// Visits the bits of a digest in probe order.
    fn visit(&self, digest: Digest, visit: &mut dyn FnMut(u64));

    // The loops, besides those of `Lookup`.

    /// Whether `insert_tile` looks at the places.
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
    /// How many places a key has by which a batch is sorted before it is written; 0 when sorting does not pay.
    #[doc(hidden)]
    fn sorts(&self) -> u32 {
        0
    }
    /// Sorts a tile by the regions of place `j`.
    #[doc(hidden)]
    fn sort_shared(&self, _: &AtomicWords, _: &[Digest], _j: u32, _: &mut Sorter) {}
    /// Writes a group of sorted keys, and fetches the lines of the next.
    #[doc(hidden)]
    fn write_shared<S: Simd>(&self, _: S, _: &AtomicWords, _now: Group<'_>, _next: &[u64]) {}
    #[doc(hidden)]
    fn contains_shared(&self, words: &AtomicWords, digest: Digest) -> bool;
}

/// Half of an even number of cells.
pub(super) fn half(name: &'static str, cells: u64) -> Result<u64> {
    let odd = || Error::parameter(name, cells, "an even number to be folded in half");
    cells.is_multiple_of(2).then_some(cells / 2).ok_or_else(odd)
}

pub(crate) mod sealed {
    pub trait Sealed {}
}
