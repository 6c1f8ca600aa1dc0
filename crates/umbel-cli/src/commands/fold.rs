//! `umbel fold`: folds a filter in half.

use crate::args::{headings, number};
use crate::filters::{Secrets, Target, warn_if_overfull};
use crate::report::percent;
use crate::terminal::output::warn;
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::AnyFilter;
use umbel::kind::Category;

/// Shrink a filter that is too large, by folding it in half.
///
/// A folded filter holds the same keys in half the memory, at a higher rate. With -p the filter is
/// folded as often as its rate stays within RATE and its size is even, so that a filter built for
/// far too many keys shrinks towards the size it needs. Every filter can be folded at least three
/// times, one of the kind standard six times.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel fold -p 1% large.umbel -o small.umbel
  umbel fold --times 2 large.umbel -o quarter.umbel")]
pub struct Args {
    /// Filter to fold
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Number of times to fold
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        conflicts_with = "fpr",
        help_heading = headings::FILTER
    )]
    times: u32,

    /// Fold as often as the rate stays within RATE
    #[arg(short = 'p', long, value_name = "RATE", value_parser = number::rate, help_heading = headings::FILTER)]
    fpr: Option<f64>,

    #[command(flatten)]
    secrets: Secrets,

    #[command(flatten)]
    target: Target,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    args.target.check(std::slice::from_ref(&args.filter), &args.secrets)?;
    let loaded = args.secrets.map_verified(&args.filter, Category::Set)?;
    let options = loaded.options();
    let whole = loaded.filter.into_kind::<AnyFilter>()?;
    // The first fold reads the mapped file, so no copy is needed.
    let mut folded: Option<AnyFilter> = None;
    match args.fpr {
        None => {
            for _ in 0..args.times {
                folded = Some(folded.as_ref().unwrap_or(&whole).fold()?);
            }
        }
        Some(most) => {
            let now = whole.stats().rate_now;
            if now > most {
                bail!(
                    "its rate is {} already, above {}: folding only raises it",
                    percent(now),
                    percent(most)
                );
            }
            loop {
                match folded.as_ref().unwrap_or(&whole).fold() {
                    Ok(half) if half.stats().rate_now > most => break,
                    Ok(half) => folded = Some(half),
                    Err(error @ umbel::Error::Parameter { .. }) => {
                        warn(format_args!("it cannot be folded further: {error}"));
                        break;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
    let filter = match folded {
        Some(folded) => folded.into(),
        None => whole.try_clone()?.into(),
    };
    warn_if_overfull(&filter);
    args.target.save(&filter, options)?;
    Ok(ExitCode::SUCCESS)
}
