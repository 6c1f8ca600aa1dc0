//! Filters that are queried together, as by `umbel check --with`.

use super::{ForeignArgs, Opening, Secrets, check_whole};
use crate::system::clock;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use umbel::file::Mapped;
use umbel::foreign::ForeignFilter;
use umbel::key::Hashed;
use umbel::sharded::shard_path;
use umbel::{Answers, Batch, Hasher, Sharded};

/// One or more filters, of umbel or of other programs. A key is hashed once for each distinct hash
/// of umbel.
pub struct FilterGroup {
    filters: Vec<GroupedFilter>,
    /// The distinct hashes, if there are several filters.
    hashers: Vec<Hasher>,
}

enum GroupedFilter {
    Own(Box<OwnFilter>),
    Sharded(Box<ShardedFilter>),
    Foreign(Box<ForeignFilter>),
}

/// A mapped filter of umbel.
struct OwnFilter {
    path: PathBuf,
    /// Locked for writing only to advance the clock of a filter with a time window.
    filter: RwLock<Mapped>,
    /// Whether the filter forgets keys with time.
    forgets: bool,
    /// The index of the filter's hash in the group.
    hasher: Option<usize>,
}

/// A mapped filter in shards.
struct ShardedFilter {
    path: PathBuf,
    filter: Sharded,
    /// The index of the filter's hash in the group.
    hasher: Option<usize>,
}

impl FilterGroup {
    /// Opens the filters. Those of umbel are mapped.
    pub fn open<'a>(
        secrets: &Secrets,
        foreign: &ForeignArgs,
        paths: impl ExactSizeIterator<Item = &'a PathBuf>,
    ) -> Result<FilterGroup> {
        let several = paths.len() > 1;
        let mut group = FilterGroup { filters: Vec::new(), hashers: Vec::new() };
        for path in paths {
            if path.is_dir() {
                let filter = secrets.open_shards(path)?;
                let hasher = several.then(|| group.hasher_index(filter.hasher()));
                let sharded = ShardedFilter { path: path.clone(), filter, hasher };
                group.filters.push(GroupedFilter::Sharded(Box::new(sharded)));
                continue;
            }
            let filter = match secrets.map_plain(path) {
                Ok(filter) => filter,
                Err(error) => {
                    let foreign = if several { foreign.for_one_of_several(path) } else { *foreign };
                    let filter = foreign.open_instead(path, error, Opening::Mapped)?;
                    group.filters.push(GroupedFilter::Foreign(Box::new(filter)));
                    continue;
                }
            };
            let hasher = filter.hasher().filter(|_| several).map(|hasher| group.hasher_index(hasher));
            let forgets = filter.kind().capabilities().forget;
            let (path, filter) = (path.clone(), RwLock::new(filter));
            let own = OwnFilter { path, filter, forgets, hasher };
            group.filters.push(GroupedFilter::Own(Box::new(own)));
        }
        if let Some(first) = group.filters.first().and_then(GroupedFilter::own_path)
            && group.filters.iter().all(|filter| filter.own_path().is_some())
        {
            foreign.check_own(first)?;
        }
        Ok(group)
    }

    fn hasher_index(&mut self, hasher: &Hasher) -> usize {
        self.hashers.iter().position(|known| known == hasher).unwrap_or_else(|| {
            self.hashers.push(hasher.clone());
            self.hashers.len() - 1
        })
    }

    /// Returns the answers of each filter.
    pub fn query(&self, keys: &impl Batch) -> Result<Vec<Answers>> {
        let digests: Vec<_> = self.hashers.iter().map(|hasher| hasher.digest_batch(keys)).collect();
        let query = |grouped: &GroupedFilter| {
            let grouped = match grouped {
                GroupedFilter::Own(own) => own,
                GroupedFilter::Sharded(sharded) => {
                    return Ok(match sharded.hasher {
                        Some(hasher) => sharded.filter.contains_batch(&Hashed(&digests[hasher]))?,
                        None => sharded.filter.contains_batch(keys)?,
                    });
                }
                GroupedFilter::Foreign(filter) => return Ok(filter.contains_batch(keys)?),
            };
            let filter = grouped.advanced()?;
            Ok(match grouped.hasher {
                Some(hasher) => filter.contains_batch(&Hashed(&digests[hasher]))?,
                None => filter.contains_batch(keys)?,
            })
        };
        self.filters.iter().map(query).collect()
    }

    /// Fails if a file was shortened while it was mapped, since its answers are not reliable.
    pub fn check_whole(&self) -> Result<()> {
        self.filters.iter().try_for_each(|grouped| match grouped {
            GroupedFilter::Own(own) => check_whole(&*own.advanced()?, &own.path),
            GroupedFilter::Sharded(sharded) => {
                let mut shards = sharded.filter.shards().iter().enumerate();
                shards.try_for_each(|(shard, mapped)| check_whole(mapped, &shard_path(&sharded.path, shard)))
            }
            GroupedFilter::Foreign(_) => Ok(()),
        })
    }
}

impl GroupedFilter {
    /// Returns the path of a filter of umbel.
    fn own_path(&self) -> Option<&Path> {
        match self {
            GroupedFilter::Own(own) => Some(&own.path),
            GroupedFilter::Sharded(sharded) => Some(&sharded.path),
            GroupedFilter::Foreign(_) => None,
        }
    }
}

impl OwnFilter {
    /// Returns the filter as it is at the present time.
    fn advanced(&self) -> Result<RwLockReadGuard<'_, Mapped>> {
        if self.forgets {
            self.filter.write().unwrap_or_else(PoisonError::into_inner).advance(clock::now())?;
        }
        Ok(self.filter.read().unwrap_or_else(PoisonError::into_inner))
    }
}
