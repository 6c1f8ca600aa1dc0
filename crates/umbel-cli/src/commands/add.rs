//! `umbel add`: more lines into a filter.

use crate::filters::{FileLock, ParallelFill, Secrets, check_not_fixed, check_plain, warn_if_overfull};
use crate::input::{InputArgs, check_not_output};
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
/// The file is replaced as a whole when all lines have been read; until then, and if anything goes wrong before, it stays as it
/// was. Two processes that add to the same filter wait for each other. Says so when the filter comes to hold more keys
/// than it was made for.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel add seen.umbel today.txt
  crawl | umbel add --new seen.umbel | process        only what was not there before")]
pub struct Args {
    /// The filter to add to
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Print the lines that were not there before, and only those
    #[arg(long, conflicts_with = "json")]
    new: bool,

    /// Show each new line as soon as it is found; automatic when the input has nothing more at the moment
    #[arg(long, requires = "new")]
    line_buffered: bool,

    /// Print the facts of the filter as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    secrets: Secrets,

    #[command(flatten)]
    input: InputArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    check_not_output(args.input.files(), &args.filter)?;
    let lock = FileLock::acquire(&args.filter)?;
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
