//! `umbel index info`: describes an index and the reads that it saves.

use crate::args::headings;
use crate::report::{Columns, Rows, size};
use crate::terminal::output;
use anyhow::Result;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::Digest;
use umbel_text::index::Index;

/// Show the files and the size of an index, and the share of reads that it saves.
///
/// That share is measured: the filters are queried for a thousand words that no file contains.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel index info logs.idx
  umbel index info --files logs.idx")]
pub struct Args {
    /// Index to describe
    #[arg(value_name = "INDEX")]
    index: PathBuf,

    /// List the files with the memory of each
    #[arg(long, help_heading = headings::OUTPUT)]
    files: bool,

    /// Print a line of JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

/// The number of absent words that the filters are queried for.
const ABSENT_WORDS: u64 = 1000;

#[derive(Serialize)]
struct IndexReport {
    files: usize,
    filters: u64,
    keys: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text_bytes: Option<u64>,
    file_bytes: u64,
    index_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    share_of_text: Option<f64>,
    bytes_per_file: f64,
    bits_per_key: f64,
    rate: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    types: Vec<String>,
    grams: Option<u32>,
    block: Option<u64>,
    reads_saved: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    list: Vec<FileReport>,
}

#[derive(Serialize)]
struct FileReport {
    path: String,
    text_bytes: u64,
    keys: u64,
    filters: usize,
    filter_bytes: u64,
    compressed: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let index = Index::open(&args.index)?;
    let report = describe(&index, args.files)?;
    if args.json {
        output::json(&report)?;
    } else if args.files {
        output::text(list(&report.list))?;
    } else {
        output::text(rows(&index, &report))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(index: &Index, list: bool) -> Result<IndexReport> {
    let filters = index.filters();
    let mut named = 0;
    for number in 0..ABSENT_WORDS {
        named += index.count(&[Digest::from_hash(number).salted(ABSENT_WORDS)])?;
    }
    let files = index.files().len();
    let (mut keys, mut text, mut file_bytes) = (0, 0, 0);
    for file in index.files() {
        keys += file.keys;
        text += file.text;
        file_bytes += file.bytes;
    }
    let settings = index.source().text();
    let share = |part: f64, of: f64| if of > 0.0 { part / of } else { 0.0 };
    let file_report = |file: umbel_text::index::FileFacts| FileReport {
        path: file.name.display().to_string(),
        text_bytes: file.text,
        keys: file.keys,
        filters: file.blocks,
        filter_bytes: file.filter_bits.div_ceil(8),
        compressed: file.compressed,
    };
    Ok(IndexReport {
        files,
        filters,
        keys,
        values: settings.is_none().then_some(text),
        text_bytes: settings.map(|_| text),
        file_bytes,
        index_bytes: index.length(),
        share_of_text: settings.map(|_| share(index.length() as f64, text as f64)),
        bytes_per_file: share(index.length() as f64, files as f64),
        bits_per_key: share(8.0 * index.length() as f64, keys as f64),
        rate: index.source().rate(),
        column: index.source().column().map(|column| column.name.clone()),
        types: index.column_types().to_vec(),
        grams: settings.and_then(|settings| settings.grams),
        block: settings.map(|settings| settings.block),
        reads_saved: 1.0 - share(named as f64, (filters * ABSENT_WORDS) as f64),
        list: if list { index.files().map(file_report).collect() } else { Vec::new() },
    })
}

fn rows(index: &Index, report: &IndexReport) -> Rows {
    let percent = |share: f64| format!("{:.2} %", 100.0 * share);
    let mut rows = Rows::default();
    let roots: Vec<String> = index.roots().iter().map(|root| root.given.display().to_string()).collect();
    match &roots[..] {
        [root] => rows.add("of", root),
        _ => rows.add("of", format!("{} roots", roots.len())),
    }
    let (finds, what) = match (&report.column, report.grams) {
        (Some(column), _) => {
            (format!("values of the column {column}, {}", report.types.join(" or ")), "value")
        }
        (None, Some(length)) => (format!("whole words, and substrings of {length} bytes or more"), "word"),
        (None, None) => ("whole words".to_string(), "word"),
    };
    rows.add("finds", finds);
    let block =
        report.block.map_or(String::new(), |block| format!(", one for each block of {}", size(block)));
    let (files, within) = match (report.text_bytes, report.share_of_text) {
        (Some(text), Some(share)) => {
            (format!("{} of text", size(text)), format!(", {} of the text", percent(share)))
        }
        _ => (format!("{} values", report.values.unwrap_or(0)), String::new()),
    };
    rows.add("files", format!("{}, with {files}", report.files));
    rows.add("filters", format!("{}{block}", report.filters));
    rows.add("keys", format!("{}, {:.2} bits each", report.keys, report.bits_per_key));
    rows.add("index", format!("{}{within}", size(report.index_bytes)));
    rows.add("memory", format!("{} for each file", size(report.bytes_per_file.round() as u64)));
    rows.add(
        "saves",
        format!("{} of reads for a {what} that is nowhere, measured", percent(report.reads_saved)),
    );
    rows
}

fn list(files: &[FileReport]) -> Columns {
    let mut columns = Columns::new(&["file", "text", "keys", "filters", "memory"]);
    for file in files {
        columns.add(vec![
            file.path.clone(),
            size(file.text_bytes),
            file.keys.to_string(),
            file.filters.to_string(),
            size(file.filter_bytes),
        ]);
    }
    columns
}
