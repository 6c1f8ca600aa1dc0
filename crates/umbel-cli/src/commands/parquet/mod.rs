//! `umbel parquet`: filters of the columns in Parquet files.

mod add_filter;
mod index;
mod info;
mod which;
mod which_index;

use anyhow::Result;
use std::process::ExitCode;

/// Find the Parquet files that may hold a value, by their filters.
///
/// Parquet files may have a Bloom filter for each column of each row group. `umbel parquet which`
/// queries these filters, and reads nothing else but the footers of the files. `umbel parquet info`
/// shows which columns have filters, and whether they are any good. `umbel parquet add-filter` adds a
/// filter to a file that exists, and `umbel parquet index` makes one file that answers for thousands
/// without opening any.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel parquet which -c customer 1042 orders/*.parquet
  umbel parquet info orders/*.parquet
  umbel parquet add-filter -c country orders.parquet -o new.parquet
  umbel parquet index -c customer orders -o customer.idx")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Which(which::Args),
    Info(info::Args),
    Index(index::Args),
    AddFilter(add_filter::Args),
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Which(args) => which::run(args),
        Command::Info(args) => info::run(args),
        Command::Index(args) => index::run(args),
        Command::AddFilter(args) => add_filter::run(args),
    }
}
