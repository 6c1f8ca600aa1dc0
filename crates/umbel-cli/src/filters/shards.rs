//! Filters in shards: the options that build them, and how they are opened and written.

use super::target::folder;
use super::{LockArgs, Secrets, warn_if_overfull_by};
use crate::args::{headings, number};
use crate::report::ShardsReport;
use crate::system::signals;
use crate::terminal::output;
use anyhow::{Result, anyhow, bail};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;
use umbel::internals::parallel;
use umbel::sharded::{
    self, FolderLock, MAX_SHARDS, ShardPlan, ShardedBuilder, is_sharded, shard_path, total_stats,
};
use umbel::{Sharded, Stats};

/// The options that build a filter in shards.
#[derive(clap::Args, Clone, Debug)]
pub struct ShardArgs {
    /// Build a filter in N shards, a directory with a filter for each part of the keys and a manifest;
    /// needs -n
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SHARDS)),
        help_heading = headings::FILTER
    )]
    pub shards: Option<u32>,

    /// Build only these shards, counted from 0, as one of several processes that read all keys
    #[arg(
        long,
        value_name = "FIRST-LAST",
        value_parser = number::range,
        requires = "shards",
        conflicts_with_all = ["force", "json"],
        help_heading = headings::FILTER
    )]
    only: Option<Range<usize>>,

    /// Complete a directory whose shards were built with --only: check that all are there, and write
    /// the manifest. No keys are read
    #[arg(
        long,
        requires = "shards",
        conflicts_with_all = ["only", "force", "json", "inputs"],
        help_heading = headings::FILTER
    )]
    pub complete: bool,
}

impl ShardArgs {
    /// Returns the empty shards that this process builds.
    pub fn builder(&self, plan: ShardPlan) -> Result<ShardedBuilder> {
        let all = plan.shards();
        match &self.only {
            Some(only) if only.end > all => {
                let last = all - 1;
                bail!("--only {}-{}: the shards are 0-{last}", only.start, only.end - 1)
            }
            Some(only) => Ok(ShardedBuilder::for_shards(plan, only.clone())?),
            None => Ok(ShardedBuilder::new(plan)?),
        }
    }

    /// Returns whether this process builds a whole filter.
    pub fn is_whole(&self) -> bool {
        self.only.is_none() && !self.complete
    }

    /// Fails if other processes cannot add their shards to this directory, since it is complete.
    pub fn check_incomplete(&self, folder: &Path) -> Result<()> {
        if !self.is_whole() && folder.is_dir() && is_sharded(folder) {
            bail!("{} has a manifest, so all of its shards are there: give another name", folder.display());
        }
        Ok(())
    }
}

impl Secrets {
    /// Opens a filter in shards; each part is verified when it is first touched.
    pub fn open_shards(&self, folder: &Path) -> Result<Sharded> {
        let opened = Sharded::open_with(folder, self.ring()?)?;
        (0..opened.shards().len()).for_each(|shard| signals::watch_mapped(&shard_path(folder, shard)));
        Ok(opened)
    }
}

/// Verifies and describes a filter in shards. This needs no secret.
pub fn report_shards(folder: &Path) -> Result<ShardsReport> {
    let examined = sharded::examine(folder)?;
    let shards = examined.shards();
    (0..shards).for_each(|shard| signals::watch_mapped(&shard_path(folder, shard)));
    let stats = for_each_shard(shards, |shard| Ok(examined.stats(shard)?))?;
    let files: Vec<_> = (0..shards).map(|shard| examined.info(shard)).collect();
    let report = ShardsReport::new(examined.manifest(), &stats)?;
    Ok(report.with_files(folder.display().to_string(), &files))
}

/// Warns if a filter in shards, which has just been written, certainly holds more keys than it was made
/// for. What was written stays, so an error on the way is a warning, too.
pub fn warn_if_overfull_shards(folder: &Path, secrets: &Secrets) {
    let measure = || -> Result<Option<Stats>> {
        let filter = secrets.open_shards(folder)?;
        // If the insertions are few enough, the bits need not be counted.
        if filter.inserted().is_some_and(|count| count <= filter.manifest().capacity()) {
            return Ok(None);
        }
        let shards = filter.shards();
        let stats = for_each_shard(shards.len(), |shard| Ok(shards[shard].verified()?.stats()))?;
        Ok(total_stats(filter.manifest(), &stats))
    };
    match measure() {
        Ok(stats) => stats.iter().for_each(warn_if_overfull_by),
        Err(error) => output::warn(format_args!(
            "{} was written, but whether it has more keys than planned was not found out: {error:#}",
            folder.display()
        )),
    }
}

/// Explains the error of a command that does not take filters in shards, if that is the reason.
/// Returns other errors unchanged.
pub fn explain_folder(error: anyhow::Error) -> anyhow::Error {
    let folder = error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(umbel::Error::Io { path, source, .. }) if source.kind() == ErrorKind::IsADirectory => {
            Some(path).filter(|path| is_sharded(path))
        }
        _ => None,
    });
    folder.map(|folder| not_for_shards(folder)).unwrap_or(error)
}

/// Returns the error of a command that does not take filters in shards.
pub fn not_for_shards(folder: &Path) -> anyhow::Error {
    anyhow!(
        "{} is a filter in shards, which this command does not take: `umbel check` and `umbel why` ask it for keys, `umbel info` describes it, `umbel add`, `umbel union` and `umbel intersect` change it, and each file in it is a filter that can be read by itself",
        folder.display()
    )
}

/// Fails if a file is a shard: it would no longer be the one that the manifest lists.
pub fn check_no_shard(path: &Path) -> Result<()> {
    let name = path.file_name().and_then(|name| name.to_str());
    let digits = name.and_then(|name| name.strip_prefix("shard-")?.strip_suffix(".umbel"));
    let folder = folder(path);
    if digits.is_some_and(|digits| digits.parse::<u32>().is_ok()) && is_sharded(folder) {
        bail!(
            "{} is a shard of the filter in {}, whose manifest has its checksum: change the filter as a whole, as with `umbel add`",
            path.display(),
            folder.display()
        );
    }
    Ok(())
}

/// Calls `work` for each shard, on all processors, and returns the results in order.
fn for_each_shard<T: Send>(shards: usize, work: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    parallel::map(shards, work).into_iter().collect()
}

impl LockArgs {
    /// Waits for the right to change a filter in shards.
    pub fn lock_shards(self, folder: &Path) -> Result<FolderLock> {
        self.wait(folder, |wait| Ok(FolderLock::acquire(folder, wait)?))
    }
}
