//! `umbel shard`: one filter, spread over the servers of a cluster.

mod add;
mod check;
mod create;
mod delete;
mod info;
mod lines;
mod sharded_filter;

use anyhow::Result;
use std::process::ExitCode;

/// Spread one filter over a cluster of Redis or Valkey servers that have loaded umbel's module, and ask it as one.
///
/// A filter is one key, and a key is on one server. Here it is many keys, the shards, with hash tags that spread them over
/// the cluster; each line belongs to one of them. The rate is that of a shard, and memory and work are shared by all
/// servers. It works on a single server too, whose filter can so grow beyond what a key may take.
///
/// A shard that was deleted, has expired or was evicted takes its lines with it. The filter is refused from then on, since it
/// would deny lines that were added: keep its keys from eviction.
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
    Delete(delete::Args),
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Create(args) => create::run(args),
        Command::Add(args) => add::run(args),
        Command::Check(args) => check::run(args),
        Command::Info(args) => info::run(args),
        Command::Delete(args) => delete::run(args),
    }
}
