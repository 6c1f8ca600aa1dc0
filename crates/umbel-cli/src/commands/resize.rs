//! `umbel resize`: moves a quotient filter into another number of slots.

use crate::args::{headings, number};
use crate::filters::{Secrets, Target, warn_if_overfull};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::AnyFilter;
use umbel::kind::Category;

/// Make room in a quotient filter, or shrink it, without its keys.
///
/// The filter keeps the fingerprints of its keys, so each key raises the rate as much as before:
/// `umbel info` reports the rate of N keys. The number of slots doubles or halves until N keys fill
/// at most 80 % of them. Each doubling takes one bit of the remainders, which limits the growth.
/// Other kinds do not hold the fingerprints of their keys and cannot be resized; `umbel fold`
/// shrinks those of the kinds blocked, standard and partitioned.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel resize quotient.umbel -n 5M -o larger.umbel")]
pub struct Args {
    /// Filter to resize
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Number of keys to make room for, including those that the filter holds
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        value_parser = number::count,
        required = true,
        help_heading = headings::FILTER
    )]
    capacity: u64,

    #[command(flatten)]
    secrets: Secrets,

    #[command(flatten)]
    target: Target,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    args.target.check(std::slice::from_ref(&args.filter), &args.secrets)?;
    let loaded = args.secrets.map_verified(&args.filter, Category::Set)?;
    let options = loaded.options();
    let filter = loaded.filter.into_kind::<AnyFilter>()?;
    let resized = filter.resized_for(args.capacity).with_context(|| args.filter.display().to_string())?;
    let resized = resized.into();
    warn_if_overfull(&resized);
    args.target.save(&resized, options)?;
    Ok(ExitCode::SUCCESS)
}
