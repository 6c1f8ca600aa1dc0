//! `umbel union` and `umbel intersect`: one filter out of several.

use crate::args::meta::{self, entry};
use crate::filters::{Secrets, Target, check_same_form, warn_if_overfull};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::any::Stored;
use umbel::file::Options;
use umbel::kind::Category;

/// Unite filters: the result holds the keys of all of them.
///
/// It is exactly the filter that would have come from adding all keys to one. The filters need the same kind, size, hash
/// and seed; `umbel build --like` makes them so. Metadata that is the same in all of them is kept.
#[derive(clap::Args)]
pub struct UnionArgs {
    #[command(flatten)]
    args: Args,
}

/// Intersect filters: the result holds the keys that are in all of them.
///
/// It has no false negatives, and no more false positives than each of the filters; but it has more than a filter built
/// from the common keys alone, because bits that different keys have set stay. For the same reason `umbel info` takes it
/// for fuller than it is: ask `umbel compare` how many keys the filters share. The filters need the same kind, size, hash
/// and seed; `umbel build --like` makes them so. Metadata that is the same in all of them is kept.
#[derive(clap::Args)]
pub struct IntersectArgs {
    #[command(flatten)]
    args: Args,
}

#[derive(clap::Args)]
struct Args {
    /// The filters
    #[arg(value_name = "FILTER", num_args = 2.., required = true)]
    filters: Vec<PathBuf>,

    #[command(flatten)]
    target: Target,

    /// Metadata of the result (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = entry)]
    meta: Vec<(String, String)>,

    #[command(flatten)]
    secrets: Secrets,
}

pub fn union(args: &UnionArgs) -> Result<ExitCode> {
    combine(&args.args, Stored::union)
}

pub fn intersect(args: &IntersectArgs) -> Result<ExitCode> {
    combine(&args.args, Stored::intersect)
}

fn combine(args: &Args, join: impl Fn(&mut Stored, &Stored) -> umbel::Result<()>) -> Result<ExitCode> {
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
