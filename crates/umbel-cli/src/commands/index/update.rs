//! `umbel index update`: what has changed since an index was made.

use super::report_made;
use crate::filters::FileLock;
use crate::terminal::{Progress, output};
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel_text::index::{self, Options};

/// Bring an index up to date: read what is new or has changed, drop what has gone.
///
/// A file has changed if its size, its inode, its time of modification or its time of change has. The new index is the
/// same that `umbel index build` would make.
#[derive(clap::Args)]
pub struct Args {
    /// The index
    #[arg(value_name = "INDEX")]
    index: PathBuf,

    /// Say nothing about what was done
    #[arg(short, long)]
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
