//! `umbel shard check`: prints the lines that may be in a sharded filter.

use super::lines;
use crate::args::headings;
use crate::filters::Secrets;
use crate::input::{InputArgs, Records};
use crate::pipeline::Select;
use crate::remote::{self, Address, ConnectionArgs, ShardedFilter};
use anyhow::Result;
use std::process::ExitCode;
use umbel::Hasher;

/// Print the lines that may be in a sharded filter.
///
/// Lines are printed in the order of the input. The exit code is 0 if a line was printed, 1 if none
/// was, 2 after an error, such as a lost shard.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel shard check redis://10.0.0.1:7000/seen new.txt
  umbel shard check -v redis://10.0.0.1:7000/seen < new.txt > unseen.txt")]
pub struct Args {
    /// Filter, such as redis://host:6379/name, on any server of the cluster
    #[arg(value_name = "ADDRESS", long_help = remote::HELP)]
    from: Address,

    /// Print the lines that are certainly not in the filter instead
    #[arg(short = 'v', long, help_heading = headings::SEARCH)]
    invert_match: bool,

    #[command(flatten)]
    input: InputArgs,

    /// Print only the number of selected lines
    #[arg(short = 'c', long, help_heading = headings::OUTPUT)]
    count: bool,

    /// Print nothing; only the exit code matters
    #[arg(short = 'q', long, help_heading = headings::OUTPUT)]
    quiet: bool,

    #[command(flatten)]
    secrets: Secrets,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let filter = ShardedFilter::open(&args.connection.endpoint(&args.from)?)?;
    let hasher = filter.hasher(args.secrets.ring()?)?;
    Select { line_buffered: false, count: args.count, quiet: args.quiet }.run(
        &args.input,
        |records| select(args, &filter, &hasher, records),
        || Ok(()),
    )
}

/// Returns the number of selected lines, and these lines.
fn select(args: &Args, filter: &ShardedFilter, hasher: &Hasher, records: &Records) -> Result<(u64, Vec<u8>)> {
    let keys = records.keys()?;
    let lines: Vec<&[u8]> = (0..records.key_count()).filter_map(|i| keys.get(i)).collect();
    let (mut selected, mut out) = (0, Vec::new());
    for (key, found) in lines::contains(filter, hasher, &lines)?.into_iter().enumerate() {
        if found != args.invert_match {
            selected += 1;
            if !args.count && !args.quiet {
                records.print_lines(key..key + 1, &mut out);
            }
        }
    }
    Ok((selected, out))
}
