//! `umbel shard create`: creates an empty sharded filter.

use super::sharded_filter::{MAX_SHARDS, ShardedFilter};
use crate::args::{headings, number};
use crate::remote::{self, Address, ConnectionArgs};
use crate::report::percent;
use crate::terminal::output;
use anyhow::Result;
use bstr::ByteSlice;
use std::io::IsTerminal;
use std::process::ExitCode;
use umbel::spec::plan;
use umbel::{Kind, Spec};

/// Create an empty sharded filter.
///
/// Each shard is a Bloom filter that grows: more lines than planned cost time, not correctness.
/// Sixteen shards per server spread them evenly enough. If a shard cannot be created, the others
/// are removed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel shard create redis://10.0.0.1:7000/seen -n 1e9 -p 0.1% --shards 48")]
pub struct Args {
    /// Name of the filter, such as redis://user:password@host:6379/name, on any server of the
    /// cluster
    #[arg(value_name = "ADDRESS", long_help = remote::HELP)]
    at: Address,

    /// Expected number of lines
    #[arg(short = 'n', long, value_name = "N", value_parser = number::count, help_heading = headings::FILTER)]
    capacity: u64,

    /// False-positive rate: the share of absent lines that the filter reports as present
    #[arg(
        short = 'p',
        long,
        value_name = "RATE",
        default_value = "1%",
        value_parser = number::rate,
        help_heading = headings::FILTER
    )]
    fpr: f64,

    /// Number of shards
    #[arg(
        long,
        value_name = "N",
        default_value_t = 16,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SHARDS)),
        help_heading = headings::FILTER
    )]
    shards: u32,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    // Lines are not spread evenly: five standard deviations more leave room in every shard.
    let mean = args.capacity as f64 / f64::from(args.shards);
    let capacity = (mean + 5.0 * mean.sqrt()).ceil() as u64;
    // Fail for an impossible filter before contacting a server, with the message of `umbel build`.
    plan(Kind::Scalable, &Spec::new(capacity, args.fpr)?)?;
    ShardedFilter::create(&args.connection.endpoint(&args.at)?, args.shards, capacity, args.fpr)?;
    if std::io::stderr().is_terminal() {
        let (name, shards, rate) = (args.at.key.as_bstr(), args.shards, percent(args.fpr));
        output::message(format_args!("{name}, {shards} shards for {capacity} lines each, rate {rate}"));
    }
    Ok(ExitCode::SUCCESS)
}
