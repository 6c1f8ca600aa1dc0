//! `umbel distinct`: the number of distinct lines.

use crate::args::{headings, number};
use crate::filters::sketches::{SketchArgs, SketchInputs};
use crate::filters::{DistinctCounter, new_distinct};
use crate::pipeline;
use crate::terminal::output;
use anyhow::Result;
use serde::Serialize;
use std::ops::ControlFlow;
use std::process::ExitCode;
use umbel::Kind;
use umbel::sketch::Distinct;

/// Estimate the number of distinct lines in little memory.
///
/// Prints an estimate and its standard error: two thirds of all estimates are off by less than the
/// standard error, and 95 % by less than twice that. By default it is 0.2 % of the count, and less
/// if there are few lines. Each thread takes 256 KiB, however many lines there are (HyperLogLog).
///
/// -o saves the sketch behind the estimate. A saved sketch can be an input in place of the lines
/// that it was made from, so lines that occur in several inputs count once. Sketches that are
/// united must have the same --error and the same hash. It is a public hash: lines can be crafted that
/// make the estimate wrong; use --key-file for hostile input.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel distinct -d ' ' -F 1 access.log         # distinct visitors of a day
  umbel distinct -o monday.umbel monday.txt
  umbel distinct monday.umbel tuesday.umbel     # of both days together
  umbel distinct monday.umbel wednesday.txt")]
pub struct Args {
    /// Standard error, as a share of the count, at least 0.03 % [default: 0.2 %]
    #[arg(long, value_name = "RATE", value_parser = number::rate, help_heading = headings::FILTER)]
    error: Option<f64>,

    #[command(flatten)]
    sketch: SketchArgs,
}

/// The answer, by the names that `umbel info --json` uses.
#[derive(Serialize)]
struct DistinctReport {
    estimated_count: f64,
    estimated_count_error: f64,
    /// The number of lines; missing if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let inputs: SketchInputs<Distinct> = args.sketch.open(Kind::Distinct)?;
    let mut distinct = args.empty(inputs.first())?;
    inputs.unite(&mut distinct, args.error, Distinct::union)?;
    if let Some(lines) = &inputs.lines {
        let threads = lines.threads();
        let counter = DistinctCounter::new(threads, &distinct)?;
        pipeline::run(
            lines.open()?,
            threads,
            |thread, records| {
                counter.insert(thread, &records.keys()?);
                Ok(())
            },
            |(), _| Ok(ControlFlow::Continue(())),
        )?;
        distinct.union(&counter.finish()?)?;
    }
    args.sketch.save(&distinct)?;
    let (estimate, count) = (distinct.count(), distinct.inserted());
    if args.sketch.json {
        let (estimated_count, estimated_count_error) = (estimate.value, estimate.standard_error);
        output::json(&DistinctReport { estimated_count, estimated_count_error, count })?;
    } else {
        let of = count.map(|count| format!(" of {count}")).unwrap_or_default();
        output::text(format_args!("{estimate} different lines{of}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Args {
    /// Makes an empty sketch with the precision of --error, or else of the first saved sketch.
    fn empty(&self, saved: Option<&Distinct>) -> Result<Distinct> {
        let empty = match (self.error, saved) {
            (Some(error), _) => Distinct::with_error(error)?,
            (None, Some(saved)) => Distinct::with_precision(saved.precision())?,
            (None, None) => new_distinct()?,
        };
        let hasher = saved.map_or_else(|| self.sketch.hasher(), |saved| Ok(saved.hasher().clone()))?;
        Ok(empty.with_hasher(hasher))
    }
}
