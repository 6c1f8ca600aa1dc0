//! `umbel index`: which of many files can hold a word.

mod build;
mod info;
mod update;
mod which;

use crate::documents::report_unreadable;
use crate::terminal::{exit, output};
use anyhow::Result;
use std::process::ExitCode;
use umbel_text::index::BuildSummary;

/// Know which of many files can hold a word, without reading them.
///
/// `umbel index build logs` makes logs.idx, with a small filter for each file in the directory; `umbel grep` then reads
/// only the files that may hold what is looked for, and `umbel index which` names them. A file that has changed since is
/// always read; `umbel index update` brings the index up to date and reads only what has changed.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Build(build::Args),
    Update(update::Args),
    Which(which::Args),
    Info(info::Args),
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Build(args) => build::run(args),
        Command::Update(args) => update::run(args),
        Command::Which(args) => which::run(args),
        Command::Info(args) => info::run(args),
    }
}

/// Reports files that could not be read or changed meanwhile; returns the exit code.
fn report_made(made: &BuildSummary) -> ExitCode {
    report_unreadable(&made.failed);
    for path in &made.restless {
        output::warn(format_args!(
            "{} changed while it was read: it will be read in every search until `umbel index update` finds it at rest",
            path.display()
        ));
    }
    ExitCode::from(if made.failed.is_empty() { 0 } else { exit::FAILED })
}
