//! `umbel net trace`: finds the routers that a packet came through.

mod ask;
mod info;
mod record;

use anyhow::Result;
use std::process::ExitCode;

/// Find the routers that a packet came through, even if its sender is forged.
///
/// Routers record digests of the packets that they forward, in Bloom filters, one for each period of
/// time. Later, a victim with a single packet queries one router after the other, upstream from its
/// own.
/// The packets themselves are not stored and cannot be restored. This is the source path isolation
/// engine, SPIE, of Snoeren et al.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel net trace record --router R1 -o spie r1.pcap
  umbel net trace ask spie --packet attack.pcap --topology net.txt --at R4
  umbel net trace info spie")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Record(record::Args),
    Ask(ask::Args),
    Info(info::Args),
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Record(args) => record::run(args),
        Command::Ask(args) => ask::run(args),
        Command::Info(args) => info::run(args),
    }
}
