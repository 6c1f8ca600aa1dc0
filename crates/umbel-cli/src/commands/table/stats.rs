//! `umbel table stats`: the tables of a store, and the reads that their filters saved.

use crate::args::headings;
use crate::filters::LockArgs;
use crate::maps::open_reader;
use crate::report::{Columns, Rows, percent, size};
use crate::terminal::{exit, output};
use anyhow::Result;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel_text::tables::{Counts, Reader, TableInfo};

/// Show the tables of a store, and how many reads their filters saved.
///
/// The counts are those of all `umbel table get` so far. A lookup queries the filter of each table
/// from the newest on, until one has the key. A table is read if its filter says yes, and in vain
/// if it does not have the key after all. If a table is damaged, the exit code is 2.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel table stats prices
  umbel table stats --json prices")]
pub struct Args {
    /// Directory of the store
    #[arg(value_name = "DIR")]
    store: PathBuf,

    #[command(flatten)]
    lock: LockArgs,

    /// Print JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let reader = open_reader(&args.store, args.lock)?;
    let (tables, counts) = (reader.tables(), reader.recorded()?);
    match args.json {
        true => print_json(&reader, &tables, counts)?,
        false => print(&reader, &tables, counts)?,
    }
    let mut damaged = false;
    for TableInfo { path, damage, .. } in &tables {
        if let Some(damage) = damage {
            damaged = true;
            output::error(format_args!("{} is damaged: {damage}", path.display()));
        }
    }
    Ok(if damaged { ExitCode::from(exit::FAILED) } else { ExitCode::SUCCESS })
}

fn print_json(reader: &Reader, tables: &[TableInfo], counts: Counts) -> Result<()> {
    let table = |table: &TableInfo| {
        json!({
            "file": name(table),
            "entries": table.entries,
            "deleted": table.tombstones,
            "bytes": table.bytes,
            "filter_bytes": table.filter_bytes,
            "damage": table.damage,
        })
    };
    output::json(&json!({
        "tables": tables.iter().map(table).collect::<Vec<_>>(),
        "unflushed": reader.unflushed(),
        "lookups": counts.lookups,
        "filter_queries": counts.asked,
        "reads_saved": counts.skipped,
        "reads": counts.read,
        "reads_in_vain": counts.wasted,
    }))
}

fn print(reader: &Reader, tables: &[TableInfo], counts: Counts) -> Result<()> {
    let sum = |of: fn(&TableInfo) -> u64| tables.iter().map(of).sum::<u64>();
    let mut rows = Rows::default();
    rows.add("tables", tables.len());
    rows.add("on disk", size(sum(|table| table.bytes)));
    rows.add("filters", size(sum(|table| table.filter_bytes)));
    if reader.unflushed() > 0 {
        rows.add("keys in the log", reader.unflushed());
    }
    rows.add("lookups", counts.lookups);
    let share = match counts.asked {
        0 => String::new(),
        asked => format!(" of {asked}, {}", percent(counts.skipped as f64 / asked as f64)),
    };
    rows.add("table reads saved", format!("{}{share}", counts.skipped));
    rows.add("table reads in vain", counts.wasted);
    let mut columns = Columns::new(&["table, newest first", "keys", "deleted", "size", "filter"]);
    for table in tables {
        let cells = match table.damage {
            Some(_) => ["-", "-", "-", "damaged"].map(str::to_string),
            None => [
                table.entries.saturating_sub(table.tombstones).to_string(),
                table.tombstones.to_string(),
                size(table.bytes),
                size(table.filter_bytes),
            ],
        };
        columns.add([vec![name(table)], cells.to_vec()].concat());
    }
    let separator = if tables.is_empty() { String::new() } else { format!("\n{columns}") };
    output::text(format_args!("{rows}{separator}"))
}

fn name(table: &TableInfo) -> String {
    table.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
