//! `umbel add`: adds lines to a filter.

use crate::args::headings;
use crate::filters::{
    LockArgs, ParallelFill, Secrets, check_not_fixed, check_plain, report_shards, warn_if_overfull,
    warn_if_overfull_shards,
};
use crate::input::KeyedInputArgs;
use crate::pipeline::{self, dedup};
use crate::report::FilterReport;
use crate::terminal::output::{self, Out, is_broken_pipe};
use anyhow::{Result, bail};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::file;
use umbel::key::Hashed;
use umbel::kind::Category;
use umbel::sharded::ShardedUpdate;

/// Add lines to a filter.
///
/// The file is replaced as a whole once all lines have been read. Until then, and after any error,
/// it is unchanged. Processes that add to the same filter wait for each other. A warning is printed
/// when the filter holds more keys than it was sized for.
///
/// A filter in shards is given by its directory. Only the shards that get keys are loaded and
/// replaced: all of them or none, even if the process is killed.
///
/// Unless the filter was built with --key-file, it has a public hash: anyone can craft colliding
/// keys, which the filter then reports as present, and --new does not print. Build it with
/// --key-file for hostile input.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel add seen.umbel --key banana
  umbel add seen.umbel today.txt
  umbel add --new seen.umbel today.txt > new.txt      # lines not seen before
  umbel add seen.shards today.txt")]
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
    if args.filter.is_dir() {
        return args.add_to_shards();
    }
    args.input.check_not_output(&args.filter)?;
    let lock = args.lock.lock(&args.filter)?;
    check_plain(&args.filter)?;
    let mut loaded = args.secrets.load(&args.filter, Category::Set)?;
    check_not_fixed(&args.filter, loaded.filter.kind())?;
    let options = loaded.options();
    loaded.filter = if args.new {
        let out = Out::new(args.line_buffered)?;
        args.unless_closed(dedup::print_new(&args.input, loaded.filter, out, |_, _, _| Ok(())))?.0
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

impl Args {
    /// Adds lines to a filter in shards.
    fn add_to_shards(&self) -> Result<ExitCode> {
        // An error in the options or the filter is reported before the lines are read.
        drop(self.secrets.open_shards(&self.filter)?);
        let update = ShardedUpdate::begin(self.lock.lock_shards(&self.filter)?, self.secrets.ring()?)?;
        let threads = self.input.threads();
        if self.new {
            self.unless_closed(dedup::print_inserted(
                &self.input,
                threads,
                Out::new(self.line_buffered)?,
                |records| Ok(update.hasher().digest_batch(&records.keys()?)),
                |digests| Ok(update.insert_batch_new(&Hashed(&digests))?.as_words().to_vec()),
            ))?;
        } else {
            pipeline::run(
                self.input.open()?,
                threads,
                |_, records| Ok(update.insert_batch(&records.keys()?)?),
                |(), _| Ok(ControlFlow::Continue(())),
            )?;
        }
        update.commit()?;
        warn_if_overfull_shards(&self.filter, &self.secrets);
        if self.json {
            output::json(&report_shards(&self.filter)?)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Explains that nothing is added if the reader of the output has closed it: lines that were not
    /// read should be new again next time.
    fn unless_closed<T>(&self, printed: Result<T>) -> Result<T> {
        match printed {
            Err(error) if is_broken_pipe(&error) => {
                bail!(
                    "{} stays as it was, because the output was closed before the end",
                    self.filter.display()
                )
            }
            printed => printed,
        }
    }
}
