//! `umbel lab list`: lists the experiments by chapter.

use crate::args::headings;
use crate::report::{Columns, Rows};
use crate::terminal::output;
use anyhow::Result;
use std::process::ExitCode;
use umbel_lab::{Chapter, Parameter};

/// List the experiments by chapter.
///
/// Prints the id and title of each experiment, the advice that follows from it, the command that it
/// concerns, its sources, and the approximate number of seconds of a quick and of a full run.
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
        for (number, chapter) in Chapter::ALL.into_iter().enumerate() {
            let blank = if number > 0 { "\n" } else { "" };
            output::text(format_args!(
                "{blank}{}: {}\n\n{}",
                chapter.title(),
                chapter.question(),
                experiments(chapter)
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn experiments(chapter: Chapter) -> Rows {
    let mut rows = Rows::default();
    let all = umbel_lab::all().into_iter().map(|experiment| experiment.about());
    for about in all.filter(|about| about.chapter == chapter) {
        let [quick, full] = about.seconds;
        rows.add(about.id, about.title);
        rows.add("", format!("In practice: {}", about.advice));
        rows.add("", format!("Try it with {}", about.command.replace('`', "")));
        rows.add("", format!("{}; {quick} s, in full {full} s", about.source()));
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
