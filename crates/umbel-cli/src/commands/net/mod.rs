//! `umbel net`: filters for packets.

mod attribute;
mod block;
mod flows;
mod record;
mod scan;
mod simulate;
mod trace;

use anyhow::Result;
use std::process::ExitCode;

/// Analyse, trace and block packets, and simulate networks.
///
/// Captures are in pcap or pcapng format, from files or pipes.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel net flows capture.pcap
  umbel net record capture.pcap -o store
  umbel net attribute store --excerpt sentence.txt
  umbel net trace ask spie --packet attack.pcap --topology net.txt --at R4")]
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
    Simulate(simulate::Args),
    Trace(trace::Args),
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Record(args) => record::run(args),
        Command::Attribute(args) => attribute::run(args),
        Command::Block(args) => block::run(args),
        Command::Flows(args) => flows::run(args),
        Command::Scan(args) => scan::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Trace(args) => trace::run(args),
    }
}
