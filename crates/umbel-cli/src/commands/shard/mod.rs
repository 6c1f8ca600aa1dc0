//! `umbel shard`: one filter, spread over the servers of a cluster.

mod add;
mod check;
mod create;
mod delete;
mod info;
mod lines;

use anyhow::Result;
use std::process::ExitCode;

/// Spread one filter over a cluster of Redis or Valkey servers.
///
/// A filter is one key, and a key is on one server. A sharded filter consists of many keys, the
/// shards, with hash tags that spread them over the cluster; each line belongs to one shard. The
/// rate is that of a shard, and all servers share the memory and the work. A sharded filter also
/// works on a single server, where it can grow beyond the maximum size of a key. The servers need
/// umbel's module.
///
/// `umbel push` sends a filter from the folder that `umbel build --shards` makes. On the servers, it
/// is used like a filter that `create` makes.
///
/// If a shard is deleted, expires or is evicted, its lines are lost. The filter then returns
/// errors, since it would deny lines that were added: protect its keys from eviction.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel shard create redis://10.0.0.1:7000/seen -n 1e9 -p 0.1% --shards 48
  umbel shard add redis://10.0.0.1:7000/seen seen.txt
  umbel shard check redis://10.0.0.1:7000/seen new.txt")]
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
