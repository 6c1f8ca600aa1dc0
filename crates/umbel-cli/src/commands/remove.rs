//! `umbel remove`: lines out of a filter that can forget them.

use crate::filters::Secrets;
use crate::input::InputArgs;
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::file;

/// Remove lines from a filter of a kind that can.
///
/// Exit code 0 if every line was removed, 1 if some were not, 2 if the filter cannot remove or something went wrong. The
/// kinds blocked, standard, partitioned and literature cannot: several keys share a bit, and clearing it for one would
/// lose the others.
#[derive(clap::Args)]
pub struct Args {
    /// The filter to remove from
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    #[command(flatten)]
    secrets: Secrets,

    #[command(flatten)]
    input: InputArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let kind = file::inspect(&args.filter)?.kind;
    args.secrets.ring()?;
    args.input.open()?;
    bail!(
        "{} is a {kind} filter, which cannot remove keys: several keys share a bit, and clearing it for one would lose the others; build it anew without them",
        args.filter.display()
    )
}
