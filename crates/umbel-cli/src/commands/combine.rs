//! `umbel union` and `umbel intersect`: combine several filters into one.

use crate::args::headings;
use crate::args::meta::{self, entry};
use crate::filters::{Secrets, Target, check_same_form, warn_if_overfull, warn_if_overfull_shards};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::Sharded;
use umbel::any::Stored;
use umbel::file::Options;
use umbel::kind::Category;
use umbel::sharded::{self, FolderLock, Manifest};

/// Unite filters into one that holds the keys of all of them.
///
/// The result is the same as adding all keys to one filter. The filters must have the same kind,
/// size, hash and seed, as `umbel build --like` ensures. A union of quotient filters takes as many
/// slots as it needs. Metadata that is the same in all filters is kept.
///
/// Filters in shards are given by their directories, and united shard by shard. They must have been
/// built with the same options. If each holds a part of the keys, the result has the same bytes as a
/// single build from all keys.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel union june.umbel july.umbel -o summer.umbel
  umbel union part1.shards part2.shards -o all.shards
  umbel union june.umbel july.umbel --meta season=summer -o summer.umbel")]
pub struct UnionArgs {
    #[command(flatten)]
    args: Args,
}

/// Intersect filters into one that holds their common keys.
///
/// The result has no false negatives, and at most as many false positives as each of the filters.
/// It has more than a filter built from the common keys alone, because bits that were set by
/// different keys remain. For the same reason `umbel info` overestimates its number of keys: `umbel
/// compare` estimates how many keys the filters share. The filters must have the same kind, size,
/// hash and seed, as `umbel build --like` ensures. Metadata that is the same in all filters is
/// kept.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel intersect june.umbel july.umbel -o both.umbel")]
pub struct IntersectArgs {
    #[command(flatten)]
    args: Args,
}

#[derive(clap::Args)]
struct Args {
    /// Filters to combine
    #[arg(value_name = "FILTER", num_args = 2.., required = true)]
    filters: Vec<PathBuf>,

    #[command(flatten)]
    secrets: Secrets,

    #[command(flatten)]
    target: Target,

    /// Store a name and a value with the result (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = entry, help_heading = headings::OUTPUT)]
    meta: Vec<(String, String)>,
}

pub fn union(args: &UnionArgs) -> Result<ExitCode> {
    combine(&args.args, Stored::union, sharded::unite)
}

pub fn intersect(args: &IntersectArgs) -> Result<ExitCode> {
    combine(&args.args, Stored::intersect, sharded::intersect)
}

fn combine(
    args: &Args,
    join: impl Fn(&mut Stored, &Stored) -> umbel::Result<()>,
    join_shards: impl Fn(&[Sharded], FolderLock) -> umbel::Result<Manifest>,
) -> Result<ExitCode> {
    if args.filters.iter().any(|path| path.is_dir()) {
        return combine_shards(args, join_shards);
    }
    args.target.check(&args.filters, &args.secrets)?;
    let mut all = args.filters.iter();
    let first = all.next().context("no filter is given")?;
    let mut result = args.secrets.load(first, Category::Set)?;
    for path in all {
        let other = args.secrets.map_verified(path, Category::Set)?;
        check_same_form((first, &result.meta), (path, &other.meta))?;
        join(&mut result.filter, &other.filter)
            .with_context(|| format!("{} and {}", first.display(), path.display()))?;
        result.meta.retain(|name, value| other.meta.get(name) == Some(value));
        result.embedded_key &= other.embedded_key;
    }
    result.meta.extend(meta::collect(&args.meta)?);
    warn_if_overfull(&result.filter);
    let options = Options { create_new: false, ..result.options() };
    args.target.save(&result.filter, options)?;
    Ok(ExitCode::SUCCESS)
}

/// Combines filters in shards.
fn combine_shards(
    args: &Args,
    join: impl Fn(&[Sharded], FolderLock) -> umbel::Result<Manifest>,
) -> Result<ExitCode> {
    if !args.meta.is_empty() {
        bail!("--meta is not for filters in shards, which have no metadata: leave it out");
    }
    if let Some(file) = args.filters.iter().find(|path| !path.is_dir()) {
        bail!(
            "{} is not a directory, and others are: only filters in shards with the same options can be combined with each other",
            file.display()
        );
    }
    args.target.check_shards()?;
    let filters =
        args.filters.iter().map(|path| args.secrets.open_shards(path)).collect::<Result<Vec<_>>>()?;
    let names = || args.filters.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    args.target.save_shards(|folder| join(&filters, folder).with_context(names))?;
    let path = args.target.path().context("a filter in shards is a directory")?;
    warn_if_overfull_shards(path, &args.secrets);
    Ok(ExitCode::SUCCESS)
}
