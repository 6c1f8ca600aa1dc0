//! `umbel shard add`: adds lines to a sharded filter.

use super::lines;
use crate::filters::Secrets;
use crate::input::InputArgs;
use crate::pipeline;
use crate::remote::{self, Address, ConnectionArgs, ShardedFilter};
use anyhow::Result;
use std::ops::ControlFlow;
use std::process::ExitCode;

/// Add lines to a sharded filter.
///
/// A filter that has lost a shard is an error. After an interruption, start again from the
/// beginning: adding a line twice changes nothing.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  zcat access.log.gz | umbel shard add redis://10.0.0.1:7000/seen")]
pub struct Args {
    /// Filter, such as redis://host:6379/name, on any server of the cluster
    #[arg(value_name = "ADDRESS", long_help = remote::HELP)]
    to: Address,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    secrets: Secrets,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let filter = ShardedFilter::open(&args.connection.endpoint(&args.to)?)?;
    let hasher = filter.hasher(args.secrets.ring()?)?;
    let add = |_, records: &crate::input::Records<'_>| {
        let keys = records.keys()?;
        let lines: Vec<&[u8]> = (0..records.key_count()).filter_map(|i| keys.get(i)).collect();
        lines::add(&filter, &hasher, &lines)
    };
    pipeline::run(args.input.open()?, args.input.threads(), add, |(), _| Ok(ControlFlow::Continue(())))?;
    Ok(ExitCode::SUCCESS)
}
