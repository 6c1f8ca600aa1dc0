//! `umbel index build`: a filter for each of many files.

use super::report_made;
use crate::args::number;
use crate::filters::explain_exists;
use crate::terminal::Progress;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel_text::index::{self, Options, Settings};

/// Make an index of the files in directories.
///
/// Each file gets a filter of its words: runs of letters, digits and underscores, capital or small. Files of more than
/// --block bytes are cut into blocks of lines with a filter each, so that only parts of them have to be read. With
/// --substrings any part of a line of four bytes or more can be found, not only whole words; the index is then several
/// times as large. What is compressed with gzip or zstd is indexed by its text. Links are not followed, as by `grep -r`.
#[derive(clap::Args)]
pub struct Args {
    /// Directories, or files
    #[arg(value_name = "DIR|FILE", required = true)]
    roots: Vec<PathBuf>,

    /// The index to write; for one directory DIR.idx beside it, where `umbel grep` looks
    #[arg(short, long, value_name = "INDEX")]
    output: Option<PathBuf>,

    /// Replace INDEX if it is there
    #[arg(short, long)]
    force: bool,

    /// Index substrings too
    #[arg(short, long)]
    substrings: bool,

    /// The length of the pieces by which substrings are found, 2 to 8 bytes; implies --substrings [default: 4]
    #[arg(long, value_name = "N")]
    grams: Option<u32>,

    /// The share of files that are read in vain for a key they do not hold [default: 1%, with substrings 10%]
    #[arg(short = 'p', long, value_name = "P", value_parser = number::rate)]
    rate: Option<f64>,

    /// Cut files into blocks of about this size
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = number::bytes)]
    block: u64,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let usual = if args.substrings || args.grams.is_some() { Settings::SUBSTRINGS } else { Settings::WORDS };
    let settings = Settings {
        rate: args.rate.unwrap_or(usual.rate),
        grams: args.grams.or(usual.grams),
        block: args.block,
    };
    let path = match (&args.output, &args.roots[..]) {
        (Some(path), _) => path.clone(),
        (None, [root]) if root.is_dir() => match index::default_index(&named(root)?) {
            Some(path) => path,
            None => bail!("the index of {} would have no name: give one with -o", root.display()),
        },
        _ => bail!("name the index with -o: only one directory has an index beside it"),
    };
    let options = Options { create_new: !args.force, ..Options::default() };
    let progress = Progress::of_bytes(options.bytes.clone(), None);
    let made = index::build(&path, &args.roots, &settings, &options);
    progress.finish();
    Ok(report_made(&made.map_err(|error| explain_exists(error, &path))?))
}

/// Returns a directory by its own name, even if it was given as `..`.
fn named(root: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(root)?;
    Ok(if absolute.file_name().is_some() { absolute } else { std::fs::canonicalize(root)? })
}
