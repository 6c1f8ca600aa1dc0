//! `umbel map get`: looks up the values of keys.

use crate::args::headings;
use crate::filters::{Secrets, check_whole};
use crate::input::{KeyedInputArgs, Records, explain_swapped};
use crate::pipeline::Select;
use anyhow::Result;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::bloomier::CodeBook;
use umbel::file::Mapped;
use umbel::kind::Category;

/// Print each line whose key is in a map, followed by a tab and the value.
///
/// The value of a key that the map was built from is exact. An absent key gets a value nevertheless
/// at the rate that `umbel info` reports. Lines whose keys are certainly absent are left out. Lines
/// are printed in the order of the input with any number of threads. The exit code is 0 if a line
/// was selected, 1 if none was.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel map get countries.umbel --key 192.0.2.7
  umbel map get countries.umbel hosts.txt
  umbel map get -v countries.umbel hosts.txt       # hosts not in the map
  tail -f access.log | umbel map get -d ' ' -F 1 countries.umbel")]
pub struct Args {
    /// Map to query
    #[arg(value_name = "MAP")]
    map: PathBuf,

    /// Print the lines whose keys are certainly not in the map instead
    #[arg(short = 'v', long, help_heading = headings::SEARCH)]
    invert: bool,

    #[command(flatten)]
    input: KeyedInputArgs,

    #[command(flatten)]
    secrets: Secrets,

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
