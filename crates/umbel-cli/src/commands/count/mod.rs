//! `umbel count`: how often keys came.

mod add;
mod build;
mod get;

use anyhow::Result;
use std::process::ExitCode;

/// Count repeated lines in a few bits for each, and ask how often one came.
///
/// A multiset tells of any key about how often it was recorded, with the limits between which the number lies in 95 of 100
/// cases. It is for streams in which some lines come once and others a million times: it never overflows, and keeps no keys.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Build(Box<build::Args>),
    Add(add::Args),
    Get(get::Args),
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Build(args) => build::run(args),
        Command::Add(args) => add::run(args),
        Command::Get(args) => get::run(args),
    }
}
