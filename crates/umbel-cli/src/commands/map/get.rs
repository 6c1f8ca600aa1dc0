//! `umbel map get`: the values of keys.

use crate::filters::{Secrets, check_whole};
use crate::input::{InputArgs, Records, explain_swapped};
use crate::pipeline::Select;
use anyhow::Result;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::bloomier::CodeBook;
use umbel::file::Mapped;
use umbel::kind::Category;

/// Print the value of each key that has one, after its line and a tab.
///
/// Lines come out in the order of the input, whatever the number of threads; one whose key is certainly not in the map is
/// left out. The value of a key that the map was built from is exact; a key that it was not built from gets one all the
/// same with the rate that `umbel info` tells. Exit code 0 if a line was selected, 1 if none.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel map get countries.umbel hosts.txt
  umbel map get -v countries.umbel hosts.txt                hosts that are certainly not in the map
  tail -f access.log | umbel map get -d ' ' -F 1 countries.umbel")]
pub struct Args {
    /// The map to ask
    #[arg(value_name = "MAP")]
    map: PathBuf,

    /// Print the lines whose keys are certainly not in the map instead
    #[arg(short = 'v', long)]
    invert: bool,

    /// Print only how many lines there are
    #[arg(short, long)]
    count: bool,

    /// Print nothing; stop at the first line and tell by the exit code
    #[arg(short, long, conflicts_with = "count")]
    quiet: bool,

    /// Show each line as soon as it is found; automatic when the input has nothing more at the moment
    #[arg(long)]
    line_buffered: bool,

    #[command(flatten)]
    secrets: Secrets,

    #[command(flatten)]
    input: InputArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let map = args
        .secrets
        .map(&args.map, Category::Map)
        .map_err(|error| explain_swapped(error, "map get MAP", &args.map, args.input.files()))?;
    let book = map.book()?;
    let Args { line_buffered, count, quiet, .. } = *args;
    Select { line_buffered, count, quiet }.run(
        &args.input,
        |records| query(args, &map, book, records),
        || check_whole(&map, &args.map),
    )
}

/// Returns the number of selected lines, and their output.
fn query(args: &Args, map: &Mapped, book: Option<&CodeBook>, records: &Records) -> Result<(u64, Vec<u8>)> {
    let values = map.get_batch(&records.keys()?)?;
    let count = values.iter().filter(|value| value.is_some() != args.invert).count() as u64;
    let mut out = Vec::new();
    if args.quiet || args.count {
        return Ok((count, out));
    }
    for (key, value) in values.iter().enumerate() {
        match value {
            Some(number) if !args.invert => {
                args.input.print_with(records, key, &mut out, |out| match book {
                    Some(book) => out.extend_from_slice(&book.get(*number).unwrap_or_default()),
                    // Writing to memory cannot fail.
                    None => drop(write!(out, "{number}")),
                });
            }
            None if args.invert => records.print_lines(key..key + 1, &mut out),
            _ => {}
        }
    }
    Ok((count, out))
}
