//! `umbel parquet`: filters of the columns in Parquet files.

mod info;
mod which;

use anyhow::Result;
use std::process::ExitCode;

/// Find the Parquet files that may hold a value, by their filters.
///
/// Parquet files may have a Bloom filter for each column of each row group. `umbel parquet which`
/// queries these filters, and reads nothing else but the footers of the files. `umbel parquet info`
/// shows which columns have filters, and whether they are any good.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel parquet which -c customer 1042 orders/*.parquet
  umbel parquet info orders/*.parquet")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Which(which::Args),
    Info(info::Args),
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Which(args) => which::run(args),
        Command::Info(args) => info::run(args),
    }
}
