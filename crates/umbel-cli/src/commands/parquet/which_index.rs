//! `umbel parquet which INDEX VALUE`: prints the files that may hold a value, by an index.

use crate::documents::report_unreadable;
use crate::terminal::exit::{FAILED, found};
use crate::terminal::output::{self, Out};
use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use umbel_parquet::index::{may_be_table, query};
use umbel_text::index::{Index, Part, Query, Selected, Why};

/// A file that may hold a value.
#[derive(Serialize)]
struct FoundReport<'a> {
    value: &'a str,
    path: String,
    why: &'static str,
}

/// Prints the files that may hold one of these values.
pub fn run(path: &Path, texts: &[Vec<u8>], json: bool, null: bool) -> Result<ExitCode> {
    let index = Index::open(path)?;
    let queries = texts.iter().map(|text| query(&index, text)).collect::<umbel_parquet::Result<Vec<_>>>();
    let queries = queries.with_context(|| format!("cannot search {}", path.display()))?;
    let mut out = Out::new(false)?;
    let (mut any, mut failed, mut changed) = (false, Vec::new(), BTreeSet::new());
    // Only JSON distinguishes the values.
    let queries: Vec<(&[u8], Query)> = match json {
        true => texts.iter().map(Vec::as_slice).zip(queries).collect(),
        false => vec![(&[], Query::any_of(queries))],
    };
    for (text, query) in queries {
        let selection = index.select(&query)?;
        for (file, why) in selection.files.iter().filter_map(|file| Some((file, why(file)?))) {
            any = true;
            let name = file.name();
            if json {
                let report = FoundReport {
                    value: &String::from_utf8_lossy(text),
                    path: name.display().to_string(),
                    why,
                };
                out.write(format!("{}\n", serde_json::to_string(&report)?).as_bytes(), false)?;
            } else {
                out.write(name.as_os_str().as_bytes(), false)?;
                out.write(if null { b"\0" } else { b"\n" }, false)?;
            }
            if why != FILTER {
                changed.insert((name, why));
            }
        }
        failed = selection.failed;
    }
    out.finish()?;
    report_unreadable(&failed);
    if let Some((first, why)) = changed.first() {
        let others = match changed.len() - 1 {
            0 => String::new(),
            count => format!(", and {count} more"),
        };
        output::warn(format_args!(
            "{} ({why}{others}) may hold it: run `umbel parquet index` again to bring {} up to date",
            first.display(),
            path.display()
        ));
    }
    Ok(if failed.is_empty() { found(any) } else { ExitCode::from(FAILED) })
}

/// The reason for a file whose filter has the value.
const FILTER: &str = "filter";

/// Returns why a file may hold the value, or `None` if it does not.
fn why(file: &Selected) -> Option<&'static str> {
    match file.part {
        Part::Nothing => None,
        Part::All(why) => may_be_table(&file.path()).then_some(match why {
            Why::New => "new",
            Why::Changed => "changed",
        }),
        _ => Some(FILTER),
    }
}
