//! The shard of a key, and the keys of each shard of a batch.

use crate::Digest;
use crate::hash::reduce;

/// "shards" as a little-endian number. The salt makes the choice of a shard independent of the
/// positions in it.
const SHARD_SALT: u64 = 0x73_64_72_61_68_73;

/// Returns the shard, counted from 0, of a key in a filter of this many shards: the position of its
/// salted digest in `0..shards`.
///
/// ```
/// use umbel::{Hasher, sharded::shard_of};
/// let digest = Hasher::fast(0).digest_bytes(b"apple");
/// assert_eq!(shard_of(digest, 8), 7);
/// ```
#[inline]
pub fn shard_of(digest: Digest, shards: usize) -> usize {
    reduce(digest.salted(SHARD_SALT).get(), shards as u64) as usize
}

/// Sorts the digests of batches by shard. It keeps its memory from one batch to the next.
pub(super) struct Router {
    shards: usize,
    /// The shard of each digest of the batch.
    targets: Vec<u32>,
    /// The end of each shard's digests in `sorted`.
    ends: Vec<usize>,
    sorted: Vec<Digest>,
    /// The position in the batch of each digest in `sorted`.
    positions: Vec<u32>,
}

impl Router {
    pub fn new(shards: usize) -> Router {
        Router { shards, targets: Vec::new(), ends: Vec::new(), sorted: Vec::new(), positions: Vec::new() }
    }

    /// Passes to `visit` each shard that has keys, its digests, and their positions in the batch,
    /// until it returns an error. This is a counting sort, so equal shards keep their order.
    pub fn route<E>(
        &mut self,
        digests: &[Digest],
        mut visit: impl FnMut(usize, &[Digest], &[u32]) -> Result<(), E>,
    ) -> Result<(), E> {
        debug_assert!(u32::try_from(digests.len()).is_ok());
        self.targets.clear();
        self.targets.extend(digests.iter().map(|digest| shard_of(*digest, self.shards) as u32));
        self.ends.clear();
        self.ends.resize(self.shards, 0);
        self.targets.iter().for_each(|shard| self.ends[*shard as usize] += 1);
        let mut start = 0;
        for end in &mut self.ends {
            // For now the place of the shard's next digest, and its end once all are in place.
            start += std::mem::replace(end, start);
        }
        self.sorted.resize(digests.len(), Digest::default());
        self.positions.resize(digests.len(), 0);
        for (position, (digest, shard)) in digests.iter().zip(&self.targets).enumerate() {
            let place = &mut self.ends[*shard as usize];
            self.sorted[*place] = *digest;
            self.positions[*place] = position as u32;
            *place += 1;
        }
        let mut start = 0;
        for (shard, end) in self.ends.iter().enumerate() {
            if start < *end {
                visit(shard, &self.sorted[start..*end], &self.positions[start..*end])?;
            }
            start = *end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hasher;

    #[test]
    fn every_digest_reaches_its_shard_once_and_in_order() {
        let digests: Vec<Digest> =
            (0..5000u64).map(|i| Hasher::fast(1).digest_bytes(&i.to_le_bytes())).collect();
        let mut router = Router::new(7);
        // Twice, since the memory of the first batch is used again.
        for digests in [&digests[..], &digests[..33]] {
            let mut seen = vec![false; digests.len()];
            let Ok(()) = router.route(digests, |shard, sorted, positions| {
                assert_eq!(sorted.len(), positions.len());
                assert!(positions.is_sorted());
                for (digest, position) in sorted.iter().zip(positions) {
                    assert_eq!((digests[*position as usize], shard_of(*digest, 7)), (*digest, shard));
                    assert!(!std::mem::replace(&mut seen[*position as usize], true));
                }
                Ok::<(), std::convert::Infallible>(())
            });
            assert!(seen.iter().all(|seen| *seen));
        }
    }

    /// With a 1 in 10^9 chance to fail for a good hash; the seed is fixed.
    #[test]
    fn shards_have_equal_shares_and_say_nothing_about_positions() {
        let (keys, shards, cells) = (400_000u64, 8, 16u64);
        let mut counts = vec![0u64; shards * cells as usize];
        for i in 0..keys {
            let digest = Hasher::fast(0).digest_bytes(&i.to_le_bytes());
            counts[shard_of(digest, shards) * cells as usize + reduce(digest.get(), cells) as usize] += 1;
        }
        let expected = keys as f64 / counts.len() as f64;
        let chi_squared: f64 = counts.iter().map(|count| (*count as f64 - expected).powi(2) / expected).sum();
        // 127 degrees of freedom: mean 127, standard deviation 16.
        assert!(chi_squared < 127.0 + 7.0 * 16.0, "{chi_squared}");
    }
}
