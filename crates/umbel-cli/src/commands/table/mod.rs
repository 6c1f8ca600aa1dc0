//! `umbel table`: keys and values in sorted tables on disk.

mod delete;
mod get;
mod merge;
mod put;
mod scan;
mod stats;

use anyhow::Result;
use std::process::ExitCode;

/// Store keys and values on disk, in sorted tables with filters.
///
/// A store is a directory of sorted tables that never change. Each `put` or `delete` adds a table,
/// and newer tables hide older ones. A lookup queries the filter of each table and reads only those
/// that may have the key, one block each. Values are exact: a false yes of a filter costs a read in
/// vain. After a change, the newest tables are merged if there are more than eight. Filters are hashed
/// with a secret in the store's file filters.key, so that nobody can craft keys that they let pass.
///
/// This is the design of Bigtable, Cassandra and LevelDB in miniature. For data that you cannot
/// lose, or for many writers, take RocksDB, LMDB or SQLite.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel table put prices prices.tsv           # apple<tab>0.80
  umbel table get prices shopping.txt
  umbel table scan prices | less")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Put(put::Args),
    Get(get::Args),
    Scan(scan::Args),
    Delete(delete::Args),
    Merge(merge::Args),
    Stats(stats::Args),
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Put(args) => put::run(args),
        Command::Get(args) => get::run(args),
        Command::Scan(args) => scan::run(args),
        Command::Delete(args) => delete::run(args),
        Command::Merge(args) => merge::run(args),
        Command::Stats(args) => stats::run(args),
    }
}
