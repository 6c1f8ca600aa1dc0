//! `umbel index update`: brings an index up to date.

use super::report_made;
use crate::args::headings;
use crate::filters::LockArgs;
use crate::input::LineLimit;
use crate::terminal::{Progress, output};
use anyhow::{Result, bail};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel_text::index::{self, Options};

/// Update an index: read new and changed files, drop deleted ones.
///
/// A file counts as changed if its size, inode, modification time or change time differs. The new
/// index is the same that `umbel index build` would write. If a directory cannot be listed, or is
/// empty like that of a disk that is not mounted, its files stay in the index; the exit code is 2.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel index update logs.idx")]
pub struct Args {
    /// Index to update
    #[arg(value_name = "INDEX")]
    index: PathBuf,

    #[command(flatten)]
    max_line: LineLimit,

    /// Print no summary
    #[arg(short, long, help_heading = headings::OUTPUT)]
    quiet: bool,

    #[command(flatten)]
    lock: LockArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    check_index(&args.index)?;
    let _lock = args.lock.lock(&args.index)?;
    let options = Options { max_line: Some(args.max_line.bytes()), ..Options::default() };
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

/// Fails with a hint if a directory was named instead of its index, or the index does not exist.
fn check_index(index: &Path) -> Result<()> {
    let shown = index.display();
    if index.is_dir() {
        match index::default_index(index).filter(|beside| beside.exists()) {
            Some(beside) => {
                bail!(
                    "{shown} is a directory: its index is {0}, as in `umbel index update {0}`",
                    beside.display()
                )
            }
            None => bail!("{shown} is a directory without an index: `umbel index build {shown}` makes one"),
        }
    }
    // An error other than that there is no file is reported when it is opened.
    if std::fs::symlink_metadata(index).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        let directory = index.with_extension("");
        let hint = match directory.is_dir() && index.extension().is_some_and(|extension| extension == "idx") {
            true => format!("`umbel index build {}` makes one", directory.display()),
            false => "`umbel index build` makes one".to_string(),
        };
        bail!("there is no index {shown}: {hint}");
    }
    Ok(())
}
