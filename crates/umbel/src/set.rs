//! [`Set`]: the operations that [`AnyFilter`](crate::AnyFilter) and the other crates need from
//! every set that supports insertion, beyond [`Filter`](crate::Filter), [`Insert`] and
//! [`Structure`].

use crate::{Algebra, Capabilities, Digest, Error, Insert, Removed, Result, Spec, Structure};

/// A kind of approximate set that supports insertion.
pub trait Set: Structure + Insert + Algebra {
    /// Makes the empty filter that [`Structure::plan`] describes.
    ///
    /// # Errors
    ///
    /// If the settings contradict each other or there is not enough memory.
    fn build(spec: &Spec) -> Result<Self>;

    /// Removes all keys.
    fn clear(&mut self);

    /// Returns an empty filter of the same shape, hash and design.
    ///
    /// # Errors
    ///
    /// If there is not enough memory for it.
    fn try_clone_empty(&self) -> Result<Self>;

    /// Adds the keys of another filter of the same shape, for threads that each fill their own. The
    /// result is the same as inserting all keys into this filter. Unlike a plain
    /// [union](Algebra::union), it adds the two counts of insertions.
    ///
    /// # Errors
    ///
    /// As [`Algebra::union`], or if the kind cannot be filled in parts.
    fn absorb(&mut self, part: &Self) -> Result<()> {
        if !Self::CAPABILITIES.absorb {
            return Err(Error::cannot(
                Self::KIND,
                "be filled in parts",
                "its cells depend on the order of the keys",
            ));
        }
        let inserted = self.inserted().zip(part.inserted()).map(|(ours, theirs)| ours.saturating_add(theirs));
        self.union(part)?;
        self.head_mut().inserted = inserted;
        Ok(())
    }

    /// Returns a filter of the same keys in half the memory, without needing the keys: each bit is
    /// the union of two neighbours. The rate rises accordingly.
    ///
    /// # Errors
    ///
    /// If the size is odd, or the kind has no bits that can be joined.
    fn fold(&self) -> Result<Self> {
        Err(Error::cannot(
            Self::KIND,
            "be folded",
            "only bits of standard, partitioned and blocked filters can be joined",
        ))
    }

    /// Returns a filter of the same keys that is planned for `capacity` keys, without needing the
    /// keys.
    ///
    /// # Errors
    ///
    /// If the kind cannot be resized, or its keys do not fit.
    fn resized_for(&self, capacity: u64) -> Result<Self> {
        let _ = capacity;
        let why = match Self::CAPABILITIES {
            Capabilities { fold: true, .. } => "it can only be folded in half: use `umbel fold`",
            Capabilities { grow: true, .. } => "it grows by itself",
            _ => {
                "its cells do not tell where its keys would be in another size; build it again from its keys"
            }
        };
        Err(Error::cannot(Self::KIND, "be resized", why))
    }

    /// Removes the key with this digest, if the kind supports removal.
    ///
    /// # Errors
    ///
    /// If the kind does not support removal.
    fn remove_if_able(&mut self, digest: Digest) -> Result<Removed> {
        let _ = digest;
        let why = "several keys share a bit, and clearing it for one would lose the others; kinds that can are \
                   counting, variable-increment, deletable, cuckoo and quotient";
        Err(Error::cannot(Self::KIND, "remove keys", why))
    }
}
