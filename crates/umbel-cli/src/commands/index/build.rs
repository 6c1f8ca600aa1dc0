//! `umbel index build`: builds an index with a filter for each file.

use super::report_made;
use crate::args::{headings, number};
use crate::filters::explain_exists;
use crate::input::{self, LineLimit};
use crate::terminal::Progress;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel_text::index::{self, Options, Settings};

/// Build an index of the files in directories.
///
/// Each file gets a filter of its words: runs of letters, digits and underscores, regardless of
/// case. Files larger than --block are cut into blocks of lines with a filter each, so that only
/// parts of them have to be read. With --substrings, any four consecutive bytes of a line can be
/// found, not only whole words; the index is then several times larger. Files compressed with gzip
/// or zstd are indexed by their text. Symbolic links are not followed, as in `grep -r`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel index build logs                    # writes logs.idx
  umbel index build --substrings -o code.idx src tests")]
pub struct Args {
    /// Directories or files
    #[arg(value_name = "DIR|FILE", required = true)]
    roots: Vec<PathBuf>,

    /// Index substrings too
    #[arg(short, long, help_heading = headings::FILTER)]
    substrings: bool,

    /// Length of the pieces that substrings are found by, 2 to 8 bytes; implies --substrings
    /// [default: 4]
    #[arg(long, value_name = "N", help_heading = headings::FILTER)]
    grams: Option<u32>,

    /// Share of files without a key that are read for it nevertheless [default: 1%, or 10% with
    /// substrings]
    #[arg(short = 'p', long, value_name = "P", value_parser = number::rate, help_heading = headings::FILTER)]
    rate: Option<f64>,

    /// Size of the blocks that large files are cut into
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "1MiB",
        value_parser = number::bytes,
        help_heading = headings::FILTER
    )]
    block: u64,

    #[command(flatten)]
    max_line: LineLimit,

    /// Write the index to INDEX; for one directory the default is DIR.idx beside it, where `umbel
    /// grep` looks for it
    #[arg(short, long, value_name = "INDEX", help_heading = headings::OUTPUT)]
    output: Option<PathBuf>,

    /// Replace INDEX if it exists
    #[arg(short, long, help_heading = headings::OUTPUT)]
    force: bool,
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
        (None, roots) => {
            // A wrong name is likelier than a missing option.
            for root in roots {
                fs::symlink_metadata(root).with_context(|| format!("cannot open {}", input::name(root)))?;
            }
            bail!("name the index with -o: only one directory has an index beside it")
        }
    };
    let max_line = Some(args.max_line.bytes());
    let options = Options { create_new: !args.force, max_line, ..Options::default() };
    let progress = Progress::of_bytes(options.bytes.clone(), None);
    let made = index::build(&path, &args.roots, &settings, &options);
    progress.finish();
    Ok(report_made(&made.map_err(|error| explain_exists(error, &path))?))
}

/// Returns a directory by its own name, even if it was given as `..`.
fn named(root: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(root)?;
    Ok(if absolute.file_name().is_some() { absolute } else { fs::canonicalize(root)? })
}
