//! Estimates how much two documents have in common from a filter of each.
//!
//! A document becomes a set of [`Elements`]: its words, runs of words (shingles), or chunks whose
//! boundaries depend on its content. The set becomes a filter, and from then on only filters are
//! compared. Jain et al. 2005 use the share of A's bits that B also has, popcount(A & B) /
//! popcount(A). Even for documents that share nothing, this share does not fall below the fill of
//! B. So this module also provides the corrected Jaccard similarity, which is estimated from the
//! bits of A, of B, and of their union.
//!
//! ```
//! use umbel_text::similarity::{By, Elements, compare, fitting};
//!
//! let by = By::Words;
//! let one = Elements::read(&b"the quick brown fox jumps over the lazy dog"[..], by, false)?;
//! let two = Elements::read(&b"the quick brown fox"[..], by, false)?;
//! let shape = fitting(one.len().max(two.len()))?;
//! let likeness = compare(&two.filter(shape)?, &one.filter(shape)?)?;
//! assert!(likeness.left_inside && !likeness.right_inside, "every word of the second is in the first");
//! let jaccard = likeness.overlap.expect("not saturated").jaccard;
//! assert!((jaccard.value - 0.5).abs() < 0.1, "4 words of 8");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Documents of different sizes
//!
//! Filters need the same shape to be compared. A few documents all get the shape that fits the
//! largest. In a [`Collection`] of many documents, each gets the shape that fits itself, in powers
//! of two. To compare two of them, the larger filter is folded to the size of the smaller, which
//! yields exactly the filter that it would have been in that size. A document so much larger that
//! its folded filter would be full cannot be similar anyway: the Jaccard similarity is at most the
//! quotient of the two numbers of elements, which are known.
//!
//! # Nearest pairs
//!
//! [`Collection::nearest`] finds all sufficiently similar pairs among thousands of documents
//! without reading the documents again. 10 000 documents have 50 million pairs of filters of about
//! a kilobyte, and comparing a pair takes some nanoseconds.

mod chunks;
mod elements;
mod files;
mod nearest;
mod text;
mod trim;
mod visible;

pub use chunks::EXPECTED_CHUNK;
pub use elements::{By, Elements};
pub use files::{each_file, files_of};
pub use nearest::{Collection, Nearest, Pair};
pub use visible::{is_html, visible_text};

use crate::Result;
use umbel::memory::count_common;
use umbel::sizing::Estimate;
use umbel::sizing::estimate::Overlap;
use umbel::{Bloom, Standard};

/// The minimum number of bits per element. There are at most twice as many, since sizes are powers
/// of two.
pub const BITS_PER_ELEMENT: u64 = 16;

/// The number of bits that an element sets. Estimates need few, so that a filter stays far from
/// full even when it is folded.
pub const HASHES: u32 = 2;

/// The size of the smallest filter in bits.
const MIN_FILTER_BITS: u64 = 1024;

/// A filter of a document.
pub type Sketch = Bloom<Standard>;

/// Returns the shape of a filter that fits this many elements.
///
/// # Errors
///
/// Fails if the filter would be too large.
pub fn fitting(elements: usize) -> Result<Standard> {
    let bits = (elements as u64).saturating_mul(BITS_PER_ELEMENT).max(MIN_FILTER_BITS);
    Ok(Standard::new(bits.checked_next_power_of_two().unwrap_or(u64::MAX), HASHES)?)
}

/// The similarity of two documents, as their filters show it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Likeness {
    /// The share of the first filter's bits that the second also has. For documents that share
    /// nothing it is the fill of the second, not 0.
    pub left_and: f64,
    /// The share of the second filter's bits that the first also has.
    pub right_and: f64,
    /// The sizes, Jaccard similarity and containment, estimated with their errors, or `None` if the
    /// union has every bit set.
    pub overlap: Option<Overlap>,
    /// Whether the second filter has every bit of the first, as it does if the second document has
    /// all elements of the first.
    pub left_inside: bool,
    /// Whether the first filter has every bit of the second.
    pub right_inside: bool,
}

/// The largest standard error of an estimate that is worth reporting.
const MAX_STANDARD_ERROR: f64 = 0.1;

impl Likeness {
    /// Returns the Jaccard similarity, or `None` if the filters are too full: no bit of the union
    /// is zero, or the standard error is above 0.1.
    pub fn jaccard(&self) -> Option<Estimate> {
        self.overlap
            .map(|overlap| overlap.jaccard)
            .filter(|jaccard| jaccard.standard_error <= MAX_STANDARD_ERROR)
    }
}

/// Compares two documents. The larger filter is folded to the size of the smaller.
///
/// # Errors
///
/// Fails if the filters have different hashes, or shapes that cannot be folded to the same size.
pub fn compare(left: &Sketch, right: &Sketch) -> Result<Likeness> {
    let size = |sketch: &Sketch| sketch.words().lines().len();
    if size(left) > size(right) {
        return compare(&left.fold()?, right);
    }
    if size(right) > size(left) {
        return compare(left, &right.fold()?);
    }
    let overlap = left.overlap(right)?;
    let mut counts = Vec::new();
    count_common(left.words().words(), right.words().words(), &mut counts);
    let common = counts.first().copied().unwrap_or(0);
    let [in_left, in_right] = [left, right].map(|sketch| sketch.words().count_ones());
    // An empty filter is contained in every filter.
    let share = |ones: u64| if ones == 0 { 1.0 } else { common as f64 / ones as f64 };
    Ok(Likeness {
        left_and: share(in_left),
        right_and: share(in_right),
        overlap,
        left_inside: common == in_left,
        right_inside: common == in_right,
    })
}

/// Returns the share of bits that are set.
pub fn fill(sketch: &Sketch) -> f64 {
    let stats = sketch.stats();
    stats.used_cells as f64 / stats.cells as f64
}
