//! Filters in shards combined, shard by shard.

use super::change::FolderLock;
use super::{Manifest, Sharded};
use crate::algebra::Mismatch;
use crate::file::Options;
use crate::internals::parallel;
use crate::{AnyFilter, Error, Result, Stored};

/// Writes the union of filters in shards to a folder. All of them must be of the same plan.
///
/// If the filters hold parts of one set of keys, the files are those that one process makes of all
/// keys. Each thread has one shard in memory at a time.
///
/// ```
/// use std::time::Duration;
/// use umbel::sharded::{self, FolderLock, ShardPlan, Sharded, ShardedBuilder};
/// use umbel::{Kind, Spec};
/// # let folder = tempfile::tempdir()?;
/// # let path = |name| folder.path().join(name);
/// let plan = ShardPlan::new(Kind::Blocked, &Spec::new(1_000_000, 0.001)?, 4)?;
/// for (part, keys) in [("monday", ["apple", "pear"]), ("tuesday", ["plum", "fig"])] {
///     let builder = ShardedBuilder::new(plan.clone())?;
///     builder.insert_batch(&keys)?;
///     builder.save(path(part))?;
/// }
/// # std::fs::create_dir(path("both"))?;
/// let parts = [Sharded::open(path("monday"))?, Sharded::open(path("tuesday"))?];
/// let lock = FolderLock::acquire(path("both"), Duration::ZERO)?.expect("no other process is at work");
/// sharded::unite(&parts, lock)?;
/// assert!(Sharded::open(path("both"))?.contains_batch(&["apple", "plum"])?.count() == 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// If the filters are not of the same plan, a shard is damaged, or a file cannot be written.
pub fn unite(filters: &[Sharded], into: FolderLock) -> Result<Manifest> {
    combine(filters, into, AnyFilter::absorb)
}

/// Writes a filter of the keys that may be in all of these filters, as [`unite`] writes their union.
///
/// # Errors
///
/// As [`unite`].
pub fn intersect(filters: &[Sharded], into: FolderLock) -> Result<Manifest> {
    combine(filters, into, AnyFilter::intersect)
}

fn combine(
    filters: &[Sharded],
    into: FolderLock,
    operation: impl Fn(&mut AnyFilter, &AnyFilter) -> Result<()> + Sync,
) -> Result<Manifest> {
    let Some((first, others)) = filters.split_first() else {
        return Err(Error::parameter("filters", 0, "at least one filter"));
    };
    others.iter().try_for_each(|other| Mismatch::refuse(mismatch(&first.manifest, &other.manifest)))?;
    let combine = |shard: usize| {
        let mut result = set(first, shard)?.try_clone()?;
        others.iter().try_for_each(|other| operation(&mut result, set(other, shard)?))?;
        let embed_key = filters.iter().all(|filter| filter.shards[shard].info().embedded_key);
        into.save_shard(shard, &result, &Options { embed_key, ..Options::default() })
    };
    let sums = parallel::map(first.shards.len(), combine).into_iter().collect::<Result<Vec<u64>>>()?;
    let manifest = first.manifest.with_sums(sums);
    into.commit(&manifest)?;
    Ok(manifest)
}

/// Verifies a shard and returns it.
fn set(filter: &Sharded, shard: usize) -> Result<&AnyFilter> {
    match filter.shards[shard].verified()? {
        Stored::Set(set) => Ok(set),
        other => Err(Error::cannot(other.kind(), "be combined", "a filter in shards is a set")),
    }
}

/// Returns the first difference between the plans of two filters.
fn mismatch(ours: &Manifest, theirs: &Manifest) -> Option<Mismatch> {
    Mismatch::between("kind", ours.kind(), theirs.kind())
        .or_else(|| Mismatch::between("number of shards", ours.sums().len(), theirs.sums().len()))
        .or_else(|| Mismatch::between("number of keys planned for", ours.capacity(), theirs.capacity()))
        .or_else(|| Mismatch::between("rate planned for", ours.rate(), theirs.rate()))
        .or_else(|| Mismatch::between_hashes(ours.hash(), theirs.hash()))
}
