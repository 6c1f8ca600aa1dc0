//! Keys added to a filter in shards.

use super::builder::WRITING_THREADS;
use super::change::FolderLock;
use super::route::Router;
use super::{Manifest, Sharded};
use crate::file::{self, Loaded};
use crate::hash::KeyRing;
use crate::internals::parallel;
use crate::internals::sync::lock;
use crate::key::Hashed;
use crate::tile::{self, ones};
use crate::{Answers, AnyFilter, Batch, Error, Hasher, Result, TILE};
use std::sync::Mutex;

/// Adds keys to a filter in shards.
///
/// Threads share an update by reference. A shard is loaded when its first key comes, so the memory
/// is that of the shards that change. [`ShardedUpdate::commit`] changes all of them or none, and
/// nothing changes without it.
///
/// ```
/// use std::time::Duration;
/// use umbel::hash::KeyRing;
/// use umbel::sharded::{FolderLock, ShardPlan, Sharded, ShardedBuilder, ShardedUpdate};
/// use umbel::{Kind, Spec};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("seen");
/// let plan = ShardPlan::new(Kind::Blocked, &Spec::new(1_000_000, 0.001)?, 4)?;
/// ShardedBuilder::new(plan)?.save(&path)?;
///
/// let lock = FolderLock::acquire(&path, Duration::from_secs(30))?.expect("no other process is at work");
/// let update = ShardedUpdate::begin(lock, &KeyRing::new())?;
/// update.insert_batch(&["apple", "pear"])?;
/// update.commit()?;
/// assert!(Sharded::open(&path)?.contains("apple")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ShardedUpdate {
    folder: FolderLock,
    ring: KeyRing,
    manifest: Manifest,
    hasher: Hasher,
    /// The shards that keys were added to.
    shards: Vec<Mutex<Option<Loaded<AnyFilter>>>>,
}

impl ShardedUpdate {
    /// Opens the filter in a folder to add keys to it.
    ///
    /// # Errors
    ///
    /// As [`Sharded::open_with`].
    pub fn begin(folder: FolderLock, ring: &KeyRing) -> Result<ShardedUpdate> {
        let Sharded { manifest, hasher, shards } = Sharded::open_with(folder.path(), ring)?;
        let shards = shards.iter().map(|_| Mutex::default()).collect();
        Ok(ShardedUpdate { folder, ring: ring.clone(), manifest, hasher, shards })
    }

    /// Inserts many keys.
    ///
    /// # Errors
    ///
    /// If a shard cannot be read, or is damaged.
    pub fn insert_batch<B: Batch + ?Sized>(&self, keys: &B) -> Result<()> {
        let mut router = Router::new(self.shards.len());
        tile::chunks(keys, &self.hasher, |digests| {
            router.route(digests, |shard, digests, _| {
                self.with_shard(shard, |filter| filter.insert_batch(&Hashed(digests)))
            })
        })
    }

    /// Inserts many keys one after the other, and returns for each whether it was certainly not a
    /// member before.
    ///
    /// # Errors
    ///
    /// As [`ShardedUpdate::insert_batch`].
    pub fn insert_batch_new<B: Batch + ?Sized>(&self, keys: &B) -> Result<Answers> {
        let mut answers = Answers::with_capacity(keys.len());
        let mut router = Router::new(self.shards.len());
        tile::chunks(keys, &self.hasher, |digests| {
            let mut tiles = vec![0u64; digests.len().div_ceil(TILE)];
            router.route(digests, |shard, digests, positions| {
                self.with_shard(shard, |filter| {
                    for (digests, positions) in digests.chunks(TILE).zip(positions.chunks(TILE)) {
                        for i in ones(filter.insert_tile_new(digests)?) {
                            let position = positions[i] as usize;
                            tiles[position / TILE] |= 1 << (position % TILE);
                        }
                    }
                    Ok(())
                })
            })?;
            for (tile, digests) in tiles.iter().zip(digests.chunks(TILE)) {
                answers.push_tile(*tile, digests.len());
            }
            Ok::<(), Error>(())
        })?;
        Ok(answers)
    }

    /// Calls `change` for a shard, which is loaded if it was not yet.
    fn with_shard(&self, shard: usize, change: impl FnOnce(&mut AnyFilter) -> Result<()>) -> Result<()> {
        let mut slot = lock(&self.shards[shard]);
        let loaded = match &mut *slot {
            Some(loaded) => loaded,
            none => {
                let path = super::shard_path(self.folder.path(), shard);
                let Loaded { filter, meta, embedded_key } = file::load(path, &self.ring)?;
                none.insert(Loaded { filter: filter.try_into()?, meta, embedded_key })
            }
        };
        change(&mut loaded.filter)
    }

    /// Returns the function that turns keys into digests.
    pub fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// Changes the files: all of them or, after an error, none.
    ///
    /// # Errors
    ///
    /// If a file cannot be written.
    pub fn commit(self) -> Result<Manifest> {
        let ShardedUpdate { folder, manifest, shards, .. } = self;
        let save = |shard: usize| match lock(&shards[shard]).take() {
            Some(changed) => folder.save_shard(shard, &changed.filter, &changed.options()),
            None => Ok(manifest.sums()[shard]),
        };
        let sums = parallel::map_with(WRITING_THREADS, shards.len(), save)
            .into_iter()
            .collect::<Result<Vec<u64>>>()?;
        if sums == manifest.sums() {
            return Ok(manifest);
        }
        let changed = manifest.with_sums(sums);
        folder.commit(&changed)?;
        Ok(changed)
    }
}
