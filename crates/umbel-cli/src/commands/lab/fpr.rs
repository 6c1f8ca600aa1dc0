//! `umbel lab fpr`: measures the rate of a filter on the user's keys.

use crate::args::headings;
use crate::filters::{ForeignArgs, Opening, Secrets, is_not_a_filter};
use crate::input::InputArgs;
use crate::pipeline;
use crate::report::{Rows, percent};
use crate::system::clock;
use crate::terminal::exit::NOT_FOUND;
use crate::terminal::output;
use anyhow::{Result, bail};
use serde_json::json;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::any::Stored;
use umbel::file::ReadOnly;
use umbel::foreign::ForeignFilter;
use umbel::kind::Category;
use umbel::{Answers, Batch, Hasher, file};

/// Measure the false-positive rate of a filter on keys that are not in it.
///
/// Every distinct line of --absent is queried once, and the share of positive answers is compared
/// with the rate that the filter's contents promise. For a map, that is the share of absent keys
/// that get a value. The printed interval is Wilson's 95 % interval. The verdict uses the 99.9 %
/// interval, since the other would reject one correct filter in twenty: the exit code is 1 if the
/// promised rate lies outside of it, whether the filter is worse or better. If a filter seems
/// worse, the keys are often in it after all.
#[derive(clap::Args)]
#[command(mut_arg("inputs", |arg| arg.long("absent").num_args(1).value_name("FILE").required(true).help(ABSENT_HELP).help_heading(headings::INPUT)))]
#[command(mut_arg("print_field", |arg| arg.hide(true)))]
#[command(after_help = "Examples:
  umbel lab fpr seen.umbel --absent others.txt
  umbel lab fpr seen.umbel --absent others.csv --csv -F 2 --json
  umbel lab fpr --format guava --funnel utf8 users.bloom --absent others.txt")]
pub struct Args {
    /// Filter to query
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    #[command(flatten)]
    foreign: ForeignArgs,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    secrets: Secrets,

    /// Print JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

const ABSENT_HELP: &str = "File with keys that are not in the filter, one per line (repeatable); `-` means standard input. Files \
                           compressed with gzip or zstd are decompressed";

pub fn run(args: &Args) -> Result<ExitCode> {
    let filter = match open_own(args) {
        Err(error) if is_not_a_filter(&error) => {
            Measured::Foreign(args.foreign.open_instead(&args.filter, error, Opening::Loaded)?)
        }
        opened => Measured::Own(opened?),
    };
    let Measurement { lines, queries, positives } = measure(args, &filter)?;
    if queries == 0 {
        bail!("there are no lines in {}", args.input.name(0));
    }
    let Promise { label, name, rate_now, rate_target } = filter.promise();
    // The rate of an empty filter may be -0.
    let (promised, measured) = (rate_now + 0.0, positives as f64 / queries as f64);
    let [shown, judged] = [Z_95, Z_999].map(|z| wilson(positives, queries, z));
    let verdict = Verdict::from_interval(promised, judged);
    let expected = promised * queries as f64;
    if args.json {
        output::json(&json!({
            label: name, "lines": lines, "queries": queries, "positives": positives,
            "measured": measured, "low": shown.0, "high": shown.1, "expected_positives": expected,
            "fpr_now": promised, "fpr_target": rate_target, "verdict": verdict.name(),
        }))?;
    } else {
        let mut rows = Rows::default();
        rows.add("filter", format!("{} ({})", args.filter.display(), name));
        rows.add("asked", format!("{queries} different keys in {lines} lines"));
        rows.add("positives", positives);
        let (low, high) = (percent(shown.0), percent(shown.1));
        rows.add("measured rate", format!("{}, from {low} to {high} (Wilson, 95 %)", percent(measured)));
        rows.add("promised now", format!("{}, for what is in it", percent(promised)));
        if let Some(target) = rate_target {
            rows.add("at capacity", percent(target));
        }
        rows.add("verdict", verdict.describe());
        output::text(rows)?;
        if expected < MIN_EXPECTED_POSITIVES {
            output::warn(format_args!(
                "only {expected:.1} positives were to be expected: more keys would tell more"
            ));
        }
    }
    Ok(if verdict == Verdict::AsPromised { ExitCode::SUCCESS } else { ExitCode::from(NOT_FOUND) })
}

fn open_own(args: &Args) -> Result<ReadOnly<Stored>> {
    let wanted = match file::inspect(&args.filter)?.kind.category() {
        Category::Map => Category::Map,
        _ => Category::Set,
    };
    let mut filter = args.secrets.map_verified(&args.filter, wanted)?.filter;
    args.foreign.check_own(&args.filter)?;
    filter.advance(clock::now())?;
    Ok(filter)
}

/// The filter that is measured.
enum Measured {
    Own(ReadOnly<Stored>),
    Foreign(ForeignFilter),
}

/// The rates that a filter promises.
struct Promise {
    /// `kind` for a filter of umbel, `format` for one of another program.
    label: &'static str,
    name: String,
    rate_now: f64,
    rate_target: Option<f64>,
}

impl Measured {
    fn promise(&self) -> Promise {
        match self {
            Measured::Own(filter) => {
                let stats = filter.stats();
                let (rate_now, rate_target) = (stats.rate_now, stats.rate_target);
                Promise { label: "kind", name: filter.kind().to_string(), rate_now, rate_target }
            }
            Measured::Foreign(filter) => {
                let facts = filter.facts();
                let (rate_now, rate_target) = (facts.rate_now, facts.design.map(|design| design.rate));
                Promise { label: "format", name: filter.format().to_string(), rate_now, rate_target }
            }
        }
    }

    fn contains_batch(&self, keys: &impl Batch) -> Result<Answers> {
        Ok(match self {
            Measured::Own(filter) => filter.contains_batch(keys),
            Measured::Foreign(filter) => filter.contains_batch(keys)?,
        })
    }
}

/// With fewer expected positives, the measurement says little.
const MIN_EXPECTED_POSITIVES: f64 = 10.0;

struct Measurement {
    lines: u64,
    /// The number of distinct keys.
    queries: u64,
    positives: u64,
}

/// Queries the filter for every distinct key.
fn measure(args: &Args, filter: &Measured) -> Result<Measurement> {
    let input = args.input.with_funnel(args.foreign.funnel);
    let hasher = Hasher::default();
    let mut seen = HashSet::new();
    let mut measurement = Measurement { lines: 0, queries: 0, positives: 0 };
    pipeline::run(
        input.open()?,
        input.threads(),
        |_, records| {
            let keys = records.keys()?;
            Ok((hasher.digest_batch(&keys), filter.contains_batch(&keys)?))
        },
        |(digests, answers), _| {
            measurement.lines += digests.len() as u64;
            for (digest, answer) in digests.iter().zip(answers.iter()) {
                if seen.insert(digest.get()) {
                    measurement.queries += 1;
                    measurement.positives += u64::from(answer);
                }
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(measurement)
}

/// Quantile of the normal distribution for intervals of 95 %.
pub const Z_95: f64 = 1.959_963_985;
/// Quantile of the normal distribution for intervals of 99.9 %.
const Z_999: f64 = 3.290_526_731;

/// Returns the interval of Wilson (1927) for a share.
pub fn wilson(positives: u64, queries: u64, z: f64) -> (f64, f64) {
    let (n, share) = (queries as f64, positives as f64 / queries as f64);
    let middle = share + z * z / (2.0 * n);
    let half = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    // Rounding would miss the ends of the scale.
    let low = if positives == 0 { 0.0 } else { ((middle - half) / scale).max(0.0) };
    let high = if positives == queries { 1.0 } else { ((middle + half) / scale).min(1.0) };
    (low, high)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    AsPromised,
    Worse,
    Better,
}

impl Verdict {
    fn from_interval(promised: f64, (low, high): (f64, f64)) -> Verdict {
        match promised {
            promised if promised < low => Verdict::Worse,
            promised if promised > high => Verdict::Better,
            _ => Verdict::AsPromised,
        }
    }

    /// Returns the name of the verdict, for programs.
    fn name(self) -> &'static str {
        match self {
            Verdict::AsPromised => "as promised",
            Verdict::Worse => "worse",
            Verdict::Better => "better",
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Verdict::AsPromised => "as promised: the promise lies in the interval of 99.9 %",
            Verdict::Worse => {
                "worse than promised: the promise lies below the interval of 99.9 %; are some of these keys in the filter?"
            }
            Verdict::Better => "better than promised: the promise lies above the interval of 99.9 %",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The textbook figures for 8 of 10, and the closed form for 0 of n, z²/(n + z²).
    #[test]
    fn intervals_are_those_of_wilson() {
        let (low, high) = wilson(8, 10, Z_95);
        assert!((low - 0.4902).abs() < 5e-5 && (high - 0.9433).abs() < 5e-5, "{low} {high}");
        let (low, high) = wilson(0, 100, Z_999);
        assert!(low == 0.0 && (high - Z_999 * Z_999 / (100.0 + Z_999 * Z_999)).abs() < 1e-12, "{high}");
        for queries in 1..1000 {
            assert_eq!((wilson(0, queries, Z_999).0, wilson(queries, queries, Z_999).1), (0.0, 1.0));
        }
    }

    #[test]
    fn a_rate_on_either_side_of_the_interval_is_outside() {
        let interval = (0.009, 0.011);
        assert_eq!(Verdict::from_interval(0.01, interval), Verdict::AsPromised);
        assert_eq!(Verdict::from_interval(0.008, interval), Verdict::Worse);
        assert_eq!(Verdict::from_interval(0.012, interval), Verdict::Better);
    }
}
