//! `umbel shard check`: which lines may be in a filter in shards.

use super::lines;
use super::sharded_filter::ShardedFilter;
use crate::input::{InputArgs, Records};
use crate::pipeline::Select;
use crate::remote::{self, Address, TlsArgs};
use anyhow::Result;
use std::process::ExitCode;

/// Print the lines that may be in a filter in shards; with -v those that certainly are not.
///
/// Lines come out in the order of the input. Exit code 0 if some were printed, 1 if none, 2 if something went wrong: a
/// filter that has lost a shard gives no answers.
#[derive(clap::Args)]
#[command(after_help = "Example:
  umbel shard check -v redis://10.0.0.1:7000/seen < candidates.txt > new.txt")]
pub struct Args {
    /// The filter, as in redis://host:6379/name; any server of the cluster
    #[arg(value_name = "ADDRESS", long_help = remote::HELP)]
    from: Address,

    /// Print the lines that are certainly not in it
    #[arg(short = 'v', long)]
    invert_match: bool,

    /// Print only how many there are
    #[arg(short = 'c', long)]
    count: bool,

    /// Print nothing: the exit code tells
    #[arg(short = 'q', long)]
    quiet: bool,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    tls: TlsArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let filter = ShardedFilter::open(&args.tls.apply(&args.from)?)?;
    Select { line_buffered: false, count: args.count, quiet: args.quiet }.run(
        &args.input,
        |records| select(args, &filter, records),
        || Ok(()),
    )
}

/// Returns the number of selected lines, and these lines.
fn select(args: &Args, filter: &ShardedFilter, records: &Records) -> Result<(u64, Vec<u8>)> {
    let keys = records.keys()?;
    let lines: Vec<&[u8]> = (0..records.key_count()).filter_map(|i| keys.get(i)).collect();
    let (mut selected, mut out) = (0, Vec::new());
    for (key, found) in lines::contains(filter, &lines)?.into_iter().enumerate() {
        if found != args.invert_match {
            selected += 1;
            if !args.count && !args.quiet {
                records.print_lines(key..key + 1, &mut out);
            }
        }
    }
    Ok((selected, out))
}
