//! `umbel net simulate`: tries filters in packets and routers on a network.

mod header;
mod loops;
mod routing;

use anyhow::Result;
use std::process::ExitCode;

/// Simulate filters in the packets and routers of a network of your own.
///
/// The network is an edge list (a line `A B [LENGTH]` for each link) or GraphML, recognised by its
/// contents. Reports have hops, bandwidth, memory and false alarms, each beside theory; the
/// deviation from theory is in standard errors, and should hardly ever exceed 4. --svg draws the
/// network and an example.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel net simulate loops --topology net.txt
  umbel net simulate routing --topology net.txt --svg routing.svg
  umbel net simulate header --topology net.graphml --json")]
pub struct Args {
    #[command(subcommand)]
    simulation: Simulation,
}

#[derive(clap::Subcommand)]
enum Simulation {
    Loops(loops::Args),
    Routing(routing::Args),
    Header(header::Args),
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.simulation {
        Simulation::Loops(args) => loops::run(args),
        Simulation::Routing(args) => routing::run(args),
        Simulation::Header(args) => header::run(args),
    }
}
