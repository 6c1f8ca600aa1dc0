//! Union and intersection. A fingerprint and one of its buckets determine the other bucket, so
//! fingerprints can move between tables of the same shape without the keys.

use super::{Cuckoo, MAX_KICKS};
use crate::Result;
use crate::algebra::{Algebra, Mismatch};

impl Cuckoo {
    /// Moves every key that has a free slot in another filter of the same shape there, and returns
    /// the number of moved keys. This shortens chains of filters after keys were removed.
    ///
    /// ```
    /// use umbel::Cuckoo;
    /// let mut first = Cuckoo::with_capacity(1000, 0.01)?;
    /// let mut second = first.try_clone_empty()?;
    /// second.insert("apple")?;
    /// assert_eq!(second.pour(&mut first)?, 1);
    /// assert!(first.contains("apple") && second.is_empty());
    /// # Ok::<(), umbel::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error, and changes nothing, if the two filters differ in shape or hash.
    pub fn pour(&mut self, into: &mut Cuckoo) -> Result<u64> {
        Mismatch::refuse(self.mismatch(into))?;
        let entries: Vec<(u64, u32)> = self.entries().collect();
        let mut moved = 0;
        for (bucket, fingerprint) in entries {
            let place = self.table.place_in(bucket, fingerprint);
            if into.put(place, 0).is_ok() {
                moved += u64::from(self.take(&place));
            }
        }
        Ok(moved)
    }
}

impl Algebra for Cuckoo {
    fn mismatch(&self, other: &Cuckoo) -> Option<Mismatch> {
        let (ours, theirs) = (&self.table, &other.table);
        Mismatch::between("number of bits", ours.bits(), theirs.bits())
            .or_else(|| Mismatch::between("number of buckets", ours.buckets(), theirs.buckets()))
            .or_else(|| {
                Mismatch::between(
                    "length of fingerprints",
                    ours.fingerprint_bits(),
                    theirs.fingerprint_bits(),
                )
            })
            .or_else(|| Mismatch::between("number of slots per bucket", ours.slots(), theirs.slots()))
            .or_else(|| Mismatch::between_hashes(self.head.hasher.id(), other.head.hasher.id()))
    }

    /// Becomes the multiset of both: a key that is in both is stored twice. Fails, and changes
    /// nothing, if there is no room for all keys, or for all copies of one key.
    fn union(&mut self, other: &Cuckoo) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        let mut union = self.try_clone()?;
        for (bucket, fingerprint) in other.entries() {
            union.put(union.table.place_in(bucket, fingerprint), MAX_KICKS)?;
        }
        *self = union;
        Ok(())
    }

    /// Becomes the multiset of the keys that are in both. Each is stored as often as in the filter
    /// that has fewer copies of it.
    fn intersect(&mut self, other: &Cuckoo) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        let mut common = self.try_clone()?;
        for (bucket, fingerprint) in self.entries() {
            let place = self.table.place_in(bucket, fingerprint);
            if common.count_place(&place) > other.count_place(&place) {
                common.take(&place);
            }
        }
        *self = common;
        Ok(())
    }
}
