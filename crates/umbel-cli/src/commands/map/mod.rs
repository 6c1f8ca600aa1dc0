//! `umbel map`: values for keys.

mod build;
mod get;
mod set;

use anyhow::Result;
use std::process::ExitCode;

/// Build and query maps, which store a value for each key.
///
/// A map returns the exact value of every key that it was built from, without storing the keys:
/// with five different values, a key takes about 10 bits. An absent key has no value, except that
/// at the map's rate it gets the value of another key.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel map build -o countries.umbel addresses.tsv    # 192.0.2.7<tab>NL
  umbel map get countries.umbel hosts.txt")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Build(Box<build::Args>),
    Get(get::Args),
    Set(set::Args),
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Build(args) => build::run(args),
        Command::Get(args) => get::run(args),
        Command::Set(args) => set::run(args),
    }
}
