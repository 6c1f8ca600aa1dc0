//! All shards of a filter, or some of them, in the memory of one process, filled by its threads.

use super::change::FolderLock;
use super::route::Router;
use super::{Manifest, ShardPlan, shard_path};
use crate::file::{self, Options};
use crate::internals::parallel;
use crate::internals::sync::lock;
use crate::key::Hashed;
use crate::{AnyFilter, Batch, Digest, Error, Key, Result, Stats, tile};
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;

/// The number of threads that write shards. They wait for the disk most of the time, which flushes
/// several files at once.
pub(super) const WRITING_THREADS: usize = 16;

/// Builds a filter in shards in memory.
///
/// Threads share a builder by reference: each shard has a lock of its own, and a batch takes it
/// once for all keys of the shard. The bits do not depend on the order in which keys arrive.
///
/// A filter that is too large for one process is built by several, each with some of the shards:
///
/// ```
/// use umbel::sharded::{ShardPlan, Sharded, ShardedBuilder};
/// use umbel::{Kind, Spec};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("seen");
/// let plan = ShardPlan::new(Kind::Blocked, &Spec::new(1_000_000, 0.001)?, 4)?;
/// for shards in [0..2, 2..4] {
///     // Each process reads all keys, and skips those of other shards.
///     let builder = ShardedBuilder::for_shards(plan.clone(), shards)?;
///     builder.insert_batch(&["apple", "pear", "plum"])?;
///     builder.save_shards(&path, false)?;
/// }
/// plan.seal(&path)?;
/// assert_eq!(Sharded::open(&path)?.inserted(), Some(3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ShardedBuilder {
    plan: ShardPlan,
    /// The number of the first shard.
    first: usize,
    shards: Vec<Mutex<AnyFilter>>,
}

impl ShardedBuilder {
    /// Creates empty shards.
    ///
    /// # Errors
    ///
    /// If there is not enough memory for all shards.
    pub fn new(plan: ShardPlan) -> Result<ShardedBuilder> {
        let all = 0..plan.shards();
        ShardedBuilder::for_shards(plan, all)
    }

    /// Creates these shards only. Keys of other shards are skipped.
    ///
    /// # Errors
    ///
    /// If the filter does not have these shards, or there is not enough memory for them.
    pub fn for_shards(plan: ShardPlan, shards: Range<usize>) -> Result<ShardedBuilder> {
        if shards.is_empty() || shards.end > plan.shards() {
            let needs = format!("shards from 0 to {}", plan.shards() - 1);
            return Err(Error::parameter("shards", format!("{shards:?}"), needs));
        }
        let first = shards.start;
        let shards = shards.map(|_| plan.build_shard().map(Mutex::new)).collect::<Result<_>>()?;
        Ok(ShardedBuilder { plan, first, shards })
    }

    /// Inserts a key.
    ///
    /// # Errors
    ///
    /// As [`ShardedBuilder::insert_batch`].
    pub fn insert<K: Key + ?Sized>(&self, key: &K) -> Result<()> {
        self.insert_batch(&Hashed(&[key.digest(self.plan.hasher())]))
    }

    /// Inserts many keys; the fast way.
    ///
    /// # Errors
    ///
    /// None for the kinds that can be split.
    pub fn insert_batch<B: Batch + ?Sized>(&self, keys: &B) -> Result<()> {
        let mut router = Router::new(self.plan.shards());
        tile::chunks(keys, self.plan.hasher(), |digests| {
            router.route(digests, |shard, digests: &[Digest], _| {
                match shard.checked_sub(self.first).and_then(|shard| self.shards.get(shard)) {
                    Some(filter) => lock(filter).insert_batch(&Hashed(digests)),
                    None => Ok(()),
                }
            })
        })
    }

    /// Returns the number of insertions into these shards so far.
    pub fn inserted(&self) -> u64 {
        self.shards.iter().filter_map(|filter| lock(filter).inserted()).fold(0, u64::saturating_add)
    }

    /// Measures how full each shard is.
    pub fn stats(&self) -> Vec<Stats> {
        self.shards.iter().map(|filter| lock(filter).stats()).collect()
    }

    /// Returns the plan of the filter.
    pub fn plan(&self) -> &ShardPlan {
        &self.plan
    }

    /// Writes the shards to a folder, and then the manifest. The folder is created if it does not
    /// exist. Shards that an interrupted run left there are replaced.
    ///
    /// # Errors
    ///
    /// If the folder has a manifest already, or a file cannot be written, or the builder does not
    /// have all shards. Without a manifest, no program takes the folder for a filter.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<Manifest> {
        self.save_with(folder, false)
    }

    /// Writes the filter as [`ShardedBuilder::save`] does; with `embed_key`, every shard contains
    /// the secret of its `keyed` hash, as in [`Options`].
    ///
    /// # Errors
    ///
    /// As [`ShardedBuilder::save`]; also if there is no such secret.
    pub fn save_with(&self, folder: impl AsRef<Path>, embed_key: bool) -> Result<Manifest> {
        let folder = folder.as_ref();
        self.save_shards(folder, embed_key)?;
        self.plan.seal(folder)
    }

    /// Writes the shards to a folder without a manifest, as one of several processes that build
    /// them. [`ShardPlan::seal`] completes the folder once all shards are there.
    ///
    /// # Errors
    ///
    /// If the folder has a manifest already, or a file cannot be written.
    pub fn save_shards(&self, folder: impl AsRef<Path>, embed_key: bool) -> Result<()> {
        let folder = folder.as_ref();
        Manifest::refuse_existing(folder)?;
        fs::create_dir_all(folder).map_err(|source| Error::io(folder, "create", source))?;
        let options = Options { embed_key, ..Options::default() };
        let save = |i: usize| {
            let path = shard_path(folder, self.first + i);
            file::save(path, &*lock(&self.shards[i]), &options)
        };
        parallel::map_with(WRITING_THREADS, self.shards.len(), save).into_iter().collect()
    }

    /// Writes the filter to a locked folder, completely or not at all. If there is a filter, it is
    /// replaced: programs that open it find the old one or the new one, also if this process is
    /// killed.
    ///
    /// # Errors
    ///
    /// If a file cannot be written, or the builder does not have all shards. An old filter is
    /// unchanged then, and of a new one nothing is left.
    pub fn save_locked(&self, folder: FolderLock, embed_key: bool) -> Result<Manifest> {
        let options = Options { embed_key, ..Options::default() };
        let save = |i: usize| folder.save_shard(self.first + i, &*lock(&self.shards[i]), &options).map(drop);
        parallel::map_with(WRITING_THREADS, self.shards.len(), save).into_iter().collect::<Result<()>>()?;
        let manifest = self.plan.manifest(|shard| folder.next_path(shard))?;
        folder.commit(&manifest)?;
        Ok(manifest)
    }
}
