//! `umbel net`: filters for packets.

mod capture;
mod flows;

use anyhow::Result;
use std::process::ExitCode;

/// Ask filters about packets, addresses and flows.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Flows(flows::Args),
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Flows(args) => flows::run(args),
    }
}
