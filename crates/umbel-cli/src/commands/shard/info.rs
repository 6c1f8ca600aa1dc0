//! `umbel shard info`: describes a sharded filter.

use crate::remote::{self, Address, ConnectionArgs, ShardedFilter, Value};
use crate::terminal::output;
use anyhow::{Result, bail};
use std::process::ExitCode;

/// Show the shards, lines, capacity and memory of a sharded filter.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel shard info redis://10.0.0.1:7000/seen")]
pub struct Args {
    /// Filter, such as redis://host:6379/name, on any server of the cluster
    #[arg(value_name = "ADDRESS", long_help = remote::HELP)]
    from: Address,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let filter = ShardedFilter::open(&args.connection.endpoint(&args.from)?)?;
    let (mut items, mut capacity, mut bytes, mut fullest) = (0u64, 0u64, 0u64, 0f64);
    for shard in 0..filter.len() {
        let field = |name: &str| -> Result<u64> {
            match filter.call(shard, "BF.INFO", &[name])? {
                Value::Array(numbers) => match numbers[..] {
                    [Value::Integer(number @ 0..)] => Ok(number.unsigned_abs()),
                    _ => bail!("a server answers with other values than a number, which is not understood"),
                },
                other => bail!("a server answers with {other}, which is not understood"),
            }
        };
        let (of_shard, room) = (field("ITEMS")?, field("CAPACITY")?);
        fullest = fullest.max(of_shard as f64 / room as f64);
        items = items.saturating_add(of_shard);
        capacity = capacity.saturating_add(room);
        bytes = bytes.saturating_add(field("SIZE")?);
    }
    output::text(format_args!(
        "shards    {}\nlines     {items}\ncapacity  {capacity}, the fullest shard at {:.1} %\nmemory    {}\n",
        filter.len(),
        100.0 * fullest,
        indicatif::BinaryBytes(bytes),
    ))?;
    Ok(ExitCode::SUCCESS)
}
