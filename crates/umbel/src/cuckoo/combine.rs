//! Union and intersection. Fingerprints tell both buckets, so they can move between tables of the same shape without
//! the keys.

use super::Cuckoo;
use crate::algebra::{Algebra, Mismatch};
use crate::{Result, Structure};

impl Algebra for Cuckoo {
    fn mismatch(&self, other: &Cuckoo) -> Option<Mismatch> {
        let (ours, theirs) = (&self.table, &other.table);
        Mismatch::of("number of bits", ours.bits(), theirs.bits())
            .or_else(|| Mismatch::of("number of buckets", ours.buckets(), theirs.buckets()))
            .or_else(|| {
                Mismatch::of("length of fingerprints", ours.fingerprint_bits(), theirs.fingerprint_bits())
            })
            .or_else(|| Mismatch::of("number of slots per bucket", ours.slots(), theirs.slots()))
            .or_else(|| Mismatch::of_hashes(self.head.hasher.id(), other.head.hasher.id()))
    }

    /// Becomes the multiset of both: what is in both is there twice. Refused when there is no room for all, or for the
    /// copies of one key.
    fn union(&mut self, other: &Cuckoo) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        self.words.words_mut()?;
        let mut union = self.try_clone_owned()?;
        for (bucket, fingerprint) in other.entries() {
            union.put(union.table.place_in(bucket, fingerprint))?;
        }
        *self = union;
        Ok(())
    }

    /// Becomes the multiset of what is in both, each as often as in the one that has it less often.
    fn intersect(&mut self, other: &Cuckoo) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        self.words.words_mut()?;
        let mut common = self.try_clone_owned()?;
        for (bucket, fingerprint) in self.entries() {
            let place = self.table.place_in(bucket, fingerprint);
            if common.count_place(&place) > other.count_place(&place) {
                common.take(&place)?;
            }
        }
        *self = common;
        Ok(())
    }
}
