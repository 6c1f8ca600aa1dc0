//! `umbel add`: adds lines to a filter.

use crate::args::headings;
use crate::filters::{LockArgs, ParallelFill, Secrets, check_not_fixed, check_plain, warn_if_overfull};
use crate::input::KeyedInputArgs;
use crate::pipeline::dedup;
use crate::report::FilterReport;
use crate::terminal::output::{self, Out, is_broken_pipe};
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::file;
use umbel::kind::Category;

/// Add lines to a filter.
///
/// The file is replaced as a whole once all lines have been read. Until then, and after any error,
/// it is unchanged. Processes that add to the same filter wait for each other. A warning is printed
/// when the filter holds more keys than it was sized for.
///
/// Unless the filter was built with --key-file, it has a public hash: anyone can craft colliding
/// keys, which the filter then reports as present, and --new does not print. Build it with
/// --key-file for hostile input.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel add seen.umbel --key banana
  umbel add seen.umbel today.txt
  umbel add --new seen.umbel today.txt > new.txt      # lines not seen before")]
pub struct Args {
    /// Filter to add to
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    #[command(flatten)]
    input: KeyedInputArgs,

    #[command(flatten)]
    secrets: Secrets,

    #[command(flatten)]
    lock: LockArgs,

    /// Print the lines that were not in the filter before
    #[arg(long, conflicts_with = "json", help_heading = headings::OUTPUT)]
    new: bool,

    /// Print each new line as soon as it is found, not only when the input pauses
    #[arg(long, requires = "new", help_heading = headings::OUTPUT)]
    line_buffered: bool,

    /// Print a description of the filter as JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    args.input.check_not_output(&args.filter)?;
    let lock = args.lock.lock(&args.filter)?;
    check_plain(&args.filter)?;
    let mut loaded = args.secrets.load(&args.filter, Category::Set)?;
    check_not_fixed(&args.filter, loaded.filter.kind())?;
    let options = loaded.options();
    loaded.filter = if args.new {
        let out = Out::new(args.line_buffered)?;
        match dedup::print_new(&args.input, loaded.filter, out, |_, _, _| Ok(())) {
            // Lines that were not read should be new again next time.
            Err(error) if is_broken_pipe(&error) => {
                bail!(
                    "{} stays as it was, because the output was closed before the end",
                    args.filter.display()
                )
            }
            result => result?.0,
        }
    } else {
        ParallelFill::filled(loaded.filter, &args.input)?
    };
    file::save(&args.filter, &loaded.filter, &options)?;
    drop(lock);
    warn_if_overfull(&loaded.filter);
    if args.json {
        output::json(&FilterReport::from_filter(&loaded.filter, options.meta))?;
    }
    Ok(ExitCode::SUCCESS)
}
