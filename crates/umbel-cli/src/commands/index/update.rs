//! `umbel index update`: brings an index up to date.

use super::report_made;
use crate::args::headings;
use crate::filters::FileLock;
use crate::terminal::{Progress, output};
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel_text::index::{self, Options};

/// Update an index: read new and changed files, drop deleted ones.
///
/// A file counts as changed if its size, inode, modification time or change time differs. The new
/// index is the same that `umbel index build` would write.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel index update logs.idx")]
pub struct Args {
    /// Index to update
    #[arg(value_name = "INDEX")]
    index: PathBuf,

    /// Print no summary
    #[arg(short, long, help_heading = headings::OUTPUT)]
    quiet: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let _lock = FileLock::acquire(&args.index)?;
    let options = Options::default();
    let progress = Progress::of_bytes(options.bytes.clone(), None);
    let made = index::update(&args.index, &options);
    progress.finish();
    let made = made?;
    if !args.quiet {
        let (read, kept, dropped) = (made.read, made.files - made.read, made.dropped);
        output::text(format_args!("{read} read, {kept} kept, {dropped} dropped\n"))?;
    }
    Ok(report_made(&made))
}
