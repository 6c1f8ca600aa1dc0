//! `umbel compare`: estimates how many keys filters share.

use crate::args::headings;
use crate::filters::{Secrets, check_same_form};
use crate::report::{Columns, Rows};
use crate::terminal::output;
use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::any::Stored;
use umbel::file::ReadOnly;
use umbel::kind::Category;
use umbel::sizing::estimate::{Estimate, Overlap};

/// Estimate how many keys filters hold and share.
///
/// All figures are estimated from the bits and printed with their standard errors. Two filters are
/// described in full; for more, a matrix shows the Jaccard similarity of each pair. The filters
/// must have the same kind, size, hash and seed, as `umbel build --like` ensures.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel compare june.umbel july.umbel
  umbel compare --containment june.umbel july.umbel august.umbel")]
pub struct Args {
    /// Filters to compare
    #[arg(value_name = "FILTER", num_args = 2.., required = true)]
    filters: Vec<PathBuf>,

    #[command(flatten)]
    secrets: Secrets,

    /// In the matrix, show the share of each row's keys that are in each column's filter
    #[arg(long, help_heading = headings::OUTPUT)]
    containment: bool,

    /// Print JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

/// Two filters and their overlap, with the names that scripts rely on.
#[derive(Serialize)]
struct PairReport {
    left: String,
    right: String,
    left_count: f64,
    left_count_error: f64,
    right_count: f64,
    right_count_error: f64,
    union: f64,
    union_error: f64,
    intersection: f64,
    intersection_error: f64,
    jaccard: f64,
    jaccard_error: f64,
    left_in_right: f64,
    left_in_right_error: f64,
    right_in_left: f64,
    right_in_left_error: f64,
}

/// A mapped filter and its name.
type NamedFilter = (String, ReadOnly<Stored>);

pub fn run(args: &Args) -> Result<ExitCode> {
    let filters = open(&args.filters, &args.secrets)?;
    if let [left, right] = &filters[..] {
        let overlap = overlap(left, right)?;
        if args.json {
            output::json(&PairReport::new(&left.0, &right.0, &overlap))?;
        } else {
            output::text(describe(&left.0, &right.0, &overlap))?;
        }
    } else if args.json {
        let mut pairs = Vec::new();
        for (i, left) in filters.iter().enumerate() {
            for right in &filters[i + 1..] {
                pairs.push(PairReport::new(&left.0, &right.0, &overlap(left, right)?));
            }
        }
        output::json(&pairs)?;
    } else {
        output::text(matrix(&filters, args.containment)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Compares two filters, as `--json` does.
pub fn pair(paths: &[PathBuf; 2], secrets: &Secrets) -> Result<Value> {
    let filters = open(paths, secrets)?;
    let (left, right) = (&filters[0], &filters[1]);
    Ok(json!(PairReport::new(&left.0, &right.0, &overlap(left, right)?)))
}

/// Maps filters that can be compared.
fn open(paths: &[PathBuf], secrets: &Secrets) -> Result<Vec<NamedFilter>> {
    let mut filters = Vec::new();
    let mut first = None;
    for path in paths {
        let loaded = secrets.map_verified(path, Category::Set)?;
        let (before, meta) = first.get_or_insert_with(|| (path, loaded.meta.clone()));
        check_same_form((before, meta), (path, &loaded.meta))?;
        filters.push((path.display().to_string(), loaded.filter));
    }
    Ok(filters)
}

fn overlap(left: &NamedFilter, right: &NamedFilter) -> Result<Overlap> {
    let both = || format!("{} and {}", left.0, right.0);
    match left.1.overlap(&right.1).with_context(both)? {
        Some(overlap) => Ok(overlap),
        None => bail!(
            "{}: too full to compare, since nearly every bit of their union is set; build larger ones",
            both()
        ),
    }
}

fn describe(left: &str, right: &str, overlap: &Overlap) -> Rows {
    let mut rows = Rows::default();
    rows.add(left, format!("{} keys", overlap.left));
    rows.add(right, format!("{} keys", overlap.right));
    rows.add("both", overlap.intersection);
    rows.add("either", overlap.union);
    rows.add("Jaccard", share(overlap.jaccard));
    rows.add("first in second", share(overlap.left_in_right));
    rows.add("second in first", share(overlap.right_in_left));
    rows
}

/// Formats a share with four decimals, or with more if its error is smaller than they show.
fn share(share: Estimate) -> String {
    match share.standard_error {
        0.0 => format!("{:.4}", share.value),
        error if error < 0.00005 => share.to_string(),
        _ => format!("{share:.4}"),
    }
}

fn matrix(filters: &[NamedFilter], containment: bool) -> Result<Columns> {
    let numbers: Vec<String> = (1..=filters.len()).map(|number| number.to_string()).collect();
    let heading: Vec<&str> = [if containment { "row in column" } else { "Jaccard" }, "keys"]
        .into_iter()
        .chain(numbers.iter().map(String::as_str))
        .collect();
    let mut table = Columns::new(&heading);
    for (number, left) in numbers.iter().zip(filters) {
        let mut row = vec![format!("{number} {}", left.0), String::new()];
        for right in filters {
            let overlap = overlap(left, right)?;
            row[1] = overlap.left.to_string();
            row.push(format!(
                "{:.4}",
                if containment { overlap.left_in_right.value } else { overlap.jaccard.value }
            ));
        }
        table.add(row);
    }
    Ok(table)
}

impl PairReport {
    fn new(left: &str, right: &str, overlap: &Overlap) -> PairReport {
        PairReport {
            left: left.to_owned(),
            right: right.to_owned(),
            left_count: overlap.left.value,
            left_count_error: overlap.left.standard_error,
            right_count: overlap.right.value,
            right_count_error: overlap.right.standard_error,
            union: overlap.union.value,
            union_error: overlap.union.standard_error,
            intersection: overlap.intersection.value,
            intersection_error: overlap.intersection.standard_error,
            jaccard: overlap.jaccard.value,
            jaccard_error: overlap.jaccard.standard_error,
            left_in_right: overlap.left_in_right.value,
            left_in_right_error: overlap.left_in_right.standard_error,
            right_in_left: overlap.right_in_left.value,
            right_in_left_error: overlap.right_in_left.standard_error,
        }
    }
}
