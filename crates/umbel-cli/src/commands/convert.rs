//! `umbel convert`: a filter of another kind, where that is sound.

use crate::filters::{Secrets, Target};
use crate::names;
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::Kind;

/// Change the kind of a filter, where that is sound.
///
/// A filter does not hold its keys, only bits at places that depend on its kind, so most conversions are impossible; then
/// it says why. To the same kind, the filter is copied.
#[derive(clap::Args)]
pub struct Args {
    /// The filter
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// The kind to convert to
    #[arg(long, value_parser = names::kind())]
    kind: Kind,

    #[command(flatten)]
    target: Target,

    #[command(flatten)]
    secrets: Secrets,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    args.target.check(std::slice::from_ref(&args.filter))?;
    let loaded = args.secrets.load(&args.filter)?;
    let from = loaded.filter.kind();
    if from != args.kind {
        bail!(
            "a {from} filter cannot become a {} one: it does not hold its keys, and the two kinds keep their bits at different places; build it anew from the keys with `umbel build --kind {}`",
            args.kind,
            args.kind
        );
    }
    args.target.save(&loaded.filter, loaded.options())?;
    Ok(ExitCode::SUCCESS)
}
