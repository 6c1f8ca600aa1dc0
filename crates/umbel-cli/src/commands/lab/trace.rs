//! `umbel lab trace`: shows worked examples of the literature, or the user's own keys, step by step.

use crate::args::{headings, names, number};
use crate::filters;
use crate::report::Rows;
use crate::terminal::output;
use anyhow::{Context, Result, anyhow, bail};
use clap::builder::PossibleValuesParser;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel::Kind;
use umbel::file::{self, Placing};
use umbel_lab::trace::{Example, Formula, Operation, OwnHash, OwnKeys, Trace, examples, find};

/// Show a worked example of the literature, or your own keys, step by step.
///
/// Each step shows the array before and after, the cells that were set, the zero that proves
/// absence, and the keys that share each cell; for a false positive, these are the keys that cause
/// it. The examples are executed, not copied. Without a name, the examples are listed.
///
/// With --bits, the keys are your own: they are inserted, then removed, then asked for. Their
/// positions are those of a filter of umbel with as many bits and hash functions, or follow from
/// your own formulas. A key cannot contain a comma.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel lab trace
  umbel lab trace search
  umbel lab trace deletion --svg deletion.svg
  umbel lab trace all --svg pictures
  umbel lab trace --bits 10 --insert rose,lily --ask rose,tulip
  umbel lab trace --bits 10 --insert 2,4,9 --ask 5,12 --hash 'x, 2x+3 mod 10'
  umbel lab trace --bits 10 --kind counting --insert a,b --remove a --ask b")]
#[command(group(clap::ArgGroup::new("subject").args(["example", "bits"])))]
pub struct Args {
    /// Example to show; `all` shows all of them
    #[arg(value_name = "EXAMPLE", ignore_case = true, hide_possible_values = true, value_parser = example_names())]
    example: Option<String>,

    /// Number of bits of a filter of your own keys, or of its counters
    #[arg(long, value_name = "M", value_parser = number::count, help_heading = headings::FILTER)]
    bits: Option<u64>,

    /// Number of positions of each key
    #[arg(
        long,
        value_name = "K",
        default_value_t = 3,
        requires = "bits",
        conflicts_with = "hash",
        help_heading = headings::FILTER
    )]
    hashes: u32,

    /// Hash functions of your own: formulas of x, such as 'x mod 10, 2x+3 mod 10'; without mod they
    /// are taken modulo the number of bits
    #[arg(long, value_name = "FORMULA,...", requires = "bits", help_heading = headings::FILTER)]
    hash: Option<String>,

    /// Kind of filter
    #[arg(
        long,
        default_value_t = Kind::Standard,
        value_parser = names::traced_kind(),
        requires = "bits",
        help_heading = headings::FILTER
    )]
    kind: Kind,

    /// Keys to insert (repeatable)
    #[arg(
        long,
        value_name = "KEY,...",
        value_delimiter = ',',
        requires = "bits",
        help_heading = headings::KEYS
    )]
    insert: Vec<String>,

    /// Keys to remove after that (repeatable)
    #[arg(
        long,
        value_name = "KEY,...",
        value_delimiter = ',',
        requires = "bits",
        help_heading = headings::KEYS
    )]
    remove: Vec<String>,

    /// Keys to ask for in the end (repeatable)
    #[arg(
        long,
        value_name = "KEY,...",
        value_delimiter = ',',
        requires = "bits",
        help_heading = headings::KEYS
    )]
    ask: Vec<String>,

    /// List the examples: name, title and source
    #[arg(long, conflicts_with_all = ["subject", "svg"], help_heading = headings::OUTPUT)]
    list: bool,

    /// Draw the steps into FILE; for `all`, FILE is a directory with a file for each example
    #[arg(long, value_name = "FILE", requires = "subject", help_heading = headings::OUTPUT)]
    svg: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(short, long, requires = "svg", help_heading = headings::OUTPUT)]
    force: bool,
}

const ALL: &str = "all";

fn example_names() -> PossibleValuesParser {
    PossibleValuesParser::new(examples().iter().map(|example| example.name).chain([ALL]))
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let traces: Vec<Trace> = match (args.bits, &args.example) {
        (Some(bits), _) => vec![args.own_keys(bits)?.run()?],
        (None, None) => {
            output::text(list())?;
            return Ok(ExitCode::SUCCESS);
        }
        (None, Some(name)) if name.eq_ignore_ascii_case(ALL) => {
            examples().iter().map(Example::run).collect::<Result<_, _>>()?
        }
        (None, Some(name)) => {
            let example = find(name).ok_or_else(|| anyhow!("there is no example {name}"))?;
            vec![example.run()?]
        }
    };
    if let Some(path) = &args.svg {
        draw(args, path, &traces)?;
    }
    for (number, trace) in traces.iter().enumerate() {
        let apart = if number > 0 { "\n" } else { "" };
        output::text(format_args!("{apart}{}", trace.to_text()))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn own_keys(&self, bits: u64) -> Result<OwnKeys> {
        let hash = match &self.hash {
            // A filter of 0 bits is refused later, whatever the formulas are.
            Some(text) => OwnHash::Formulas(Formula::parse_list(text, bits.max(1)).context("--hash")?),
            None => OwnHash::Library(self.hashes),
        };
        let trimmed = |keys: &[String]| keys.iter().map(|key| key.trim().to_owned()).collect::<Vec<_>>();
        if self.insert.is_empty() && self.ask.is_empty() {
            bail!("there are no keys: give some with --insert, and others with --ask");
        }
        Ok(OwnKeys {
            kind: self.kind,
            bits: usize::try_from(bits).unwrap_or(usize::MAX),
            hash,
            operations: Operation::sequence(
                &trimmed(&self.insert),
                &trimmed(&self.remove),
                &trimmed(&self.ask),
            ),
        })
    }
}

fn list() -> Rows {
    let mut rows = Rows::default();
    for example in examples() {
        rows.add(example.name, example.title);
        rows.add("", example.source);
    }
    rows
}

fn draw(args: &Args, path: &Path, traces: &[Trace]) -> Result<()> {
    if let [trace] = traces {
        return write(path, trace.to_svg()?.as_bytes(), args.force);
    }
    fs::create_dir_all(path).with_context(|| format!("cannot create the folder {}", path.display()))?;
    for trace in traces {
        write(&path.join(trace.name).with_extension("svg"), trace.to_svg()?.as_bytes(), args.force)?;
    }
    Ok(())
}

/// Writes a file atomically; an existing one is replaced only with `force`.
fn write(path: &Path, bytes: &[u8], force: bool) -> Result<()> {
    let placing = Placing { create_new: !force, ..Placing::default() };
    file::save_bytes(path, bytes, placing).map(drop).map_err(|error| filters::explain_exists(error, path))
}
