//! `umbel convert`: converts a filter to another kind.

use crate::args::{headings, names};
use crate::filters::{FormatArg, Secrets, Target, is_not_a_filter};
use anyhow::{Context, Result, anyhow, bail};
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::any::Stored;
use umbel::foreign::Format;
use umbel::kind::Category;
use umbel::{AnyFilter, Kind};

/// Convert a filter to another kind or format, if possible.
///
/// A counting, deletable or Floom filter can become the standard filter of the same keys, which
/// takes less memory but does not support removal. A filter does not hold its keys, and the
/// positions of its cells depend on its kind, so other conversions are refused. Converting to the
/// same kind copies the filter.
///
/// A filter that another program wrote is copied with --to, and unpacked if it is compressed. Other
/// formats place the bits of a key by other hashes, so conversions between formats are refused.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel convert sessions.umbel --kind standard -o final.umbel
  umbel convert hosts.bloom.gz --to dcso -o hosts.bloom")]
pub struct Args {
    /// Filter to convert
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Kind to convert to
    #[arg(
        long,
        value_parser = names::set_kind(),
        required_unless_present = "to",
        help_heading = headings::FILTER
    )]
    kind: Option<Kind>,

    #[command(flatten)]
    format: FormatArg,

    /// Format to convert to, that of another program
    #[arg(
        long,
        value_name = "FORMAT",
        value_parser = names::format(),
        hide_possible_values = true,
        conflicts_with = "kind",
        help_heading = headings::FOREIGN
    )]
    to: Option<Format>,

    #[command(flatten)]
    secrets: Secrets,

    #[command(flatten)]
    target: Target,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    args.target.check(std::slice::from_ref(&args.filter), &args.secrets)?;
    let loaded = match args.secrets.load(&args.filter, Category::Set) {
        Err(error) if is_not_a_filter(&error) => return convert_foreign(args, error),
        loaded => loaded?,
    };
    args.format.check_own(&args.filter)?;
    let (from, options) = (loaded.filter.kind(), loaded.options());
    let Some(kind) = args.kind else {
        let to = args.to.context("clap requires --kind or --to")?;
        let hash = match &loaded.filter {
            Stored::Literature(filter) => filter.scheme().family().to_string(),
            _ => OWN_HASHES.to_string(),
        };
        return Err(other_hash(("umbel", &hash), (to.name(), to.hash_name()), &format!("--format {to}")));
    };
    let converted = match (loaded.filter, kind) {
        (filter, kind) if from == kind => filter,
        (Stored::Set(AnyFilter::Counting(filter)), Kind::Standard) => filter.to_standard()?.into(),
        (Stored::Set(AnyFilter::Deletable(filter)), Kind::Standard) => filter.to_standard()?.into(),
        (Stored::Set(AnyFilter::Floom(filter)), Kind::Standard) => filter.to_standard()?.into(),
        (_, kind) => bail!(
            "{} {from} filter cannot become {} {kind} one: it does not hold its keys, and the two kinds keep their bits at different places; build it again from the keys with `umbel build --kind {kind}`",
            from.article(),
            kind.article()
        ),
    };
    args.target.save(&converted, options)?;
    Ok(ExitCode::SUCCESS)
}

/// Copies a filter of another program.
fn convert_foreign(args: &Args, error: anyhow::Error) -> Result<ExitCode> {
    let filter = args.format.load_instead(&args.filter, error)?;
    let from = filter.format();
    let from_hash = (from.name(), from.hash_name());
    match args.to {
        Some(to) if to == from => args.target.save_foreign(&filter)?,
        Some(to) => {
            return Err(other_hash(from_hash, (to.name(), to.hash_name()), &format!("--format {to}")));
        }
        None => {
            let kind = args.kind.context("clap requires --kind or --to")?;
            return Err(other_hash(from_hash, ("umbel", OWN_HASHES), &format!("--kind {kind}")));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The hashes of filters of umbel.
const OWN_HASHES: &str = "XXH3, SipHash or BLAKE3";

/// Returns the error for a conversion between formats, each with the name of its hash, and the
/// option of `umbel build` that leads to the same end.
fn other_hash(from: (&str, &str), to: (&str, &str), option: &str) -> anyhow::Error {
    let ((from, from_hash), (to, to_hash)) = (from, to);
    let reason = if from_hash == to_hash {
        format!("both hash a key with {from_hash}, but find its bits differently")
    } else {
        format!("the hash of {from} is {from_hash}, that of {to} is {to_hash}")
    };
    anyhow!(
        "a filter of {from} cannot become one of {to}: {reason}, and a filter does not hold the keys to hash them again; build it from the keys with `umbel build {option}`"
    )
}
