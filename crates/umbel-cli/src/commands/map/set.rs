//! `umbel map set`: changes values in a map.

use crate::args::headings;
use crate::filters::{LockArgs, Secrets, check_category};
use crate::input::{OutputLines, PairArgs, check_not_output};
use crate::maps::{Values, read_pairs};
use crate::terminal::exit::NOT_FOUND;
use crate::terminal::output::{self, Out, is_broken_pipe, warn};
use anyhow::{Result, bail};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::kind::Category;
use umbel::{AnyMap, Kind, file};

/// Change values in a map that was built with --mutable.
///
/// Each line is a key, a tab and its new value; the last line of a key counts. Lines whose keys are
/// not in the map are printed, and counted on standard error. At the map's rate an absent key is
/// mistaken for a present one and overwrites the value of another key, so set only keys that the
/// map was built from.
///
/// The exit code is 0 if all values were set, 1 if some keys are not in the map, 2 after an error,
/// such as a value that the map cannot have; then the map is unchanged.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel map set seats.umbel changes.tsv
  printf '14C\\ttaken\\n' | umbel map set seats.umbel")]
pub struct Args {
    /// Map to change
    #[arg(value_name = "MAP")]
    map: PathBuf,

    #[command(flatten)]
    input: PairArgs,

    #[command(flatten)]
    secrets: Secrets,

    #[command(flatten)]
    lock: LockArgs,

    /// Do not print the lines whose keys are not in the map
    #[arg(short, long, help_heading = headings::OUTPUT)]
    quiet: bool,

    /// Print the numbers of values set and of keys that are not in the map, as JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

/// The numbers of values that were set or not, with the names that scripts rely on.
#[derive(Default, Serialize)]
struct SetCounts {
    set: u64,
    not_present: u64,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let input = args.input.keys();
    check_not_output(input.files(), &args.map)?;
    let kind = file::inspect(&args.map)?.kind;
    check_category(&args.map, kind, Category::Map)?;
    if kind != Kind::BloomierMutable {
        bail!(
            "the values of {} cannot be changed: it is a {kind} map, whose values are part of what it was made from; build it with --mutable",
            args.map.display()
        );
    }
    let lock = args.lock.lock(&args.map)?;
    let loaded = args.secrets.load(&args.map, Category::Map)?;
    let options = loaded.options();
    let mut map = AnyMap::try_from(loaded.filter)?;
    let counts = match set(args, &mut map) {
        // It is unknown which lines the reader has seen.
        Err(error) if is_broken_pipe(&error) => {
            bail!("{} stays as it was, because the output was closed before the end", args.map.display())
        }
        result => result?,
    };
    // Print before saving, so that nothing changes if the result cannot be reported.
    if args.json {
        output::json(&counts)?;
    }
    if counts.set > 0 {
        file::save(&args.map, &map, &options)?;
    }
    drop(lock);
    match counts.not_present {
        0 => return Ok(ExitCode::SUCCESS),
        1 => warn("1 key is not in the map"),
        more => warn(format_args!("{more} keys are not in the map")),
    }
    Ok(ExitCode::from(NOT_FOUND))
}

/// Sets all values, in the order of the lines.
fn set(args: &Args, map: &mut AnyMap) -> Result<SetCounts> {
    let hasher = map.hasher().clone();
    let mut values = match map.book() {
        Some(book) => Values::Named(book.iter().collect()),
        None => Values::Integers(map.largest_value()),
    };
    let mut out = Out::new(false)?;
    let mut counts = SetCounts::default();
    let printing = !args.quiet && !args.json;
    read_pairs(
        args.input.keys().open()?.printing()?,
        &args.input,
        &hasher,
        &mut values,
        |records| printing.then(|| records.to_lines()),
        |values, block, lines: Option<OutputLines>, _| {
            let numbers = values.numbers(block, &mut []);
            let mut absent = Vec::new();
            for (i, (digest, value)) in block.pairs(&numbers).enumerate() {
                if map.set_digest(digest, value)? {
                    counts.set += 1;
                    continue;
                }
                counts.not_present += 1;
                if let Some(lines) = &lines {
                    absent.extend_from_slice(lines.get(i..i + 1));
                }
            }
            out.write(&absent, false)
        },
    )?;
    out.finish()?;
    Ok(counts)
}
