//! `umbel top`: the most frequent lines.

use crate::args::{headings, number};
use crate::filters::sketches::{SketchArgs, SketchInputs};
use crate::pipeline;
use crate::report::size;
use crate::terminal::exit::found;
use crate::terminal::output::{self, warn};
use anyhow::{Result, bail};
use serde::Serialize;
use std::io::Write;
use std::ops::ControlFlow;
use std::process::ExitCode;
use umbel::Kind;
use umbel::internals::hex;
use umbel::sketch::{Frequent, Item};

/// Print the most frequent lines with their counts.
///
/// Each line follows its count and a tab, the most frequent first; lines with equal counts are
/// sorted by their bytes. With -F, --trim, --lower or --hex, the key is counted and printed instead
/// of the line.
///
/// Counts are exact for up to 131072 distinct lines. Beyond that, in bounded memory (Misra and
/// Gries), a count is never too high, and too low by at most 1/65537 of the number of lines;
/// --error changes that share. A message reports the maximum error of a count and the maximum count
/// of a line that is not printed. The exit code is 0 if a line was printed, 1 if there was none.
///
/// -o saves the counts, including the lines themselves. A saved file can be an input in place of
/// the lines that it was made from, and the same limits hold for the sum. Files that are united
/// must have the same --error.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel top -n 20 queries.txt
  umbel top -d ' ' -F 1 access.log              # the busiest visitors
  umbel top -o monday.top monday.txt
  umbel top monday.top tuesday.top              # of both days")]
pub struct Args {
    /// Maximum error of a count, as a share of all lines; the memory is proportional to its inverse
    /// [default: 1/65537]
    #[arg(long, value_name = "RATE", value_parser = number::rate, help_heading = headings::FILTER)]
    error: Option<f64>,

    #[command(flatten)]
    sketch: SketchArgs,

    /// Number of lines to print
    #[arg(
        short,
        long,
        value_name = "N",
        value_parser = number::count,
        default_value = "10",
        help_heading = headings::OUTPUT
    )]
    number: u64,
}

/// The default parameter k of the sketch, which has up to 2k counters.
const DEFAULT_COUNTERS: u64 = 1 << 16;

/// The memory that counted lines may take, unless there are more than [`LINE_BYTES`] for each of
/// them.
const MAX_COUNTED_BYTES: u64 = 256 << 20;

/// The length of a line for which there is always memory.
const LINE_BYTES: u64 = 1 << 10;

/// The answer, by the names that scripts rely on.
#[derive(Serialize)]
struct TopReport {
    /// The number of all lines.
    count: u64,
    /// The most by which a count may be too low.
    error_bound: u64,
    /// The maximum count of a line that is not listed.
    others_at_most: u64,
    lines: Vec<TopLine>,
}

#[derive(Serialize)]
struct TopLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<String>,
    /// A line that is not UTF-8, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    line_hex: Option<String>,
    count: u64,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let inputs: SketchInputs<Frequent> = args.sketch.open(Kind::Frequent)?;
    let mut frequent = args.empty(inputs.first())?;
    inputs.unite(&mut frequent, args.error, Frequent::union)?;
    if let Some(lines) = &inputs.lines {
        // Which counters are dropped depends on the order of the lines, so they are counted in the
        // order of the input.
        let most = MAX_COUNTED_BYTES.max(frequent.k().saturating_mul(2 * LINE_BYTES));
        let mut unchecked = 0;
        pipeline::run(
            lines.open()?,
            lines.threads(),
            |_, records| Ok(records.to_keys()?),
            |keys, _| {
                frequent.insert_batch(&keys.keys()?);
                unchecked += keys.total_bytes();
                if unchecked > most / 4 {
                    unchecked = 0;
                    check_memory(&frequent, most)?;
                }
                Ok(ControlFlow::Continue(()))
            },
        )?;
    }
    args.sketch.save(&frequent)?;
    let items = frequent.items();
    let (top, others) = items.split_at(items.len().min(usize::try_from(args.number).unwrap_or(usize::MAX)));
    let (count, error_bound) = (frequent.total(), frequent.error_bound());
    let others_at_most = others.first().map_or(0, |item| item.count).saturating_add(error_bound);
    if args.sketch.json {
        let lines = top.iter().map(TopLine::from).collect();
        output::json(&TopReport { count, error_bound, others_at_most, lines })?;
    } else {
        output::bytes(&print(top, args.sketch.line_end()))?;
        if error_bound > 0 {
            warn(format_args!(
                "counts may be too low by up to {error_bound}, and a line that is not printed came at most {others_at_most} times"
            ));
        }
    }
    Ok(found(!top.is_empty()))
}

/// Fails if the counted lines, which are held in memory, take more than `most` bytes.
fn check_memory(frequent: &Frequent, most: u64) -> Result<()> {
    let held: u64 = frequent.items().iter().map(|item| item.key.len() as u64).sum();
    if held > most {
        bail!(
            "the lines that are counted take more than {}: give a larger --error, or choose a shorter key with -F",
            size(most)
        );
    }
    Ok(())
}

impl Args {
    /// Makes an empty sketch with the size of --error, or else of the first saved sketch.
    fn empty(&self, saved: Option<&Frequent>) -> Result<Frequent> {
        let k = match (self.error, saved) {
            (Some(error), _) => ((1.0 / error).ceil() as u64 - 1).max(1),
            (None, Some(saved)) => saved.k(),
            (None, None) => DEFAULT_COUNTERS,
        };
        let hasher =
            saved.map_or_else(|| self.sketch.transient_hasher(), |saved| Ok(saved.hasher().clone()))?;
        Ok(Frequent::new(k)?.with_hasher(hasher))
    }
}

/// Returns each count and its line, as they are printed.
fn print(items: &[Item<'_>], line_end: u8) -> Vec<u8> {
    let mut out = Vec::new();
    for item in items {
        // Writing to memory cannot fail.
        let _ = write!(out, "{}\t", item.count);
        out.extend_from_slice(item.key);
        out.push(line_end);
    }
    out
}

impl From<&Item<'_>> for TopLine {
    fn from(item: &Item<'_>) -> TopLine {
        let line = str::from_utf8(item.key).ok().map(str::to_owned);
        let line_hex = line.is_none().then(|| hex::encode(item.key));
        TopLine { line, line_hex, count: item.count }
    }
}
