//! `umbel convert`: a filter of another kind, where that is sound.

use crate::args::names;
use crate::filters::{Secrets, Target};
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::any::Stored;
use umbel::kind::Category;
use umbel::{AnyFilter, Kind};

/// Change the kind of a filter, where that is sound.
///
/// A counting, deletable or Floom filter becomes the standard filter of the same keys, which takes less memory and forgets
/// nothing any more. A filter does not hold its keys, only cells at places that depend on its kind, so other conversions
/// are impossible; then it says why. To the same kind, the filter is copied.
#[derive(clap::Args)]
pub struct Args {
    /// The filter
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// The kind to convert to
    #[arg(long, value_parser = names::set_kind())]
    kind: Kind,

    #[command(flatten)]
    target: Target,

    #[command(flatten)]
    secrets: Secrets,
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
            "{} {from} filter cannot become {} {kind} one: it does not hold its keys, and the two kinds keep their bits at different places; build it anew from the keys with `umbel build --kind {kind}`",
            from.article(),
            kind.article()
        ),
    };
    args.target.save(&converted, options)?;
    Ok(ExitCode::SUCCESS)
}
