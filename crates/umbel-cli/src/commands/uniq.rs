//! `umbel uniq`: first occurrences, in the order of the input.

use crate::args::{headings, number};
use crate::filters::{TransientHashArgs, new_distinct};
use crate::input::InputArgs;
use crate::pipeline::dedup;
use crate::report::percent;
use crate::terminal::output::{Out, warn};
use anyhow::Result;
use std::process::ExitCode;
use umbel::aging::Window;
use umbel::any::Stored;
use umbel::sizing::{Given, MAX_KEYS};
use umbel::sketch::Distinct;
use umbel::spec::KindOptions;
use umbel::{AnyFilter, Digest, Kind, Spec};

/// Print each distinct line once, without sorting the input.
///
/// The lines printed so far are remembered in a filter of bounded size, so a first occurrence is
/// dropped at the filter's rate; a message at the end estimates how many were. Without -n the
/// filter takes 64 MiB, which is enough for 17 million distinct lines. With --window, lines are
/// forgotten after a number of other lines or a time, so the input may be endless.
///
/// The hash has a random secret: nobody can craft lines that make others be dropped, and a rate of
/// losses holds whatever the lines are. Which lines are lost differs from run to run. With --seed
/// it does not, and someone who knows the seed and chooses some of the lines can have any other
/// line dropped.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel uniq big.log > once.log
  umbel uniq -n 1e8 -p 1e-6 < big.log > once.log
  tail -f access.log | umbel uniq -d ' ' -F 1 --print-field
  tail -f alerts.log | umbel uniq --window 10m   # each alert once in 10 min
  umbel uniq --seed 7 big.log > once.log         # the same lines in every run")]
pub struct Args {
    /// Expected number of distinct lines (default: as many as the memory allows)
    #[arg(short = 'n', long, value_name = "N", value_parser = number::count, help_heading = headings::FILTER)]
    capacity: Option<u64>,

    /// Maximum share of first occurrences that are dropped
    #[arg(
        short = 'p',
        long,
        value_name = "RATE",
        value_parser = number::rate,
        default_value = "1e-6",
        help_heading = headings::FILTER
    )]
    fpr: f64,

    /// Memory of the filter [default: 64MiB, or the need of a window of lines]
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = number::bytes,
        conflicts_with = "capacity",
        help_heading = headings::FILTER
    )]
    max_bytes: Option<u64>,

    /// Forget a line after this many others (1e6) or after this time (10m), and print it again if
    /// it comes back
    #[arg(long, value_name = "LINES|TIME", value_parser = number::window, help_heading = headings::FILTER)]
    window: Option<Window>,

    /// Number of generations that forget in turn; more are more precise and slower
    #[arg(long, value_name = "G", default_value_t = 8, requires = "window", help_heading = headings::FILTER)]
    generations: u32,

    #[command(flatten)]
    hashing: TransientHashArgs,

    #[command(flatten)]
    input: InputArgs,

    /// Print no summary at the end
    #[arg(short, long, help_heading = headings::OUTPUT)]
    quiet: bool,

    /// Print each line as soon as it is found, not only when the input pauses
    #[arg(long, help_heading = headings::OUTPUT)]
    line_buffered: bool,
}

/// The default memory of the filter.
const DEFAULT_MEMORY_BYTES: u64 = 64 << 20;

/// A rate of up to this many times the target is not worth a warning.
const RATE_TOLERANCE: f64 = 1.02;

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut options = KindOptions::default();
    (options.aging.window, options.aging.generations) = (args.window, args.generations);
    // The filter only has to hold a window of lines.
    let n = args.capacity.or(match args.window {
        Some(Window::Keys(keys)) if args.max_bytes.is_none() => Some(keys),
        _ => None,
    });
    let m = if n.is_some() {
        None
    } else {
        Some(args.max_bytes.unwrap_or(DEFAULT_MEMORY_BYTES).saturating_mul(8))
    };
    let given = Given { n, p: Some(args.fpr), m, k: None };
    let kind = if args.window.is_some() { Kind::Aging } else { Kind::Blocked };
    let spec = Spec::from_given(given)?.with_options(options).with_hasher(args.hashing.hasher()?);
    let filter = AnyFilter::build(kind, &spec)?;
    let capacity = filter.design().map_or(0, |design| design.capacity);
    let mut losses =
        Losses { capacity, target_rate: args.fpr, distinct: new_distinct()?, ..Losses::default() };
    let (_, counts) = dedup::print_new(
        &args.input,
        filter.into(),
        Out::new(args.line_buffered)?,
        |filter, digests, new| losses.add(filter, digests, new),
    )?;
    let Losses { kept, worst_rate, forgets, .. } = losses;
    if !args.quiet {
        let what = if args.window.is_some() {
            "lines that are first in their window, out of"
        } else {
            "different lines of"
        };
        let assumption = match args.hashing.seed {
            Some(_) => "public hash: if no line was crafted to collide",
            None => "secret hash: for any lines",
        };
        warn(format_args!(
            "{kept} {what} {}; {} more expected to be wrongly dropped ({assumption})",
            counts.keys,
            format_expected(losses.expected())
        ));
        let hint = if args.capacity.is_some() { "-n" } else { "--max-bytes" };
        if forgets && worst_rate > RATE_TOLERANCE * args.fpr {
            warn(format_args!(
                "too many lines came in a window, or too many of them at once: at times {} were dropped instead of {}: give a larger {hint}",
                percent(worst_rate),
                percent(args.fpr)
            ));
        } else if !forgets && kept > capacity {
            warn(format_args!(
                "that is more than the {capacity} for which {} holds: give a larger {hint}",
                percent(args.fpr)
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The expected losses of `uniq`: new lines that were mistaken for repeated ones.
#[derive(Default)]
struct Losses {
    capacity: u64,
    /// The rate that was requested.
    target_rate: f64,
    kept: u64,
    /// Whether the filter forgets.
    forgets: bool,
    /// The highest rate at which a filter that forgets has dropped new lines.
    worst_rate: f64,
    /// The number of losses predicted by theory.
    predicted: f64,
    distinct: Distinct,
}

impl Losses {
    fn add(&mut self, filter: &Stored, digests: &[Digest], new: u64) -> Result<()> {
        let Stored::Set(filter) = filter else { return Ok(()) };
        if let AnyFilter::Aging(filter) = filter {
            // The rate after the block is an upper bound; and at most all dropped lines were
            // dropped wrongly.
            let rate = filter.rate_of_held()?;
            // Lines that are taken for repeated ones are not counted as held, but their bits are
            // refreshed. If there are many of them, count the bits.
            let rate = if rate > RATE_TOLERANCE * self.target_rate { filter.stats().rate_now } else { rate };
            let dropped = digests.len() as f64 - new as f64;
            // Above one half, the kept lines say little about the dropped ones: assume that all
            // were dropped wrongly.
            self.predicted +=
                if rate > 0.5 { dropped } else { (new as f64 * rate / (1.0 - rate)).min(dropped) };
            self.kept += new;
            self.worst_rate = self.worst_rate.max(rate);
            self.forgets = true;
            return Ok(());
        }
        self.distinct.insert_tile(digests);
        // In steps over which the rate is almost constant.
        let mut left = new;
        while left > 0 {
            let step = left.min((self.capacity / 64).max(1));
            // A new line is kept with probability 1 - rate, so each kept line stands for rate / (1
            // - rate) dropped ones, which fill the filter as much, since all their bits are set.
            let keys = self.kept as f64 + self.predicted + step as f64 / 2.0;
            let rate = filter.predicted_rate((keys as u64).min(MAX_KEYS))?;
            self.predicted += step as f64 * rate / (1.0 - rate).max(1e-6);
            self.kept += step;
            left -= step;
        }
        Ok(())
    }

    /// Returns the expected losses. Within the capacity they are predicted by theory, since they
    /// are too few to be counted. Beyond it, they are the estimated number of distinct lines
    /// without the kept ones.
    fn expected(&self) -> f64 {
        if self.forgets {
            return self.predicted;
        }
        let all = self.distinct.count();
        let counted = all.value - self.kept as f64;
        if counted > 5.0 * all.standard_error && self.kept as f64 + self.predicted > self.capacity as f64 {
            counted
        } else {
            self.predicted
        }
    }
}

/// Formats an expected number of lines, which may be less than one.
fn format_expected(lines: f64) -> String {
    match lines {
        lines if lines >= 10.0 => format!("{lines:.0}"),
        lines if lines >= 0.01 => format!("{lines:.2}"),
        0.0 => "0".to_string(),
        lines => format!("{lines:.1e}"),
    }
}
