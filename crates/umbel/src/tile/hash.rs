//! Hashes a batch without looking up its keys.

use super::TILE;
use crate::arch::{Kernel, Simd};
use crate::hash::Ends;
use crate::key::Visitor;
use crate::{Batch, Digest, Hasher, Level};

/// Hashes as many consecutive keys of a batch as there are digests, beginning with key `start`.
pub(crate) fn hash<B: Batch + ?Sized>(
    level: Level,
    keys: &B,
    start: usize,
    hasher: &Hasher,
    digests: &mut [Digest],
) {
    keys.visit(Hash { level, start, hasher, digests });
}

/// The number of keys that [`chunks`] hashes at a time. It is large enough that the first tile of a
/// chunk, which is not prefetched, does not matter, and small enough that the digests stay in the
/// caches.
pub(crate) const CHUNK: usize = 256 * TILE;

/// Hashes a batch and passes its digests to `work`, 16384 at a time, until it returns an error.
///
/// The loops behind `work` are compiled for digests only, not again for every type of batch. Use
/// this in types such as `AnyFilter`, where each of many kinds has its own loops.
pub(crate) fn chunks<B: Batch + ?Sized, E>(
    keys: &B,
    hasher: &Hasher,
    mut work: impl FnMut(&[Digest]) -> Result<(), E>,
) -> Result<(), E> {
    if let Some(digests) = keys.hashed() {
        return digests.chunks(CHUNK).try_for_each(work);
    }
    let (level, mut digests) = (Level::detect(), vec![Digest::default(); keys.len().min(CHUNK)]);
    for start in (0..keys.len()).step_by(CHUNK) {
        let digests = &mut digests[..CHUNK.min(keys.len() - start)];
        hash(level, keys, start, hasher, digests);
        work(digests)?;
    }
    Ok(())
}

/// Hashes a batch and passes the digests of each tile to `work`, until it returns an error. For
/// kinds that have nothing to prefetch, or whose tile operations prefetch by themselves.
pub(crate) fn each<B: Batch + ?Sized, E>(
    keys: &B,
    hasher: &Hasher,
    mut work: impl FnMut(&[Digest]) -> Result<(), E>,
) -> Result<(), E> {
    chunks(keys, hasher, |digests| digests.chunks(TILE).try_for_each(&mut work))
}

struct Hash<'a> {
    level: Level,
    start: usize,
    hasher: &'a Hasher,
    digests: &'a mut [Digest],
}

impl Visitor for Hash<'_> {
    type Output = ();

    fn visit<B: Batch + ?Sized>(self, keys: &B) {
        self.level.run(HashAll { keys, range: self });
    }
}

struct HashAll<'a, 'r, B: ?Sized> {
    keys: &'a B,
    range: Hash<'r>,
}

impl<B: Batch + ?Sized> Kernel for HashAll<'_, '_, B> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let HashAll { keys, range: Hash { start, hasher, digests, .. } } = self;
        let mut ends = Ends::EMPTY;
        for (i, tile) in digests.chunks_mut(TILE).enumerate() {
            let from = start + i * TILE;
            keys.digest_tile_with(simd, from..from + tile.len(), hasher, tile, &mut ends);
        }
    }
}
