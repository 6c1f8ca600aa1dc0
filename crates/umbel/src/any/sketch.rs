//! One enum over the sketches.

use super::Stored;
use crate::file::{Encoder, FormatError, Options, Storable};
use crate::memory::{Mover, Words};
use crate::sketch::{CountMin, Distinct, Frequent, TopK};
use crate::structure::Parts;
use crate::{Capabilities, Error, Hasher, Key, Kind, Mismatch, Plan, Result, Spec, Stats, Structure};

family! { $
    /// A sketch of any kind.
    ///
    /// ```
    /// use umbel::any::AnySketch;
    /// use umbel::sketch::Distinct;
    /// let mut fruit = Distinct::with_error(0.01)?;
    /// fruit.insert_batch(&["apple", "pear", "apple"]);
    /// let bytes = fruit.to_bytes()?;
    /// let AnySketch::Distinct(fruit) = AnySketch::from_bytes(&bytes)? else { panic!("another kind") };
    /// assert_eq!(format!("{:.0}", fruit.count().value), "2");
    /// # Ok::<(), umbel::Error>(())
    /// ```
    AnySketch, Stored::Sketch, "a sketch",
    changing {
        /// The number of distinct keys.
        Distinct(Distinct),
        /// Counts that are never too low.
        CountMin(CountMin),
        /// The most frequent keys.
        TopK(TopK),
        /// Every key above a share of the total.
        Frequent(Frequent),
    }
    fixed {}
}

impl AnySketch {
    /// Returns the kind of this sketch.
    pub fn kind(&self) -> Kind {
        match self {
            AnySketch::Distinct(_) => Kind::Distinct,
            AnySketch::CountMin(_) => Kind::CountMin,
            AnySketch::TopK(_) => Kind::TopK,
            AnySketch::Frequent(_) => Kind::Frequent,
        }
    }

    /// Returns the function that turns keys into digests.
    pub fn hasher(&self) -> &Hasher {
        each!(self, sketch => sketch.hasher())
    }

    /// Returns whether `key` may have been counted; for a sketch of the most frequent keys, whether
    /// it is one of them.
    pub(super) fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        each!(self, sketch => sketch.contains(key))
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        each!(self, sketch => sketch.clear());
    }

    /// Returns an empty sketch of the same shape and hash.
    ///
    /// # Errors
    ///
    /// If there is not enough memory for it.
    pub fn try_clone_empty(&self) -> Result<AnySketch> {
        let mut copy = self.try_clone()?;
        copy.clear();
        Ok(copy)
    }

    /// Measures how full the sketch is.
    pub fn stats(&self) -> Stats {
        each!(self, sketch => sketch.stats())
    }

    /// Returns the first difference that prevents a union of the two, if there is one.
    pub fn mismatch(&self, other: &AnySketch) -> Option<Mismatch> {
        match (self, other) {
            (AnySketch::Distinct(a), AnySketch::Distinct(b)) => a.mismatch(b),
            (AnySketch::CountMin(a), AnySketch::CountMin(b)) => a.mismatch(b),
            (AnySketch::Frequent(a), AnySketch::Frequent(b)) => a.mismatch(b),
            // Two of these can never be united; `union` says why.
            (AnySketch::TopK(_), AnySketch::TopK(_)) => None,
            _ => Some(Mismatch::kinds(self.kind(), other.kind())),
        }
    }

    /// Turns this sketch into the sketch of everything that was counted in either.
    ///
    /// # Errors
    ///
    /// If kind, shape, hash or seed differ, or the kind does not support unions. Neither sketch is
    /// changed then.
    pub fn union(&mut self, other: &AnySketch) -> Result<()> {
        match (&mut *self, other) {
            (AnySketch::Distinct(a), AnySketch::Distinct(b)) => a.union(b),
            (AnySketch::CountMin(a), AnySketch::CountMin(b)) => a.union(b),
            (AnySketch::Frequent(a), AnySketch::Frequent(b)) => a.union(b),
            (AnySketch::TopK(_), AnySketch::TopK(_)) => Err(Error::cannot(
                Kind::TopK,
                "be united",
                "a cell belongs to one key, and the counts of the others are lost; kinds that can are frequent and count-min",
            )),
            _ => Err(Error::Mismatch(Mismatch::kinds(self.kind(), other.kind()))),
        }
    }
}
