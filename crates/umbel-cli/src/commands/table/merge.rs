//! `umbel table merge`: merges all tables of a store into one.

use crate::args::{headings, number};
use crate::filters::LockArgs;
use crate::maps::open_store;
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;

/// Merge all tables of a store into one.
///
/// The new table has the newest value of each key; older values and deleted keys are dropped. It is
/// written completely before the old tables are removed, and is held in memory until then. Lookups
/// are faster afterwards, since they query one filter only. A store need not be merged by hand:
/// changes keep the number of tables at eight or below.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel table merge prices
  umbel table merge -p 0.1% prices            # with a stricter filter")]
pub struct Args {
    /// Directory of the store
    #[arg(value_name = "DIR")]
    store: PathBuf,

    #[command(flatten)]
    lock: LockArgs,

    /// Share of absent keys for which the table is read in vain [default: 1%]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = number::rate, help_heading = headings::FILTER)]
    fpr: Option<f64>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut store = open_store(&args.store, args.fpr, false, args.lock)?;
    store.flush()?;
    let tables = store.tables().len();
    if tables > 0 {
        store.merge(0..tables)?;
    }
    Ok(ExitCode::SUCCESS)
}
