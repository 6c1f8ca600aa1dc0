//! `umbel parquet add-filter`: adds filters to a Parquet file.

use crate::args::{headings, number};
use crate::columns;
use crate::filters::{check_writable, explain_exists};
use crate::input::check_not_output;
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::file::Placing;
use umbel_parquet::ParquetFile;

/// Add a filter of a column to each row group of a Parquet file.
///
/// OUT is a copy of FILE with the same bytes in the same places, and the filters behind them: pages,
/// their index, statistics and other filters are not touched. The distinct values of each row group
/// are counted, and a filter is as large as they need at this rate, rounded up to a power of two,
/// which some readers require. DuckDB and other engines skip row groups by it.
///
/// The column may be of any type except truth values, and may have nulls or be nested. FILE must not
/// have filters of this column yet.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel parquet add-filter -c country orders.parquet -o new.parquet
  umbel parquet add-filter -c who.years -p 0.1% people.parquet -o new.parquet")]
pub struct Args {
    /// Parquet file to read
    #[arg(value_name = "FILE")]
    input: PathBuf,

    /// Column to add a filter of; the path of a nested one is dotted, such as tags.list.element
    #[arg(short, long, value_name = "COLUMN", required = true, help_heading = headings::FILTER)]
    column: String,

    /// False-positive rate: the share of absent values that a filter reports as present
    #[arg(
        short = 'p',
        long,
        value_name = "RATE",
        default_value = "1%",
        value_parser = number::rate,
        help_heading = headings::FILTER
    )]
    fpr: f64,

    /// Write the copy to OUT
    #[arg(short, long, value_name = "OUT", required = true, help_heading = headings::OUTPUT)]
    output: PathBuf,

    /// Replace OUT if it exists
    #[arg(short, long, help_heading = headings::OUTPUT)]
    force: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let file = ParquetFile::open(&args.input)?;
    let column = columns::find(&file, &args.column)?;
    check_not_output(std::slice::from_ref(&args.input), &args.output)?;
    check_writable(&args.output, args.force)?;
    let placing = Placing { create_new: !args.force, ..Placing::default() };
    file.add_filter(&column, args.fpr, &args.output, placing)
        .map_err(|error| explain_exists(error, &args.output))?;
    Ok(ExitCode::SUCCESS)
}
