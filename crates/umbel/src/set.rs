//! What makes a set a kind among kinds: everything that [`AnyFilter`](crate::AnyFilter) and the faces of the product ask
//! of a set that can be filled, beyond [`Filter`](crate::Filter), [`Insert`] and [`Structure`].

use crate::{Algebra, Digest, Error, Insert, Removed, Result, Spec, Structure};

/// A kind of approximate set that can be filled.
pub trait Set: Structure + Insert + Algebra {
    /// An empty filter as specified: the one that [`Structure::plan`] describes.
    fn build(spec: &Spec) -> Result<Self>;

    /// Forgets everything.
    fn clear(&mut self);

    /// An empty filter of the same shape, hash and design.
    fn try_clone_empty(&self) -> Result<Self>;

    /// Takes in what was inserted into another filter of the same shape, as threads do that each fill one of their
    /// own: the result is the same as if this one had been given everything. It is a [union](Algebra::union) of which
    /// it is known that both counts of insertions add up.
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

    /// The filter of the same keys in half the memory, without the keys: every bit becomes the union of two
    /// neighbours. The rate rises accordingly. Refused when the size is odd, and by kinds that have no such bits.
    fn fold(&self) -> Result<Self> {
        Err(Error::cannot(
            Self::KIND,
            "be folded",
            "only bits of standard, partitioned and blocked filters can be joined",
        ))
    }

    /// Removes the key with this digest, if the kind can.
    fn remove_if_able(&mut self, digest: Digest) -> Result<Removed> {
        let _ = digest;
        let why = "several keys share a bit, and clearing it for one would lose the others; kinds that can are \
                   counting, variable-increment, deletable, cuckoo and quotient";
        Err(Error::cannot(Self::KIND, "remove keys", why))
    }
}
