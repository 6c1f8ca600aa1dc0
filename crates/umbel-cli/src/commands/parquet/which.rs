//! `umbel parquet which`: prints the files that may hold a value.

use super::which_index;
use crate::args::headings;
use crate::columns::{self, Values};
use crate::terminal::exit::{FAILED, found};
use crate::terminal::output::Out;
use anyhow::{Result, bail};
use serde::Serialize;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel_parquet::Found;

/// Print the Parquet files that may hold a value in a column; the others certainly do not.
///
/// Reads the footers of the files, and the parts of their filters that decide. A row group without
/// a filter may hold any value between the least and the greatest one that the footer states.
///
/// VALUE is a number such as -12.34, a day such as 2024-02-29, a time such as 2024-02-29T23:59:59.5,
/// a UUID, or text, as the type of the column says. In a column of instants, a time without a zone
/// is in UTC. A value that no value of the column is equal to, such as 1.5 in a column of whole
/// numbers, is an error.
///
/// With an index of `umbel parquet index` in place of -c and files, no file is opened. A file that is
/// new or has changed since it was indexed may hold any value.
///
/// Exit codes: 0 a file may hold a value, 1 none does, 2 an error occurred.
#[derive(clap::Args)]
#[command(
    override_usage = "umbel parquet which -c COLUMN VALUE FILE...
       umbel parquet which -c COLUMN --values LIST FILE...
       umbel parquet which INDEX VALUE",
    after_help = "Examples:
  umbel parquet which -c customer 1042 orders/*.parquet
  umbel parquet which -c placed 2024-02-29T12:00 orders/*.parquet
  umbel parquet which -c customer --values ids.txt --json orders/*.parquet
  umbel parquet which customer.idx 1042"
)]
pub struct Args {
    /// Value to find, and the files to query; or an index, and the value
    #[arg(value_name = "VALUE|FILE", required = true, allow_negative_numbers = true)]
    operands: Vec<OsString>,

    /// Column with the value; the path of a nested one is dotted, such as tags.list.element
    #[arg(short, long, value_name = "COLUMN", help_heading = headings::SEARCH)]
    column: Option<String>,

    /// Find the values in the lines of LIST, `-` for standard input, and print the files that may
    /// hold one of them
    #[arg(long, value_name = "LIST", help_heading = headings::SEARCH)]
    values: Option<PathBuf>,

    /// Print a line of JSON for each value and file, with the numbers of the row groups; with an index,
    /// with the reason: filter, new or changed
    #[arg(long, conflicts_with = "null", help_heading = headings::OUTPUT)]
    json: bool,

    /// End names with a zero byte instead of a newline
    #[arg(long, help_heading = headings::OUTPUT)]
    null: bool,
}

/// The row groups of a file that may hold a value.
#[derive(Serialize)]
struct FoundReport<'a> {
    value: &'a str,
    path: &'a str,
    row_groups: Vec<usize>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let Some(column) = &args.column else { return args.run_index() };
    let (values, files) = match (&args.values, &args.operands[..]) {
        (Some(list), files) => (Values::read(list)?, files),
        (None, [value, files @ ..]) if !files.is_empty() => {
            (Values::of_text(value.as_bytes().to_vec()), files)
        }
        _ => bail!("name the files to search after the value: -c {column} VALUE FILE..."),
    };
    let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
    let mut out = Out::new(false)?;
    let mut any = false;
    let all_read = columns::for_each_file(
        &files,
        |file| {
            let column = columns::find(&file, column)?;
            Ok(file.find(&column, &values.of_column(&file, &column)?)?)
        },
        |path, found| {
            any |= !found.is_empty();
            if args.json {
                return print_json(&mut out, &values, path, &found);
            }
            if !found.is_empty() {
                out.write(path.as_os_str().as_bytes(), false)?;
                out.write(if args.null { b"\0" } else { b"\n" }, false)?;
            }
            Ok(())
        },
    );
    out.finish()?;
    Ok(if all_read? { found(any) } else { ExitCode::from(FAILED) })
}

impl Args {
    /// Queries an index.
    fn run_index(&self) -> Result<ExitCode> {
        let (index, values) = match (&self.values, &self.operands[..]) {
            (Some(list), [index]) => (index, Values::read(list)?),
            (None, [index, value]) => (index, Values::of_text(value.as_bytes().to_vec())),
            _ => bail!("name the column of the files with -c, or give an index and one value"),
        };
        which_index::run(Path::new(index), values.texts(), self.json, self.null)
    }
}

/// Prints a line for each value that was found in a file.
fn print_json(out: &mut Out, values: &Values, path: &Path, found: &[Found]) -> Result<()> {
    let path = path.display().to_string();
    for of_value in found.chunk_by(|one, other| one.value == other.value) {
        let report = FoundReport {
            value: &String::from_utf8_lossy(&values.texts()[of_value[0].value]),
            path: &path,
            row_groups: of_value.iter().map(|found| found.row_group).collect(),
        };
        let mut line = serde_json::to_vec(&report)?;
        line.push(b'\n');
        out.write(&line, false)?;
    }
    Ok(())
}
