//! `umbel count get`: looks up the counts of keys.

use crate::args::{headings, names};
use crate::filters::{Secrets, check_whole};
use crate::input::{KeyedInputArgs, Records, explain_swapped};
use crate::pipeline::Select;
use anyhow::Result;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::file::Mapped;
use umbel::kind::Category;
use umbel::space_code::{Estimator, Multiplicity};

/// Print each line with the estimated count of its key and a 95 % interval.
///
/// Three columns follow each line, separated by tabs: the estimate with one decimal, and the lower
/// and upper limit of the interval. All three are 0 for a key that was certainly never recorded. If
/// a key was recorded more often than the multiset can count, the estimate starts with `>=` and the
/// upper limit is inf. Lines are printed in the order of the input with any number of threads. The
/// exit code is 0 if a key may have been recorded, 1 if none was.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel count get hosts.umbel --key 192.0.2.7 --key 192.0.2.8
  umbel count get hosts.umbel suspects.txt
  umbel count get --estimator mle hosts.umbel suspects.txt
  umbel count get hosts.umbel suspects.txt | sort -t \"$(printf '\\t')\" -k 2rn")]
pub struct Args {
    /// Multiset to query
    #[arg(value_name = "MULTISET")]
    counts: PathBuf,

    #[command(flatten)]
    input: KeyedInputArgs,

    #[command(flatten)]
    secrets: Secrets,

    #[command(flatten)]
    estimator: EstimatorArg,

    /// Print each line as soon as it is looked up, not only when the input pauses
    #[arg(long, help_heading = headings::OUTPUT)]
    line_buffered: bool,
}

/// The option for the rule that turns the groups found into a count.
#[derive(clap::Args)]
pub struct EstimatorArg {
    /// Estimate from the groups found: mve is the number of recordings for which they are the mean,
    /// mle the most likely one, a whole number of recordings on the level that is read
    #[arg(
        long,
        value_name = "NAME",
        default_value_t,
        value_parser = names::estimator(),
        help_heading = headings::OUTPUT
    )]
    pub estimator: Estimator,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let counts = args
        .secrets
        .map(&args.counts, Category::Multiset)
        .map_err(|error| explain_swapped(error, "count get MULTISET", &args.counts, args.input.files()))?;
    Select { line_buffered: args.line_buffered, count: false, quiet: false }.run(
        &args.input,
        |records| query(args, &counts, records),
        || check_whole(&counts, &args.counts),
    )
}

/// Returns the number of keys that may have been recorded, and the output for all of them.
fn query(args: &Args, counts: &Mapped, records: &Records) -> Result<(u64, Vec<u8>)> {
    let answers = counts.estimate_batch(&records.keys()?, args.estimator.estimator)?;
    let mut out = Vec::new();
    for (key, count) in answers.iter().enumerate() {
        args.input.print_with(records, key, &mut out, |out| print_count(count, out));
    }
    Ok((answers.iter().filter(|count| !never(count)).count() as u64, out))
}

/// Appends the three columns of a count.
pub(super) fn print_count(count: &Multiplicity, out: &mut Vec<u8>) {
    let Multiplicity { low, high, .. } = count;
    // Writing to memory cannot fail.
    let _ = match never(count) {
        true => write!(out, "0\t0\t0"),
        false => write!(out, "{count}\t{low:.0}\t{high:.0}"),
    };
}

/// Returns whether a key was certainly never recorded: a key that may have been has a high limit of
/// at least one.
pub(super) fn never(count: &Multiplicity) -> bool {
    count.high == 0.0
}
