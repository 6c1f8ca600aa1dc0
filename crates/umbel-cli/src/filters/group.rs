//! Filters that are queried together, as by `umbel check --with`.

use super::{ForeignArgs, Opening, Secrets, check_whole};
use crate::system::clock;
use anyhow::Result;
use std::path::PathBuf;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use umbel::file::Mapped;
use umbel::foreign::ForeignFilter;
use umbel::key::Hashed;
use umbel::{Answers, Batch, Hasher};

/// One or more filters, of umbel or of other programs. A key is hashed once for each distinct hash
/// of umbel.
pub struct FilterGroup {
    filters: Vec<GroupedFilter>,
    /// The distinct hashes, if there are several filters.
    hashers: Vec<Hasher>,
}

enum GroupedFilter {
    Own(Box<OwnFilter>),
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
        if let [GroupedFilter::Own(first), rest @ ..] = &group.filters[..]
            && rest.iter().all(|filter| matches!(filter, GroupedFilter::Own(_)))
        {
            foreign.check_own(&first.path)?;
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
            GroupedFilter::Foreign(_) => Ok(()),
        })
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
