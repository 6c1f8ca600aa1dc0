//! `umbel check`: prints the lines that may be in a filter.

use crate::args::headings;
use crate::filters::{FilterGroup, ForeignArgs, Secrets};
use crate::input::{KeyedInputArgs, Records, explain_swapped};
use crate::pipeline::{Select, bit_runs};
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::Answers;

/// Print the lines that may be in a filter.
///
/// A line that is not printed is certainly not in the filter. A printed line may be a false
/// positive, at the rate that `umbel info` reports. Lines are printed in the order of the input
/// with any number of threads. A filter in shards is given by its directory. The exit code is 0 if
/// a line was selected, 1 if none was.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel check seen.umbel --key banana       # one key
  umbel check seen.umbel new.txt            # lines that may have been seen
  umbel check -v words.umbel essay.txt      # lines that are certainly not words
  umbel check --tag bad.umbel --with worse.umbel hosts.txt
  umbel check --format guava --funnel utf8 users.bloom names.txt
  tail -f access.log | umbel check -d ' ' -F 1 bad.umbel")]
pub struct Args {
    /// Filter to query
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Print the lines that are certainly not in the filter instead
    #[arg(short = 'v', long, help_heading = headings::SEARCH)]
    invert: bool,

    /// Query this filter too (repeatable); see --any, --all and --tag
    #[arg(long = "with", value_name = "FILTER", help_heading = headings::SEARCH)]
    others: Vec<PathBuf>,

    /// Select lines that may be in any of the filters (default)
    #[arg(long, conflicts_with = "all", help_heading = headings::SEARCH)]
    any: bool,

    /// Select lines that may be in all of the filters
    #[arg(long, help_heading = headings::SEARCH)]
    all: bool,

    #[command(flatten)]
    foreign: ForeignArgs,

    #[command(flatten)]
    input: KeyedInputArgs,

    #[command(flatten)]
    secrets: Secrets,

    /// Print only the number of selected lines
    #[arg(short, long, help_heading = headings::OUTPUT)]
    count: bool,

    /// Print nothing and stop at the first selected line; only the exit code matters
    #[arg(short, long, conflicts_with = "count", help_heading = headings::OUTPUT)]
    quiet: bool,

    /// Append a column with the filters that the line may be in
    #[arg(long, conflicts_with_all = ["invert", "count", "quiet"], help_heading = headings::OUTPUT)]
    tag: bool,

    /// Print all lines, with a column that says maybe or no
    #[arg(long, conflicts_with_all = ["invert", "count", "quiet"], help_heading = headings::OUTPUT)]
    label: bool,

    /// Print each line as soon as it is found, not only when the input pauses
    #[arg(long, help_heading = headings::OUTPUT)]
    line_buffered: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let paths: Vec<&PathBuf> = std::iter::once(&args.filter).chain(&args.others).collect();
    let filters = FilterGroup::open(&args.secrets, &args.foreign, paths.iter().copied())
        .map_err(|error| explain_swapped(error, "check FILTER", &args.filter, args.input.files()))?;
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let Args { line_buffered, count, quiet, .. } = *args;
    Select { line_buffered, count, quiet }.run(
        &args.input.with_funnel(args.foreign.funnel),
        |records| {
            let answers = filters.query(&records.keys()?)?;
            let selected = args.select(&answers, records.key_count());
            Ok(args.print(records, &names, &answers, &selected))
        },
        || filters.check_whole(),
    )
}

impl Args {
    /// Combines the answers of the filters, and returns the selected lines as a bit mask.
    fn select(&self, answers: &[Answers], lines: usize) -> Vec<u64> {
        let mut selected = answers[0].as_words().to_vec();
        for other in &answers[1..] {
            for (ours, theirs) in selected.iter_mut().zip(other.as_words()) {
                *ours = if self.all { *ours & theirs } else { *ours | theirs };
            }
        }
        if self.invert {
            for (word, start) in selected.iter_mut().zip((0..).step_by(64)) {
                let len = lines - start;
                *word = !*word & if len < 64 { (1 << len) - 1 } else { !0 };
            }
        }
        selected
    }

    /// Returns the number of selected lines, and their output. With --label, all lines are
    /// selected.
    fn print(
        &self,
        records: &Records,
        names: &[String],
        answers: &[Answers],
        selected: &[u64],
    ) -> (u64, Vec<u8>) {
        let mut out = Vec::new();
        let count: u64 = selected.iter().map(|word| u64::from(word.count_ones())).sum();
        if self.quiet || self.count {
            return (count, out);
        }
        let print_with_columns = |key: usize, out: &mut Vec<u8>| {
            self.input.print_with(records, key, out, |out| {
                if self.label {
                    let is_member = selected[key / 64] >> (key % 64) & 1 == 1;
                    out.extend_from_slice(if is_member { b"maybe" } else { b"no" });
                }
                if self.label && self.tag {
                    out.push(b'\t');
                }
                if self.tag {
                    let found =
                        names.iter().zip(answers).filter(|(_, answers)| answers.get(key) == Some(true));
                    let found: Vec<&str> = found.map(|(name, _)| &name[..]).collect();
                    out.extend_from_slice(found.join(",").as_bytes());
                }
            });
        };
        if self.label {
            (0..records.key_count()).for_each(|key| print_with_columns(key, &mut out));
            return (records.key_count() as u64, out);
        }
        for run in bit_runs(selected) {
            if self.tag {
                run.for_each(|key| print_with_columns(key, &mut out));
            } else {
                records.print_lines(run, &mut out);
            }
        }
        (count, out)
    }
}
