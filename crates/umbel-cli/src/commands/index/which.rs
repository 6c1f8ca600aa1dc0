//! `umbel index which`: lists the files that may contain a word.

use crate::args::headings;
use crate::documents::report_unreadable;
use crate::terminal::exit::{FAILED, found};
use crate::terminal::output::{self, Out};
use anyhow::{Result, bail};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel_text::index::{Index, Look};

/// List the files that may contain a word; the others certainly do not.
///
/// With several words, lists the files that may contain all of them. A file that is new or has
/// changed since the index was built may contain anything, and is listed. Case is ignored.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel index which logs.idx timeout
  umbel index which --any logs.idx timeout refused")]
pub struct Args {
    /// Index to query
    #[arg(value_name = "INDEX")]
    index: PathBuf,

    /// Words; characters other than letters, digits and underscores separate them
    #[arg(value_name = "WORD", required = true)]
    words: Vec<String>,

    /// List files that may contain any of the words instead of all
    #[arg(long, help_heading = headings::SEARCH)]
    any: bool,

    /// Find the words inside other words too; needs an index of substrings
    #[arg(short, long, help_heading = headings::SEARCH)]
    substrings: bool,

    /// Do not check whether files have changed since
    #[arg(long, help_heading = headings::SEARCH)]
    offline: bool,

    /// End names with a zero byte instead of a newline
    #[arg(short = '0', long, help_heading = headings::OUTPUT)]
    null: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let index = Index::open(&args.index)?;
    let grams = index.text()?.grams;
    if args.substrings && grams.is_none() {
        bail!(
            "{} knows whole words only: build it with `umbel index build --substrings`",
            args.index.display()
        );
    }
    let look = Look { whole_words: !args.substrings, ignore_case: true, ascii: false };
    let query = if args.any { index.any_of(&args.words, look) } else { index.all_of(&args.words, look) };
    if !query.is_decided() {
        output::warn(match grams {
            Some(length) if args.substrings => {
                format!("the index cannot tell: it needs {length} bytes in a row, so every file may hold it")
            }
            _ => "the index cannot tell: there is no word, so every file may hold it".to_string(),
        });
    }
    let (names, failed) = if args.offline {
        (index.recall(&query)?, Vec::new())
    } else {
        let selection = index.select(&query)?;
        (selection.named().collect(), selection.failed)
    };
    let mut out = Out::new(false)?;
    for name in &names {
        out.write(name.as_os_str().as_bytes(), false)?;
        out.write(if args.null { b"\0" } else { b"\n" }, false)?;
    }
    out.finish()?;
    report_unreadable(&failed);
    Ok(if failed.is_empty() { found(!names.is_empty()) } else { ExitCode::from(FAILED) })
}
