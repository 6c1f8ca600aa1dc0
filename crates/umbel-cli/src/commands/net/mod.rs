//! `umbel net`: filters for packets.

mod attribute;
mod block;
mod flows;
mod record;
mod scan;

use anyhow::Result;
use std::process::ExitCode;

/// Ask about packets: captures in pcap and pcapng, from files or pipes, and addresses.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Record(record::Args),
    Attribute(attribute::Args),
    Block(Box<block::Args>),
    Flows(flows::Args),
    Scan(scan::Args),
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Record(args) => record::run(args),
        Command::Attribute(args) => attribute::run(args),
        Command::Block(args) => block::run(args),
        Command::Flows(args) => flows::run(args),
        Command::Scan(args) => scan::run(args),
    }
}
