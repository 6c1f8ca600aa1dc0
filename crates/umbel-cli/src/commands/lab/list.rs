//! `umbel lab list`: lists the experiments.

use crate::args::headings;
use crate::report::{Columns, Rows};
use crate::terminal::output;
use anyhow::Result;
use std::process::ExitCode;
use umbel_lab::Parameter;

/// List the experiments with their sources and durations.
///
/// Prints the id, title and source of each experiment, and the approximate number of seconds of a
/// quick and of a full run.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel lab list
  umbel lab list --parameters")]
pub struct Args {
    /// List the parameters for `umbel lab run --set`: meaning, default in a quick and in a full
    /// run, and range
    #[arg(long, help_heading = headings::OUTPUT)]
    parameters: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    if args.parameters {
        output::text(parameters())?;
    } else {
        output::text(experiments())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn experiments() -> Rows {
    let mut rows = Rows::default();
    for experiment in umbel_lab::all() {
        let about = experiment.about();
        let [quick, full] = about.seconds;
        rows.add(about.id, about.title);
        rows.add("", format!("{}; {quick} s, in full {full} s", about.source));
    }
    rows
}

fn parameters() -> Columns {
    let mut table = Columns::new(&["id", "parameter", "what it is", "default", "from", "to"]);
    for experiment in umbel_lab::all() {
        let about = experiment.about();
        for Parameter { name, meaning, default: [quick, full], range: [least, most], .. } in about.parameters
        {
            table.add(vec![
                about.id.into(),
                (*name).into(),
                (*meaning).into(),
                if quick == full { quick.to_string() } else { format!("{quick}, {full}") },
                least.to_string(),
                most.to_string(),
            ]);
        }
    }
    table
}
