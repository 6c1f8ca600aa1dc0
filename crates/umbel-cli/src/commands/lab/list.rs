//! `umbel lab list`: what there is to be reproduced.

use crate::report::{Columns, Rows};
use crate::terminal::output;
use anyhow::Result;
use std::process::ExitCode;
use umbel_lab::Parameter;

/// Name the experiments: id, title, source, and about how many seconds each takes, quick and full
#[derive(clap::Args)]
pub struct Args {
    /// Name what `lab run --set` can set: parameter, what it is, its value, quick and full, and from where to where it may be
    #[arg(long)]
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
