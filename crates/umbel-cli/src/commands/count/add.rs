//! `umbel count add`: records more lines in a multiset.

use crate::args::headings;
use crate::filters::{LockArgs, Secrets, record, warn_if_noisy};
use crate::input::{InputArgs, check_not_output};
use crate::report::FilterReport;
use crate::terminal::output;
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::any::Stored;
use umbel::kind::Category;
use umbel::{AnyCount, file};

/// Record more lines in a multiset.
///
/// The file is replaced as a whole once all lines have been read. Until then, and after any error,
/// it is unchanged. A warning is printed if there are too many lines, so that the noise exceeds
/// the one that the multiset was built for.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel count add hosts.umbel today.txt")]
pub struct Args {
    /// Multiset to add to
    #[arg(value_name = "MULTISET")]
    counts: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    secrets: Secrets,

    #[command(flatten)]
    lock: LockArgs,

    /// Print a description of the multiset as JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    check_not_output(args.input.files(), &args.counts)?;
    let lock = args.lock.lock(&args.counts)?;
    let loaded = args.secrets.load(&args.counts, Category::Multiset)?;
    let options = loaded.options();
    let mut counts = AnyCount::try_from(loaded.filter)?;
    record(&mut counts, &args.input)?;
    file::save(&args.counts, &counts, &options)?;
    drop(lock);
    warn_if_noisy(&counts);
    if args.json {
        output::json(&FilterReport::from_filter(&Stored::from(counts), options.meta))?;
    }
    Ok(ExitCode::SUCCESS)
}
