//! `umbel convert`: converts a filter to another kind.

use crate::args::{headings, names};
use crate::filters::{Secrets, Target};
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::any::Stored;
use umbel::kind::Category;
use umbel::{AnyFilter, Kind};

/// Convert a filter to another kind, if that is possible.
///
/// A counting, deletable or Floom filter can become the standard filter of the same keys, which
/// takes less memory but does not support removal. A filter does not hold its keys, and the
/// positions of its cells depend on its kind, so other conversions are refused. Converting to the
/// same kind copies the filter.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel convert sessions.umbel --kind standard -o final.umbel")]
pub struct Args {
    /// Filter to convert
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Kind to convert to
    #[arg(long, value_parser = names::set_kind(), help_heading = headings::FILTER)]
    kind: Kind,

    #[command(flatten)]
    secrets: Secrets,

    #[command(flatten)]
    target: Target,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    args.target.check(std::slice::from_ref(&args.filter), &args.secrets)?;
    let loaded = args.secrets.load(&args.filter, Category::Set)?;
    let (from, options) = (loaded.filter.kind(), loaded.options());
    let converted = match (loaded.filter, args.kind) {
        (filter, kind) if from == kind => filter,
        (Stored::Set(AnyFilter::Counting(filter)), Kind::Standard) => filter.to_standard()?.into(),
        (Stored::Set(AnyFilter::Deletable(filter)), Kind::Standard) => filter.to_standard()?.into(),
        (Stored::Set(AnyFilter::Floom(filter)), Kind::Standard) => filter.to_standard()?.into(),
        (_, kind) => bail!(
            "{} {from} filter cannot become {} {kind} one: it does not hold its keys, and the two kinds keep their bits at different places; build it again from the keys with `umbel build --kind {kind}`",
            from.article(),
            kind.article()
        ),
    };
    args.target.save(&converted, options)?;
    Ok(ExitCode::SUCCESS)
}
