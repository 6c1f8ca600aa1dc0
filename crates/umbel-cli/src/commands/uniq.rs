//! `umbel uniq`: first occurrences, in the order of the input.

use super::firsts;
use crate::facts::percent;
use crate::input::InputArgs;
use crate::number;
use crate::output::{Out, warn};
use anyhow::Result;
use std::process::ExitCode;
use umbel::sizing::Known;
use umbel::{AnyFilter, Kind, Spec, Stored};

/// Print the first occurrence of every line, without sorting, in bounded memory.
///
/// A line that was not there before is dropped with the rate of the filter in which lines are remembered; at the end it
/// is said how many that should be. Without -n the filter takes 64 MiB, which is enough for 17 million different lines.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel uniq big.log > once.log
  tail -f access.log | umbel uniq -d ' ' -F 1 --print-field
  umbel uniq -n 1e9 -p 1e-9 < huge.txt")]
pub struct Args {
    /// Expect so many different lines (default: as many as the memory allows)
    #[arg(short = 'n', long, value_name = "N", value_parser = number::count)]
    capacity: Option<u64>,

    /// Drop at most this share of first occurrences
    #[arg(short = 'p', long, value_name = "RATE", value_parser = number::rate, default_value = "1e-6")]
    fpr: f64,

    /// Take so much memory
    #[arg(long, value_name = "SIZE", value_parser = number::bytes, conflicts_with = "capacity", default_value = "64MiB")]
    max_bytes: u64,

    /// Say nothing at the end
    #[arg(short, long)]
    quiet: bool,

    /// Show each line as soon as it is found; automatic when the input has nothing more at the moment
    #[arg(long)]
    line_buffered: bool,

    #[command(flatten)]
    input: InputArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let m = if args.capacity.is_some() { None } else { Some(args.max_bytes.saturating_mul(8)) };
    let known = Known { n: args.capacity, p: Some(args.fpr), m, k: None };
    let filter = AnyFilter::build(Kind::Blocked, &Spec::from_known(known)?)?;
    let capacity = filter.design().map_or(0, |design| design.capacity);
    let (mut distinct, mut dropped) = (0, 0.0);
    let (_, tally) =
        firsts::print(&args.input, filter.into(), Out::new(args.line_buffered)?, |filter, new| {
            let Stored::Set(filter) = filter else { return Ok(()) };
            // A new line was kept with the chance 1 - rate, so each that was kept stands for rate / (1 - rate) that were
            // not. These set no bit only because all of theirs were set, so the filter is as full as if they were in it.
            let mut lost = 0.0;
            for _ in 0..2 {
                let rate =
                    filter.predicted_rate((distinct as f64 + dropped + (new as f64 + lost) / 2.0) as u64)?;
                lost = new as f64 * rate / (1.0 - rate).max(f64::MIN_POSITIVE);
            }
            dropped += lost;
            distinct += new;
            Ok(())
        })?;
    if !args.quiet {
        warn(format_args!(
            "{distinct} different lines of {}; {} of them expected to be wrongly dropped",
            tally.keys,
            expected(dropped)
        ));
        if distinct > capacity {
            let hint = if args.capacity.is_some() { "-n" } else { "--max-bytes" };
            warn(format_args!(
                "that is more than the {capacity} for which {} holds: give a larger {hint}",
                percent(args.fpr)
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A number of lines of which there may be less than one.
fn expected(lines: f64) -> String {
    match lines {
        lines if lines >= 10.0 => format!("{lines:.0}"),
        lines if lines >= 0.01 => format!("{lines:.2}"),
        0.0 => "0".to_string(),
        lines => format!("{lines:.1e}"),
    }
}
