//! How much two documents have in common, told from a filter of each.
//!
//! A document becomes a set of [`Elements`]: its words, runs of words (shingles), or chunks cut where its own bytes say so.
//! The set becomes a filter, and from then on only filters are compared. Jain et al. 2005 take the share of A's bits that B
//! has too, popcount(A & B) / popcount(A). It never falls below the fill of B, even for documents that share nothing, so
//! the corrected Jaccard similarity stands beside it, which is estimated from the bits of A, of B, and of their union.
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
//! Filters have to have the same shape to be compared. A few documents all get the shape that fits the largest. In a
//! [`Collection`] of many each gets the shape that fits itself, in powers of two, and when two are compared the larger filter is
//! folded down to the size of the smaller: that is exactly the filter which it would have been in that size. A document
//! so much larger that its folded filter would be full cannot be similar anyway: the Jaccard similarity is at
//! most the quotient of the two numbers of elements, and these are known.
//!
//! # Nearest pairs
//!
//! [`Collection::nearest`] finds every pair that is similar enough among thousands of documents without looking at any of
//! them again: 10 000 documents are 50 million pairs of filters of about a kilobyte, and a pair takes some nanoseconds.

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

/// Bits for each element, at least; twice as many at most, since sizes are powers of two.
pub const BITS_PER_ELEMENT: u64 = 16;

/// Bits that an element sets. Estimates want few: a filter stays far from full, also when it is folded.
pub const HASHES: u32 = 2;

/// The size of the smallest filter.
const MIN_FILTER_BITS: u64 = 1024;

/// A filter of a document.
pub type Sketch = Bloom<Standard>;

/// The shape that fits so many elements.
pub fn fitting(elements: usize) -> Result<Standard> {
    let bits = (elements as u64).saturating_mul(BITS_PER_ELEMENT).max(MIN_FILTER_BITS);
    Ok(Standard::new(bits.checked_next_power_of_two().unwrap_or(u64::MAX), HASHES)?)
}

/// What two documents have in common, as far as their filters tell.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Likeness {
    /// The share of the first's bits that the second has too. For documents that share nothing it is the fill of the second, not 0.
    pub left_and: f64,
    /// The share of the second's bits that the first has too.
    pub right_and: f64,
    /// Sizes, Jaccard similarity and containment, estimated with their errors; `None` if the union has every bit.
    pub overlap: Option<Overlap>,
    /// Every bit of the first is in the second, as it is when all its elements are.
    pub left_inside: bool,
    /// Every bit of the second is in the first.
    pub right_inside: bool,
}

/// The largest standard error of an estimate that is worth reporting.
const MAX_STANDARD_ERROR: f64 = 0.1;

impl Likeness {
    /// The Jaccard similarity, unless the filters are too full to tell: then there is no bit left to count, or its error is above 0.1.
    pub fn jaccard(&self) -> Option<Estimate> {
        self.overlap
            .map(|overlap| overlap.jaccard)
            .filter(|jaccard| jaccard.standard_error <= MAX_STANDARD_ERROR)
    }
}

/// Compares two documents. The larger filter is folded to the size of the smaller; they have to be made with the same hash.
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
    // All of nothing is in everything.
    let share = |ones: u64| if ones == 0 { 1.0 } else { common as f64 / ones as f64 };
    Ok(Likeness {
        left_and: share(in_left),
        right_and: share(in_right),
        overlap,
        left_inside: common == in_left,
        right_inside: common == in_right,
    })
}

/// The share of the bits that are set.
pub fn fill(sketch: &Sketch) -> f64 {
    let stats = sketch.stats();
    stats.used_cells as f64 / stats.cells as f64
}
