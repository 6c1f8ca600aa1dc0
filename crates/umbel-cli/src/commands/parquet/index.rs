//! `umbel parquet index`: makes the index of a column, or brings it up to date.

use crate::args::{headings, number};
use crate::commands::index::report_made;
use crate::filters::{LockArgs, already_exists, check_writable, explain_exists};
use crate::report::other_names;
use crate::terminal::{Progress, output};
use anyhow::{Result, anyhow, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel_parquet::index::Tables;
use umbel_text::index::{self, BuildSummary, Column, Index, Options};

/// Index a column of Parquet files, to search them without opening any.
///
/// INDEX gets a small filter of the values in each file, whether or not the file has filters of its
/// own. `umbel parquet which INDEX VALUE` then only looks at the size, the inode and the times of
/// the files: one that has changed since may hold any value. If INDEX exists, it is brought up to
/// date, and only files that are new or have changed are read.
///
/// Files that do not begin like a Parquet file are passed over. A file without the column holds no
/// value; at least one file must have it. Symbolic links are not followed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel parquet index -c customer orders -o customer.idx
  umbel parquet which customer.idx 1042")]
pub struct Args {
    /// Directories or Parquet files
    #[arg(value_name = "DIR|FILE", required = true)]
    roots: Vec<PathBuf>,

    /// Column to index; the path of a nested one is dotted, such as tags.list.element
    #[arg(short, long, value_name = "COLUMN", required = true, help_heading = headings::FILTER)]
    column: String,

    /// Share of files without a value that are printed for it nevertheless [default: 1%]
    #[arg(short = 'p', long, value_name = "P", value_parser = number::rate, help_heading = headings::FILTER)]
    rate: Option<f64>,

    /// Write the index to INDEX, or bring it up to date
    #[arg(short, long, value_name = "INDEX", required = true, help_heading = headings::OUTPUT)]
    output: PathBuf,

    /// Read all files, and replace INDEX even if it is of another column
    #[arg(short, long, help_heading = headings::OUTPUT)]
    force: bool,

    /// Print no summary of an update
    #[arg(short, long, help_heading = headings::OUTPUT)]
    quiet: bool,

    #[command(flatten)]
    lock: LockArgs,
}

/// The rate of an index, unless -p gives another.
const DEFAULT_RATE: f64 = 0.01;

pub fn run(args: &Args) -> Result<ExitCode> {
    let path = &args.output;
    if args.force || fs::symlink_metadata(path).is_err() {
        check_writable(path, args.force)?;
        return Ok(report_made(&args.make(|tables, options| {
            let column = Column { name: args.column.clone(), rate: args.rate.unwrap_or(DEFAULT_RATE) };
            index::build_column(path, &args.roots, &column, tables, options)
        })?));
    }
    args.check_same(&Index::open(path).map_err(|_| anyhow!("{}", already_exists(path)))?)?;
    let _lock = args.lock.lock(path)?;
    let made = args.make(|tables, options| index::update_column(path, tables, options))?;
    if !args.quiet {
        let (read, kept, dropped) = (made.read, made.files - made.read, made.dropped);
        output::text(format_args!("{read} read, {kept} kept, {dropped} dropped\n"))?;
    }
    Ok(report_made(&made))
}

impl Args {
    /// Makes or updates the index, with a bar for its progress.
    fn make(
        &self,
        make: impl FnOnce(&Tables, &Options) -> umbel_text::Result<BuildSummary>,
    ) -> Result<BuildSummary> {
        let tables = Tables::default();
        let options = Options { create_new: false, ..Options::default() };
        let progress = Progress::of_bytes(options.bytes.clone(), None);
        let made = make(&tables, &options);
        progress.finish();
        made.map_err(|error| match (&error, tables.other_columns()) {
            (umbel_text::Error::NoColumn { column }, Some(columns)) => {
                let names: Vec<&str> = columns.iter().map(String::as_str).collect();
                anyhow!("{error}; {}", other_names(column, &names))
            }
            _ => explain_exists(error, &self.output),
        })
    }

    /// Fails if an index that exists is not the one that would be made.
    fn check_same(&self, index: &Index) -> Result<()> {
        let column = index.column()?;
        let roots = index.roots();
        let same = column.name == self.column
            && self.rate.is_none_or(|rate| rate == column.rate)
            && roots.len() == self.roots.len()
            && (0..).zip(&self.roots).all(|(root, given)| is_same(&index.root_path(root), given));
        if same {
            return Ok(());
        }
        let of: Vec<String> = roots.iter().map(|root| root.given.display().to_string()).collect();
        bail!(
            "{} is an index of the column {} of {}, with a rate of {}: give -f to replace it, or another name",
            self.output.display(),
            column.name,
            of.join(" "),
            column.rate
        )
    }
}

/// Returns whether a directory is the one that an index was made of.
fn is_same(root: &Path, given: &Path) -> bool {
    let resolved = |path: &Path| fs::canonicalize(path).ok();
    std::path::absolute(given).is_ok_and(|given| given == root)
        || resolved(given).is_some_and(|given| Some(given) == resolved(root))
}
