//! `umbel shard`: one filter, spread over the servers of a cluster.

mod add;
mod check;
mod create;
mod info;
mod spread;

use anyhow::Result;
use std::process::ExitCode;

/// Spread one filter over a cluster of Redis or Valkey servers that have loaded umbel's module, and ask it as one.
///
/// A filter is one key, and a key is on one server. Here it is many keys, the shards, with hash tags that spread them over
/// the cluster; each line belongs to one of them. The rate is that of a shard, and memory and work are shared by all
/// servers. It works on a single server too, whose filter can so grow beyond what a key may take.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Create(create::Args),
    Add(add::Args),
    Check(check::Args),
    Info(info::Args),
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Create(args) => create::run(args),
        Command::Add(args) => add::run(args),
        Command::Check(args) => check::run(args),
        Command::Info(args) => info::run(args),
    }
}
