//! The shape of a filter in shards before it exists, and the check that all shards have it.

use super::manifest::{MAX_SHARDS, Manifest};
use super::{shard_of, shard_path};
use crate::file::{self, FormatError, Mapped};
use crate::hash::KeyRing;
use crate::{AnyFilter, Digest, Error, Hasher, Kind, Result, Spec, plan};
use std::path::{Path, PathBuf};

/// The shape of a filter in shards: which keys a shard has, and how large it is.
///
/// Every process that builds a part of the filter starts from an equal plan.
///
/// ```
/// use umbel::{Kind, Spec, sharded::ShardPlan};
/// let plan = ShardPlan::new(Kind::Blocked, &Spec::new(1_000_000, 0.01)?, 16)?;
/// // Keys are not spread evenly, so a shard has room for a few more than 62 500.
/// assert_eq!(plan.shard_spec().given().n, Some(63_750));
/// assert_eq!(plan.build_shard()?.kind(), Kind::Blocked);
/// assert!(ShardPlan::new(Kind::Cuckoo, &Spec::new(1_000_000, 0.01)?, 16).is_err());
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ShardPlan {
    kind: Kind,
    capacity: u64,
    rate: f64,
    shards: usize,
    shard: Spec,
}

impl ShardPlan {
    /// Plans a filter of `shards` shards, for the number of keys and the rate in `spec`.
    ///
    /// Each shard has room for five standard deviations more than its share of the keys, so that
    /// the rate holds in every shard.
    ///
    /// # Errors
    ///
    /// If the kind is not an array of bits, `spec` has no number of keys or no rate, the number of
    /// shards is not in 1..=[`MAX_SHARDS`], or no filter can be built to the specification.
    pub fn new(kind: Kind, spec: &Spec, shards: u32) -> Result<ShardPlan> {
        if !can_be_split(kind) {
            let why = "the bits of a shard must not depend on the order of the keys; kinds that can be split are \
                       blocked, standard and partitioned";
            return Err(Error::cannot(kind, "be split into shards", why));
        }
        if !(1..=MAX_SHARDS).contains(&shards) {
            return Err(Error::parameter("shards", shards, format!("a number from 1 to {MAX_SHARDS}")));
        }
        let given = spec.given();
        let missing = |name| Error::parameter(name, "nothing", "a value, from which each shard is sized");
        let capacity = given.n.ok_or_else(|| missing("n"))?;
        let rate = given.p.ok_or_else(|| missing("p"))?;
        let share = match shards {
            1 => capacity,
            _ => {
                let mean = capacity as f64 / f64::from(shards);
                (mean + 5.0 * mean.sqrt()).ceil() as u64
            }
        };
        let shard = spec.clone().with_given(crate::sizing::Given { n: Some(share), ..given })?;
        // Report an impossible filter now, and the kind that is really built.
        let kind = plan(kind, &shard)?.kind;
        Ok(ShardPlan { kind, capacity, rate, shards: shards as usize, shard })
    }

    /// Returns the number of keys that all shards are planned for.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the false-positive rate.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the number of shards.
    pub fn shards(&self) -> usize {
        self.shards
    }

    /// Returns the kind of each shard. Small blocked filters are built as standard ones.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the specification of each shard.
    pub fn shard_spec(&self) -> &Spec {
        &self.shard
    }

    /// Returns the function that turns keys into digests.
    pub fn hasher(&self) -> &Hasher {
        self.shard.hasher()
    }

    /// Returns the shard that a key belongs to.
    pub fn shard_of(&self, digest: Digest) -> usize {
        shard_of(digest, self.shards)
    }

    /// Creates an empty shard.
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    pub fn build_shard(&self) -> Result<AnyFilter> {
        AnyFilter::build(self.kind, &self.shard)
    }

    /// Completes a folder that has all shards: checks that they are of this plan, and writes the
    /// manifest. Until then no program takes the folder for a filter.
    ///
    /// # Errors
    ///
    /// If a shard is missing, damaged or not of this plan, or the manifest exists already or cannot
    /// be written.
    pub fn seal(&self, folder: impl AsRef<Path>) -> Result<Manifest> {
        let folder = folder.as_ref();
        let manifest = self.manifest(|shard| shard_path(folder, shard))?;
        manifest.save(folder)?;
        Ok(manifest)
    }

    /// Returns the manifest of the shards at these paths, if they are of this plan.
    pub(super) fn manifest(&self, path: impl Fn(usize) -> PathBuf) -> Result<Manifest> {
        let mut ring = KeyRing::new();
        ring.insert(self.hasher().clone());
        let mut sums = Vec::with_capacity(self.shards);
        let mut shape = None;
        for shard in 0..self.shards {
            let path = path(shard);
            let mapped = file::map(&path, &ring)?;
            self.check(&mapped, shape.get_or_insert_with(|| mapped.params().to_vec()))
                .map_err(|problem| Error::from(problem).at(&path))?;
            sums.push(mapped.header_sum());
        }
        Ok(Manifest::new(self, sums))
    }

    /// Checks that a shard is of this plan and has the shape of the first one.
    fn check(&self, shard: &Mapped, shape: &[u64]) -> Result<(), FormatError> {
        let design = shard.info().design.map(|design| (Some(design.capacity), Some(design.rate)));
        let given = self.shard.given();
        if (shard.kind(), shard.hasher().map(Hasher::id)) != (self.kind, Some(self.hasher().id()))
            || design != Some((given.n, given.p))
            || shard.params() != shape
        {
            let what = "it is a shard of another plan: build all shards with the same options";
            return Err(FormatError::invalid(what));
        }
        Ok(())
    }
}

/// Returns whether a filter of this kind can be split into shards.
pub(super) fn can_be_split(kind: Kind) -> bool {
    matches!(kind, Kind::Standard | Kind::Partitioned | Kind::Blocked)
}
