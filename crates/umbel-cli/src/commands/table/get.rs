//! `umbel table get`: looks up the values of keys.

use crate::args::headings;
use crate::filters::LockArgs;
use crate::input::{KeyedInputArgs, Records};
use crate::maps::open_reader;
use crate::pipeline::Select;
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::Batch;
use umbel_text::tables::Reader;

/// Print each line whose key is in a store, followed by a tab and the value.
///
/// The values are those of the moment when the command starts. Lines are printed in the order of
/// the input with any number of threads; lines whose keys are not in the store are left out. The
/// exit code is 0 if a line was selected, 1 if none was.
///
/// The filters of the tables answer for most absent keys without a read. `umbel table stats` shows
/// how many reads they saved; a directory that cannot be written to is read all the same, without
/// counting.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel table get prices --key pear
  umbel table get prices shopping.txt
  umbel table get -v prices shopping.txt      # not in the store")]
pub struct Args {
    /// Directory of the store
    #[arg(value_name = "DIR")]
    store: PathBuf,

    #[command(flatten)]
    lock: LockArgs,

    /// Print the lines whose keys are not in the store instead
    #[arg(short = 'v', long, help_heading = headings::SEARCH)]
    invert: bool,

    #[command(flatten)]
    input: KeyedInputArgs,

    /// Print only the number of selected lines
    #[arg(short, long, help_heading = headings::OUTPUT)]
    count: bool,

    /// Print nothing and stop at the first selected line; only the exit code matters
    #[arg(short, long, conflicts_with = "count", help_heading = headings::OUTPUT)]
    quiet: bool,

    /// Print each line as soon as it is found, not only when the input pauses
    #[arg(long, help_heading = headings::OUTPUT)]
    line_buffered: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let reader = open_reader(&args.store, args.lock)?;
    let Args { line_buffered, count, quiet, .. } = *args;
    let select = Select { line_buffered, count, quiet };
    let found = select.run(&args.input, |records| query(args, &reader, records), || Ok(()))?;
    // The answers stand even if the folder is read-only; `stats` reports damaged counts.
    let _ = reader.record(reader.counts());
    Ok(found)
}

/// Returns the number of selected lines, and their output.
fn query(args: &Args, reader: &Reader, records: &Records) -> Result<(u64, Vec<u8>)> {
    let (mut count, mut out) = (0, Vec::new());
    let keys = records.keys()?;
    for key in 0..keys.len() {
        let value = keys.with_bytes(key, |bytes| reader.get(bytes))?;
        if value.is_some() == args.invert {
            continue;
        }
        count += 1;
        match value {
            _ if args.quiet || args.count => {}
            Some(value) => {
                args.input.print_with(records, key, &mut out, |out| out.extend_from_slice(&value));
            }
            None => records.print_lines(key..key + 1, &mut out),
        }
    }
    Ok((count, out))
}
