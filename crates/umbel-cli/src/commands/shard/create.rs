//! `umbel shard create`: creates an empty sharded filter.

use crate::args::{headings, number};
use crate::filters::Secrets;
use crate::remote::{
    self, Address, Client, Command, ConnectionArgs, NotCreated, Record, ShardedFilter, Value, command,
    refused, server_of,
};
use crate::report::percent;
use crate::terminal::output;
use anyhow::{Result, bail};
use bstr::ByteSlice;
use std::io::IsTerminal;
use std::process::ExitCode;
use umbel::hash::Strength;
use umbel::sharded::MAX_SHARDS;
use umbel::spec::plan;
use umbel::{Hasher, Kind, Spec};

/// Create an empty sharded filter.
///
/// Each shard is a Bloom filter that grows: more lines than planned cost time, not correctness.
/// Sixteen shards per server spread them evenly enough. If a shard cannot be created, the others
/// are removed.
///
/// A public hash of a line determines its shard, and the servers hash lines with the secret of
/// their modules. With --key-file, both hashes use the secret in the file. The modules must have
/// been loaded with the same file (KEY-FILE), and `add` and `check` need --key-file, too.
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
    secrets: Secrets,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    // Lines are not spread evenly: five standard deviations more leave room in every shard.
    let mean = args.capacity as f64 / f64::from(args.shards);
    let capacity = (mean + 5.0 * mean.sqrt()).ceil() as u64;
    // Fail for an impossible filter before contacting a server, with the message of `umbel build`.
    plan(Kind::Scalable, &Spec::new(capacity, args.fpr)?)?;
    let secret = args.secrets.single()?;
    if secret.as_ref().is_some_and(|secret| secret.id().strength != Strength::Keyed) {
        bail!("servers hash with keyed secrets: make a key file with `umbel key new FILE --hash keyed`");
    }
    let record = Record::new(args.shards, secret.as_ref().unwrap_or(&Hasher::default()));
    let (rate, room) = (format!("{:?}", args.fpr), capacity.to_string());
    let options = secret.map(|secret| vec!["SEED".to_owned(), format!("tag:{:016x}", secret.id().value)]);
    let reserve = |client: &mut Client, _: usize, key: &[u8]| {
        let reserve = command("BF.RESERVE").arg(key).args([&rate, &room]).args(options.iter().flatten());
        reserve_shard(client, &reserve, key).map_err(|error| NotCreated { is_begun: false, error })
    };
    ShardedFilter::create(&args.connection.endpoint(&args.at)?, record, reserve)?;
    if std::io::stderr().is_terminal() {
        let (name, shards, rate) = (args.at.key.as_bstr(), args.shards, percent(args.fpr));
        output::message(format_args!("{name}, {shards} shards for {capacity} lines each, rate {rate}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn reserve_shard(client: &mut Client, reserve: &Command, key: &[u8]) -> Result<()> {
    match client.call(reserve)? {
        Value::Error(error) => Err(refused(&server_of(key), &error)),
        _ => Ok(()),
    }
}
