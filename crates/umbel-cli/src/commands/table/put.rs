//! `umbel table put`: sets the values of keys.

use crate::args::{headings, number};
use crate::filters::LockArgs;
use crate::input::PairArgs;
use crate::maps::{open_store, read_changes, write_changes};
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;

/// Set the values of keys, from lines with a key, a tab and a value.
///
/// The value is the rest of the line after the first tab, and may be empty; the last line of a key
/// counts. All pairs are held in memory, and written as one table when the input ends: all of them,
/// or after an error none. They are on disk when the command ends. The store is created if it does
/// not exist.
///
/// Tables are merged if there are more than eight: two neighbours, and each next older one that is
/// at most twice as large as those before it, where that rewrites the fewest bytes for each table
/// that goes away. A merge holds the new table in memory.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel table put prices prices.tsv           # apple<tab>0.80
  printf 'pear\\t1.20\\n' | umbel table put prices
  umbel table put -d ' ' hits access.log.gz")]
pub struct Args {
    /// Directory of the store
    #[arg(value_name = "DIR")]
    store: PathBuf,

    #[command(flatten)]
    lock: LockArgs,

    /// Share of absent keys for which a table is read in vain [default: 1%]
    #[arg(short = 'p', long, value_name = "RATE", value_parser = number::rate, help_heading = headings::FILTER)]
    fpr: Option<f64>,

    #[command(flatten)]
    input: PairArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    // Read everything first: the store is locked only while it is written.
    let changes = read_changes(&args.input)?;
    write_changes(&mut open_store(&args.store, args.fpr, true, args.lock)?, changes)?;
    Ok(ExitCode::SUCCESS)
}
