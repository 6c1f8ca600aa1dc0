//! `umbel map`: values for keys.

mod build;
mod get;
mod set;

use anyhow::Result;
use std::process::ExitCode;

/// Build and ask maps, which give a value for each key.
///
/// A map gives every key that it was built from exactly its value, without holding the keys: five colours take about 10
/// bits for each key. A key that is not in the map gets no value, except at the map's rate, when it gets one of the others'.
#[derive(clap::Args)]
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
