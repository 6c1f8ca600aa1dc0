//! Filters in shards: one filter as a folder of files, for sets that no machine or task builds in
//! one piece.
//!
//! ```text
//!   key -> digest -> shard = reduce(salted digest, S)
//!            |
//!            +-----> positions within the shard
//!
//!   FOLDER/shard-0000.umbel    a filter file like any other
//!   FOLDER/shard-0001.umbel
//!   ...
//!   FOLDER/manifest            written last: the shape, the hash and a checksum of each shard
//! ```
//!
//! Each shard is an ordinary filter file, built on its own by any process: [`ShardPlan`] says how
//! large it is and which keys belong to it. The shard of a key depends on its *salted* digest, so it
//! is independent of the positions in the shard. [`ShardPlan::seal`] writes the manifest when all
//! shards are there. [`Sharded`] opens such a folder; a shard that is missing, damaged or from
//! another build is an error that names the file, never an answer.
//!
//! Only kinds that are arrays of bits can be split (standard, partitioned and blocked), because
//! their bits do not depend on the order of the keys. So a shard that is built twice, by other
//! processes or after a failure, has the same bytes.
//!
//! ```
//! use umbel::sharded::{ShardPlan, Sharded, ShardedBuilder};
//! use umbel::{Kind, Spec};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("seen");
//! let plan = ShardPlan::new(Kind::Blocked, &Spec::new(1_000_000, 0.001)?, 4)?;
//! let builder = ShardedBuilder::new(plan)?;
//! builder.insert_batch(&["apple", "pear"])?;
//! builder.save(&path)?;
//!
//! let seen = Sharded::open(&path)?;
//! assert!(seen.contains("apple")?);
//! assert!(seen.contains_batch(&["pear", "stone"])?.iter().eq([true, false]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builder;
mod change;
mod combine;
mod examine;
mod manifest;
mod plan;
mod route;
mod update;

pub use builder::ShardedBuilder;
pub use change::FolderLock;
pub use combine::{intersect, unite};
pub use examine::{ExaminedShards, examine};
pub use manifest::{MANIFEST, MAX_SHARDS, Manifest};
pub use plan::ShardPlan;
pub use route::shard_of;
pub use update::ShardedUpdate;

use crate::file::{self, FormatError, Mapped};
use crate::hash::KeyRing;
use crate::key::Hashed;
use crate::tile::{self, ones};
use crate::{Answers, Batch, Digest, Error, Hasher, Key, Result, Stats, TILE};
use manifest::Place;
use route::Router;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The number of times that a folder is opened while other processes change it.
const MAX_OPENINGS: usize = 100;

/// A filter in shards, for lookups. Every shard is mapped; every part of it is verified before the
/// first answer from it, as in [`Mapped`].
///
/// See the [module](self) for an example.
#[derive(Debug)]
pub struct Sharded {
    manifest: Manifest,
    hasher: Hasher,
    shards: Vec<Mapped>,
}

impl Sharded {
    /// Opens a folder with a manifest and its shards. The time does not depend on their sizes.
    ///
    /// # Errors
    ///
    /// If the manifest or a shard is missing, damaged or of another build, or if the shards need a
    /// secret that is not embedded in them.
    pub fn open(folder: impl AsRef<Path>) -> Result<Sharded> {
        Sharded::open_with(folder, &KeyRing::new())
    }

    /// Opens a folder whose shards may need one of these secrets.
    ///
    /// # Errors
    ///
    /// As [`Sharded::open`]; also if the secret is not in the ring.
    pub fn open_with(folder: impl AsRef<Path>, ring: &KeyRing) -> Result<Sharded> {
        let folder = folder.as_ref();
        for _ in 0..MAX_OPENINGS {
            let listed = Manifest::load_listed(folder)?;
            match Sharded::open_listed(folder, &listed, ring) {
                // Shards may change between the manifest and the last of them. Then the manifest is
                // another one, too.
                Err(_) if Manifest::load_listed(folder)? != listed => {}
                opened => return opened,
            }
        }
        let busy = io::Error::new(ErrorKind::ResourceBusy, "it is changed again and again");
        Err(Error::io(folder, "open", busy))
    }

    /// Opens the shards that a manifest lists.
    fn open_listed(folder: &Path, (manifest, place): &(Manifest, Place), ring: &KeyRing) -> Result<Sharded> {
        let open = |shard: usize| {
            let path = shard_path(folder, shard);
            let staged = (*place == Place::Next).then(|| change::staged_path(folder, shard));
            let map = |path: &Path| file::map(path, ring).map_err(explain_missing);
            let mapped = match staged.map(|staged| map(&staged)) {
                // It has its name already, or is not changed.
                Some(Err(Error::Io { source, .. })) if source.kind() == ErrorKind::NotFound => map(&path)?,
                Some(staged) => staged?,
                None => map(&path)?,
            };
            let invalid = |what: &str| Err(Error::from(FormatError::invalid(what)).at(&path));
            if mapped.header_sum() != manifest.sums()[shard] {
                return invalid("it is not the shard that the manifest lists; copy or build it again");
            }
            if Some(manifest.hash()) != mapped.info().hash || mapped.kind() != manifest.kind() {
                return invalid("it has another kind or hash than the manifest");
            }
            Ok(mapped)
        };
        let shards: Vec<Mapped> = (0..manifest.sums().len()).map(open).collect::<Result<_>>()?;
        let hasher = shards.first().and_then(Mapped::hasher).cloned();
        let hasher = hasher.ok_or_else(|| FormatError::invalid("it lists no shards"))?;
        Ok(Sharded { manifest: manifest.clone(), hasher, shards })
    }

    /// Returns whether `key` may be a member of the set.
    ///
    /// # Errors
    ///
    /// If the part of the shard that the key needs is damaged.
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> Result<bool> {
        self.contains_digest(key.digest(&self.hasher))
    }

    /// Returns whether the key with this digest may be a member of the set.
    ///
    /// # Errors
    ///
    /// As [`Sharded::contains`].
    pub fn contains_digest(&self, digest: Digest) -> Result<bool> {
        let shard = &self.shards[shard_of(digest, self.shards.len())];
        Ok(shard.contains_tile(&[digest])? != 0)
    }

    /// Looks up many keys; the fast way. The keys are sorted by shard, so that each shard looks up
    /// its own in one batch.
    ///
    /// # Errors
    ///
    /// As [`Sharded::contains`].
    pub fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Result<Answers> {
        let mut answers = Answers::with_capacity(keys.len());
        let mut router = Router::new(self.shards.len());
        let mut tiles = Vec::new();
        tile::chunks(keys, &self.hasher, |digests| {
            tiles.clear();
            tiles.resize(digests.len().div_ceil(TILE), 0);
            router.route(digests, |shard, digests, positions| {
                let found = self.shards[shard].contains_batch(&Hashed(digests))?;
                for (tile, positions) in found.as_words().iter().zip(positions.chunks(TILE)) {
                    for i in ones(*tile) {
                        let position = positions[i] as usize;
                        tiles[position / TILE] |= 1 << (position % TILE);
                    }
                }
                Ok::<(), Error>(())
            })?;
            for (tile, digests) in tiles.iter().zip(digests.chunks(TILE)) {
                answers.push_tile(*tile, digests.len());
            }
            Ok::<(), Error>(())
        })?;
        Ok(answers)
    }

    /// Returns the function that turns keys into digests.
    pub fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// Returns the manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the shards in order.
    pub fn shards(&self) -> &[Mapped] {
        &self.shards
    }

    /// Returns the number of insertions into all shards, if it is known.
    pub fn inserted(&self) -> Option<u64> {
        let add = |total: u64, shard: &Mapped| Some(total.saturating_add(shard.info().inserted?));
        self.shards.iter().try_fold(0, add)
    }

    /// Measures all shards together; [`Stats::rate_now`] is the mean of their rates. Reads and
    /// verifies every shard.
    ///
    /// # Errors
    ///
    /// If a shard is damaged.
    pub fn stats(&self) -> Result<Stats> {
        let shard_stats = |shard: &Mapped| shard.verified().map(|stored| stored.stats());
        let shards = self.shards.iter().map(shard_stats).collect::<Result<Vec<Stats>>>()?;
        let no_shards = || FormatError::invalid("it lists no shards").into();
        total_stats(&self.manifest, &shards).ok_or_else(no_shards)
    }

    /// Returns whether all files are still at least as long as they were; see
    /// [`Mapped::is_whole`].
    pub fn is_whole(&self) -> bool {
        self.shards.iter().all(Mapped::is_whole)
    }
}

/// Explains the error if a shard does not exist.
fn explain_missing(error: Error) -> Error {
    match error {
        Error::Io { path, doing, source } if source.kind() == ErrorKind::NotFound => {
            let why =
                "this shard is missing: copy it from another copy of the filter, or build the filter again";
            Error::Io { path, doing, source: io::Error::new(ErrorKind::NotFound, why) }
        }
        error => error,
    }
}

/// Returns whether a path leads to a folder with a manifest.
pub fn is_sharded(folder: impl AsRef<Path>) -> bool {
    let names = [MANIFEST, manifest::NEXT_MANIFEST];
    names.iter().any(|name| folder.as_ref().join(name).symlink_metadata().is_ok())
}

/// Adds up the measurements of all shards of a filter. A key is in one of them, so the rate is the
/// mean of theirs. Returns `None` without shards.
pub fn total_stats(manifest: &Manifest, shards: &[Stats]) -> Option<Stats> {
    let first = shards.first()?;
    let sum = |value: fn(&Stats) -> u64| shards.iter().map(value).fold(0, u64::saturating_add);
    let inserted = shards
        .iter()
        .map(|shard| shard.inserted)
        .try_fold(0, |total: u64, inserted| Some(total.saturating_add(inserted?)));
    Some(Stats {
        cells: sum(|shard| shard.cells),
        used_cells: sum(|shard| shard.used_cells),
        bits: sum(|shard| shard.bits),
        bytes: sum(|shard| shard.bytes),
        capacity: Some(manifest.capacity()),
        rate_target: Some(manifest.rate()),
        inserted,
        estimate: shards.iter().map(|shard| shard.estimate).sum(),
        rate_now: shards.iter().map(|shard| shard.rate_now).sum::<f64>() / shards.len() as f64,
        ..first.clone()
    })
}

/// Returns the path of a shard in a folder.
pub fn shard_path(folder: &Path, shard: usize) -> PathBuf {
    folder.join(shard_name(shard))
}

/// Returns the name of a shard's file.
pub fn shard_name(shard: usize) -> String {
    format!("shard-{shard:04}.umbel")
}
