//! `umbel uniq`: first occurrences, in the order of the input.

use crate::args::number;
use crate::filters::new_distinct;
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

/// Print the first occurrence of every line, without sorting, in bounded memory.
///
/// With --window lines are forgotten again, after so many others or so much time, and memory suffices for ever.
///
/// A line that was not there before is dropped with the rate of the filter in which lines are remembered; at the end it
/// is said how many that should be. Without -n the filter takes 64 MiB, which is enough for 17 million different lines.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel uniq big.log > once.log
  tail -f access.log | umbel uniq -d ' ' -F 1 --print-field
  tail -f alerts.log | umbel uniq --window 10m        the same alert at most every ten minutes or so
  umbel uniq -n 1e9 -p 1e-8 < huge.txt")]
pub struct Args {
    /// Expect so many different lines (default: as many as the memory allows)
    #[arg(short = 'n', long, value_name = "N", value_parser = number::count)]
    capacity: Option<u64>,

    /// Drop at most this share of first occurrences
    #[arg(short = 'p', long, value_name = "RATE", value_parser = number::rate, default_value = "1e-6")]
    fpr: f64,

    /// Take so much memory [default: 64MiB, or what a window of lines needs]
    #[arg(long, value_name = "SIZE", value_parser = number::bytes, conflicts_with = "capacity")]
    max_bytes: Option<u64>,

    /// Forget a line after so many others (1e6) or so much time (10m), so that memory suffices for ever; one that comes
    /// again later is printed again
    #[arg(long, value_name = "LINES|TIME", value_parser = number::window)]
    window: Option<Window>,

    /// Forget in so many parts; the more, the sharper, and the slower
    #[arg(long, value_name = "G", default_value_t = 8, requires = "window")]
    generations: u32,

    /// Say nothing at the end
    #[arg(short, long)]
    quiet: bool,

    /// Show each line as soon as it is found; automatic when the input has nothing more at the moment
    #[arg(long)]
    line_buffered: bool,

    #[command(flatten)]
    input: InputArgs,
}

/// The memory unless something tells how much is needed.
const MEMORY: u64 = 64 << 20;

/// How far above the rate asked for is worth mentioning.
const ENOUGH: f64 = 1.02;

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut options = KindOptions::default();
    (options.aging.window, options.aging.generations) = (args.window, args.generations);
    // A window of lines is all it has to hold.
    let n = args.capacity.or(match args.window {
        Some(Window::Keys(keys)) if args.max_bytes.is_none() => Some(keys),
        _ => None,
    });
    let m = if n.is_some() { None } else { Some(args.max_bytes.unwrap_or(MEMORY).saturating_mul(8)) };
    let given = Given { n, p: Some(args.fpr), m, k: None };
    let kind = if args.window.is_some() { Kind::Aging } else { Kind::Blocked };
    let filter = AnyFilter::build(kind, &Spec::from_given(given)?.with_options(options))?;
    let capacity = filter.design().map_or(0, |design| design.capacity);
    let mut losses = Losses { capacity, asked: args.fpr, seen: new_distinct()?, ..Losses::default() };
    let (_, counts) = dedup::print_new(
        &args.input,
        filter.into(),
        Out::new(args.line_buffered)?,
        |filter, digests, new| losses.add(filter, digests, new),
    )?;
    let Losses { kept, worst, forgets, .. } = losses;
    if !args.quiet {
        let what = if args.window.is_some() {
            "lines that are first in their window, out of"
        } else {
            "different lines of"
        };
        warn(format_args!(
            "{kept} {what} {}; {} more expected to be wrongly dropped",
            counts.keys,
            expected(losses.expected())
        ));
        let hint = if args.capacity.is_some() { "-n" } else { "--max-bytes" };
        if forgets && worst > ENOUGH * args.fpr {
            warn(format_args!(
                "too many lines came in a window, or too many of them at once: at times {} were dropped instead of {}: give a larger {hint}",
                percent(worst),
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

/// What `uniq` loses: lines that were not there before, and were taken for repeated ones.
#[derive(Default)]
struct Losses {
    capacity: u64,
    /// The rate asked for.
    asked: f64,
    kept: u64,
    /// Whether the filter forgets.
    forgets: bool,
    /// The highest rate at which it has dropped lines, if it forgets.
    worst: f64,
    /// What theory expects so far.
    lost: f64,
    seen: Distinct,
}

impl Losses {
    fn add(&mut self, filter: &Stored, digests: &[Digest], new: u64) -> Result<()> {
        let Stored::Set(filter) = filter else { return Ok(()) };
        if let AnyFilter::Aging(filter) = filter {
            // As it is now, which is worse than it was for the first of these lines; but no more than all that were
            // dropped were dropped wrongly.
            let rate = filter.rate_of_held()?;
            // Lines that are taken for repeated ones are not counted as held, but have set the same bits: where there are
            // many of them, only the bits tell.
            let rate = if rate > ENOUGH * self.asked { filter.stats().rate_now } else { rate };
            let dropped = digests.len() as f64 - new as f64;
            // From one half on, those that were kept tell little about those that were not: it may be all of them.
            self.lost += if rate > 0.5 { dropped } else { (new as f64 * rate / (1.0 - rate)).min(dropped) };
            self.kept += new;
            self.worst = self.worst.max(rate);
            self.forgets = true;
            return Ok(());
        }
        self.seen.insert_tile(digests);
        // In steps over which the rate hardly changes.
        let mut left = new;
        while left > 0 {
            let step = left.min((self.capacity / 64).max(1));
            // A new line was kept with the chance 1 - rate, so each that was kept stands for rate / (1 - rate) that were
            // not; and those fill the filter as much, since all their bits are set.
            let keys = self.kept as f64 + self.lost + step as f64 / 2.0;
            let rate = filter.predicted_rate((keys as u64).min(MAX_KEYS))?;
            self.lost += step as f64 * rate / (1.0 - rate).max(1e-6);
            self.kept += step;
            left -= step;
        }
        Ok(())
    }

    /// Within the capacity, what theory says: it is far less than any count could tell. Beyond it, where theory builds on
    /// ever fewer lines that are kept, what a count of all different lines leaves.
    fn expected(&self) -> f64 {
        if self.forgets {
            return self.lost;
        }
        let all = self.seen.count();
        let counted = all.value - self.kept as f64;
        if counted > 5.0 * all.standard_error && self.kept as f64 + self.lost > self.capacity as f64 {
            counted
        } else {
            self.lost
        }
    }
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
