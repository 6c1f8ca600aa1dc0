//! Filters that are queried together, as by `umbel check --with`.

use super::{Secrets, check_whole};
use crate::system::clock;
use anyhow::Result;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use umbel::file::Mapped;
use umbel::key::Hashed;
use umbel::{Answers, Batch, Hasher};

/// One or more mapped filters. A key is hashed once for each distinct hash.
pub struct FilterGroup {
    filters: Vec<GroupedFilter>,
    /// The distinct hashes, if there are several filters.
    hashers: Vec<Hasher>,
}

struct GroupedFilter {
    path: PathBuf,
    /// Locked for writing only to advance the clock of a filter with a time window.
    filter: RwLock<Mapped>,
    /// Whether the filter forgets keys with time.
    forgets: bool,
    /// The index of the filter's hash in the group.
    hasher: Option<usize>,
}

impl FilterGroup {
    /// Maps the filters.
    pub fn open<'a>(
        secrets: &Secrets,
        paths: impl ExactSizeIterator<Item = &'a PathBuf>,
    ) -> Result<FilterGroup> {
        let several = paths.len() > 1;
        let mut group = FilterGroup { filters: Vec::new(), hashers: Vec::new() };
        for path in paths {
            let filter = secrets.map_plain(path)?;
            let hasher = filter.hasher().filter(|_| several).map(|hasher| group.hasher_index(hasher));
            let forgets = filter.kind().capabilities().forget;
            group.filters.push(GroupedFilter {
                path: path.clone(),
                filter: RwLock::new(filter),
                forgets,
                hasher,
            });
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
        self.filters.iter().try_for_each(|grouped| check_whole(&*grouped.advanced()?, &grouped.path))
    }
}

impl GroupedFilter {
    /// Returns the filter as it is at the present time.
    fn advanced(&self) -> Result<RwLockReadGuard<'_, Mapped>> {
        if self.forgets {
            self.filter.write().unwrap_or_else(PoisonError::into_inner).advance(clock::now())?;
        }
        Ok(self.filter.read().unwrap_or_else(PoisonError::into_inner))
    }
}
