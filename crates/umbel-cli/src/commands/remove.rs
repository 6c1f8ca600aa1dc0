//! `umbel remove`: removes lines from a filter that supports removal.

use crate::args::headings;
use crate::args::names::kinds_with;
use crate::filters::{LockArgs, Secrets, check_category, check_plain};
use crate::input::KeyedInputArgs;
use crate::pipeline;
use crate::terminal::exit::NOT_FOUND;
use crate::terminal::output::{self, Out, is_broken_pipe, warn};
use anyhow::{Result, bail};
use serde::Serialize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::kind::Category;
use umbel::{AnyFilter, Removed, file};

/// Remove lines from a filter that supports removal.
///
/// The kinds counting, variable-increment, deletable, cuckoo and quotient support removal. In the
/// others several keys share a bit, and clearing it for one would lose the others.
///
/// Lines that could not be removed are printed, and counted on standard error. Most of them are
/// certainly not in the filter; some may be in it but share all their cells with other keys, or
/// were added too often. Remove only lines that were added: removing a false positive removes
/// another key. The exit code is 0 if every line was removed, 1 if some were not, 2 if the filter
/// does not support removal or another error occurred; then the filter is unchanged.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel remove sessions.umbel --key 17
  umbel remove sessions.umbel ended.txt
  umbel remove -q stock.umbel sold.txt || echo 'some were not in stock'")]
pub struct Args {
    /// Filter to remove from
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    #[command(flatten)]
    input: KeyedInputArgs,

    #[command(flatten)]
    secrets: Secrets,

    #[command(flatten)]
    lock: LockArgs,

    /// Do not print the lines that could not be removed
    #[arg(short, long, help_heading = headings::OUTPUT)]
    quiet: bool,

    /// Print the numbers of lines that were and were not removed, as JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

/// The numbers of lines that were removed or not, with the names that scripts rely on.
#[derive(Default, Serialize)]
struct RemovalCounts {
    removed: u64,
    not_present: u64,
    not_deletable: u64,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    args.input.check_not_output(&args.filter)?;
    check_plain(&args.filter)?;
    let kind = file::inspect(&args.filter)?.kind;
    check_category(&args.filter, kind, Category::Set)?;
    if !kind.capabilities().remove {
        let why = if kind.capabilities().fixed {
            "it was made from all its keys at once"
        } else {
            "several keys share a bit, and clearing it for one would lose the others"
        };
        bail!(
            "{} is {} {kind} filter, which cannot remove keys: {why}; build it again without them, or with a kind that can: {}",
            args.filter.display(),
            kind.article(),
            kinds_with(|can| can.remove)
        );
    }
    let lock = args.lock.lock(&args.filter)?;
    let loaded = args.secrets.load(&args.filter, Category::Set)?;
    let options = loaded.options();
    let mut filter = AnyFilter::try_from(loaded.filter)?;
    let counts = match remove(args, &mut filter) {
        // It is unknown which lines the reader has seen.
        Err(error) if is_broken_pipe(&error) => {
            bail!("{} stays as it was, because the output was closed before the end", args.filter.display())
        }
        result => result?,
    };
    if counts.removed > 0 {
        file::save(&args.filter, &filter, &options)?;
    }
    drop(lock);
    if args.json {
        output::json(&counts)?;
    }
    let left = counts.not_present + counts.not_deletable;
    if left == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let shared = match counts.not_deletable {
        0 => String::new(),
        some => format!(", {some} share all their cells with other keys, or were added too often"),
    };
    warn(format_args!(
        "{left} of {} lines were not removed: {} are certainly not in the filter{shared}",
        left + counts.removed,
        counts.not_present
    ));
    Ok(ExitCode::from(NOT_FOUND))
}

/// Removes all lines, in their order: whether one can be removed may depend on those before it.
fn remove(args: &Args, filter: &mut AnyFilter) -> Result<RemovalCounts> {
    let hasher = filter.hasher().clone();
    let mut out = Out::new(false)?;
    let mut counts = RemovalCounts::default();
    let printing = !args.quiet && !args.json;
    pipeline::run(
        args.input.open()?.printing()?,
        args.input.threads(),
        |_, records| Ok((hasher.digest_batch(&records.keys()?), records.to_lines())),
        |(digests, lines), info| {
            let mut left = Vec::new();
            for (i, digest) in digests.into_iter().enumerate() {
                match filter.remove_digest(digest)? {
                    Removed::Removed => {
                        counts.removed += 1;
                        continue;
                    }
                    Removed::NotPresent => counts.not_present += 1,
                    Removed::NotDeletable => counts.not_deletable += 1,
                }
                if printing {
                    left.extend_from_slice(lines.get(i..i + 1));
                }
            }
            out.write(&left, info.caught_up)?;
            Ok(ControlFlow::Continue(()))
        },
    )?;
    out.finish()?;
    Ok(counts)
}
