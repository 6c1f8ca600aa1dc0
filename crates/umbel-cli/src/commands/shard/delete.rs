//! `umbel shard delete`: deletes a sharded filter.

use crate::remote::{self, Address, ConnectionArgs, ShardedFilter};
use crate::terminal::output;
use anyhow::Result;
use bstr::ByteSlice;
use std::process::ExitCode;

/// Delete a sharded filter: all its shards, and the record of them.
///
/// The key is deleted only if it holds such a record. Missing shards are ignored, so this also
/// removes the remains of an interrupted create or delete.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel shard delete redis://10.0.0.1:7000/seen")]
pub struct Args {
    /// Filter, such as redis://host:6379/name, on any server of the cluster
    #[arg(value_name = "ADDRESS", long_help = remote::HELP)]
    at: Address,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let filter = ShardedFilter::find(&args.connection.endpoint(&args.at)?)?;
    let (removed, all, name) = (filter.delete()?, filter.len(), args.at.key.as_bstr());
    match all - removed {
        0 => output::text(format_args!("removed {name} and its {all} shards\n"))?,
        _ => output::text(format_args!(
            "removed {name} and {removed} of its {all} shards: the others were missing\n"
        ))?,
    }
    Ok(ExitCode::SUCCESS)
}
