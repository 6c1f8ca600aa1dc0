//! Measurements of a filter in shards, without the secret of its hash.

use super::{Manifest, Sharded};
use crate::file::Info;
use crate::hash::KeyRing;
use crate::{Result, Stats};
use std::fs::File;
use std::path::Path;

/// The information about a filter in shards that is available without a secret.
#[derive(Debug)]
pub struct ExaminedShards {
    /// Not exposed, because lookups without the secret would be meaningless.
    filter: Sharded,
}

/// Opens a folder for its measurements. This needs no secret, and the time does not depend on the
/// sizes of the shards.
///
/// ```
/// use umbel::sharded::{self, ShardPlan, ShardedBuilder};
/// use umbel::{Kind, Spec};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("seen");
/// let builder = ShardedBuilder::new(ShardPlan::new(Kind::Blocked, &Spec::new(1000, 0.01)?, 2)?)?;
/// builder.insert_batch(&["apple", "pear", "plum"])?;
/// builder.save(&path)?;
///
/// let examined = sharded::examine(&path)?;
/// let stats = [examined.stats(0)?, examined.stats(1)?];
/// assert_eq!(stats[0].inserted.zip(stats[1].inserted).map(|(a, b)| a + b), Some(3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`Sharded::open`], except that no secret is needed.
pub fn examine(folder: impl AsRef<Path>) -> Result<ExaminedShards> {
    Ok(ExaminedShards { filter: Sharded::open_with(folder, &KeyRing::blind())? })
}

impl ExaminedShards {
    /// Returns the manifest.
    pub fn manifest(&self) -> &Manifest {
        self.filter.manifest()
    }

    /// Returns the number of shards.
    pub fn shards(&self) -> usize {
        self.filter.shards().len()
    }

    /// Returns the information in the header of a shard.
    ///
    /// # Panics
    ///
    /// If the filter does not have this shard.
    pub fn info(&self, shard: usize) -> Info {
        self.filter.shards()[shard].info()
    }

    /// Verifies a shard and measures how full it is.
    ///
    /// # Errors
    ///
    /// If the shard is damaged.
    ///
    /// # Panics
    ///
    /// If the filter does not have this shard.
    pub fn stats(&self, shard: usize) -> Result<Stats> {
        Ok(self.filter.shards()[shard].verified()?.stats())
    }

    /// Returns the open file of a shard. It remains the one that is examined here if another process
    /// replaces the shard.
    ///
    /// # Panics
    ///
    /// If the filter does not have this shard.
    pub fn file(&self, shard: usize) -> &File {
        self.filter.shards()[shard].file()
    }
}
