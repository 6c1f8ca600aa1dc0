//! `umbel parquet info`: judges the filters of Parquet files.

use crate::args::headings;
use crate::columns;
use crate::report::{Columns, percent};
use crate::terminal::exit::FAILED;
use crate::terminal::output;
use anyhow::Result;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel_parquet::health::ChunkHealth;

/// Show the filters of the columns in Parquet files, and whether they are any good.
///
/// For each column and row group: the size of the filter, the share of its bits that are set, its
/// rate of false positives now, and a verdict. A filter is saturated if its rate is above 10 %,
/// oversized if a quarter of its size would still have a rate of 1 %, and good otherwise. A damaged
/// file is reported, the other files are still described, and the exit code is 2.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel parquet info orders.parquet
  umbel parquet info -c customer --json orders/*.parquet")]
pub struct Args {
    /// Parquet files to describe
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Describe only this column; the path of a nested one is dotted
    #[arg(short, long, value_name = "COLUMN", help_heading = headings::SEARCH)]
    column: Vec<String>,

    /// Print a line of JSON for each column and row group
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

/// The filter of a column in a row group, or the lack of it.
#[derive(Serialize)]
struct ChunkReport<'a> {
    path: &'a str,
    row_group: usize,
    column: &'a str,
    bytes: Option<u64>,
    fill: Option<f64>,
    fpr_now: Option<f64>,
    verdict: String,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut described = 0;
    let all_read = columns::for_each_file(
        &args.files,
        |file| {
            let columns = match &args.column[..] {
                [] => file.columns().collect(),
                named => {
                    named.iter().map(|column| columns::find(&file, column)).collect::<Result<Vec<_>>>()?
                }
            };
            Ok(file.health(&columns)?)
        },
        |path, chunks| {
            described += 1;
            if args.json {
                return print_json(path, &chunks);
            }
            let apart = if described > 1 { "\n" } else { "" };
            let title = if args.files.len() > 1 { format!("{}\n", path.display()) } else { String::new() };
            output::text(format_args!("{apart}{title}{}", table(&chunks)))
        },
    )?;
    Ok(if all_read { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn print_json(path: &Path, chunks: &[ChunkHealth]) -> Result<()> {
    let path = path.display().to_string();
    for chunk in chunks {
        output::json(&ChunkReport {
            path: &path,
            row_group: chunk.row_group,
            column: &chunk.column,
            bytes: chunk.filter.map(|filter| filter.bytes),
            fill: chunk.filter.map(|filter| filter.fill),
            fpr_now: chunk.filter.map(|filter| filter.rate),
            verdict: chunk.verdict().to_string(),
        })?;
    }
    Ok(())
}

/// Returns a table with a line for each column and row group.
fn table(chunks: &[ChunkHealth]) -> Columns {
    let mut table = Columns::new(&["column", "row group", "bytes", "fill", "rate now", "verdict"]);
    for chunk in chunks {
        let cell = |value: Option<String>| value.unwrap_or_else(|| "-".to_string());
        table.add(vec![
            chunk.column.clone(),
            chunk.row_group.to_string(),
            cell(chunk.filter.map(|filter| filter.bytes.to_string())),
            cell(chunk.filter.map(|filter| format!("{:.1} %", 100.0 * filter.fill))),
            cell(chunk.filter.map(|filter| percent(filter.rate))),
            chunk.verdict().to_string(),
        ]);
    }
    table
}
