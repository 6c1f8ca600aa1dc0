//! `umbel lab trace`: shows the worked examples of the literature step by step.

use crate::args::headings;
use crate::filters;
use crate::report::Rows;
use crate::terminal::output;
use anyhow::{Context, Result, anyhow};
use clap::builder::PossibleValuesParser;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel::file::{self, Placing};
use umbel_lab::trace::{Example, Trace, examples, find};

/// Show a worked example of the literature step by step.
///
/// Each step shows the array before and after, the cells that were set, the zero that proves
/// absence, and the keys that share each cell; for a false positive, these are the keys that cause
/// it. The examples are executed, not copied. Without a name, the examples are listed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel lab trace
  umbel lab trace search
  umbel lab trace deletion --svg deletion.svg
  umbel lab trace all --svg pictures")]
pub struct Args {
    /// Example to show; `all` shows all of them
    #[arg(value_name = "EXAMPLE", ignore_case = true, hide_possible_values = true, value_parser = names())]
    example: Option<String>,

    /// List the examples: name, title and source
    #[arg(long, conflicts_with_all = ["example", "svg"], help_heading = headings::OUTPUT)]
    list: bool,

    /// Draw the example into FILE; for `all`, FILE is a directory with a file for each example
    #[arg(long, value_name = "FILE", requires = "example", help_heading = headings::OUTPUT)]
    svg: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(short, long, requires = "svg", help_heading = headings::OUTPUT)]
    force: bool,
}

const ALL: &str = "all";

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(examples().iter().map(|example| example.name).chain([ALL]))
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let Some(name) = args.example.as_deref().filter(|_| !args.list) else {
        output::text(list())?;
        return Ok(ExitCode::SUCCESS);
    };
    let traces: Vec<Trace> = if name.eq_ignore_ascii_case(ALL) {
        examples().iter().map(Example::run).collect::<Result<_, _>>()?
    } else {
        let example = find(name).ok_or_else(|| anyhow!("there is no example {name}"))?;
        vec![example.run()?]
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
