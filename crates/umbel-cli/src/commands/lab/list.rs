//! `umbel lab list`: what there is to be reproduced.

use crate::facts::Columns;
use crate::output;
use anyhow::Result;
use std::process::ExitCode;

/// Name the experiments: id, title, source, and about how many seconds each takes, quick and full
#[derive(clap::Args)]
pub struct Args {}

pub fn run() -> Result<ExitCode> {
    let mut table = Columns::new(&["id", "experiment", "source", "seconds"]);
    for experiment in umbel_lab::all() {
        let about = experiment.about();
        let [quick, full] = about.seconds;
        table.add(vec![about.id.into(), about.title.into(), about.source.into(), format!("{quick}, {full}")]);
    }
    output::text(table)?;
    Ok(ExitCode::SUCCESS)
}
