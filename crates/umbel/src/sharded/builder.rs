//! All shards of a filter in the memory of one process, filled by its threads.

use super::route::Router;
use super::{Manifest, ShardPlan, shard_path};
use crate::file::{self, Options};
use crate::internals::sync::lock;
use crate::key::Hashed;
use crate::{AnyFilter, Batch, Digest, Error, Key, Result, tile};
use std::fs;
use std::path::Path;
use std::sync::Mutex;

/// Builds a filter in shards in memory.
///
/// Threads share a builder by reference: each shard has a lock of its own, and a batch takes it
/// once for all keys of the shard. The bits do not depend on the order in which keys arrive.
#[derive(Debug)]
pub struct ShardedBuilder {
    plan: ShardPlan,
    shards: Vec<Mutex<AnyFilter>>,
}

impl ShardedBuilder {
    /// Creates empty shards.
    ///
    /// # Errors
    ///
    /// If there is not enough memory for all shards.
    pub fn new(plan: ShardPlan) -> Result<ShardedBuilder> {
        let shards = (0..plan.shards()).map(|_| plan.build_shard().map(Mutex::new)).collect::<Result<_>>()?;
        Ok(ShardedBuilder { plan, shards })
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
        let mut router = Router::new(self.shards.len());
        tile::chunks(keys, self.plan.hasher(), |digests| {
            router.route(digests, |shard, digests: &[Digest], _| {
                lock(&self.shards[shard]).insert_batch(&Hashed(digests))
            })
        })
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
    /// If the folder has a manifest already, or a file cannot be written. Without a manifest, no
    /// program takes the folder for a filter.
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
        Manifest::refuse_existing(folder)?;
        fs::create_dir_all(folder).map_err(|source| Error::io(folder, "create", source))?;
        let options = Options { embed_key, ..Options::default() };
        for (shard, filter) in self.shards.iter().enumerate() {
            file::save(shard_path(folder, shard), &*lock(filter), &options)?;
        }
        self.plan.seal(folder)
    }
}
