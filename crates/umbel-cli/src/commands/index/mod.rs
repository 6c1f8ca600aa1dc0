//! `umbel index`: indexes of the words in files.

mod build;
mod info;
mod update;
mod which;

use crate::documents::report_unreadable;
use crate::terminal::{exit, output};
use anyhow::Result;
use std::process::ExitCode;
use umbel_text::index::BuildSummary;

/// Index files, to find those that may contain a word.
///
/// `umbel index build logs` writes logs.idx, with a small filter for each file in the directory.
/// `umbel grep` then reads only the files that may contain the text, and `umbel index which` lists
/// them. A file that has changed since is always read; `umbel index update` brings the index up to
/// date and reads only the changed files.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel index build logs
  umbel grep -w timeout logs
  umbel index update logs.idx")]
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
pub fn report_made(made: &BuildSummary) -> ExitCode {
    report_unreadable(&made.failed);
    if made.unexamined > 0 {
        output::warn(format_args!(
            "files that could not be examined stay in the index as they were ({})",
            made.unexamined
        ));
    }
    for path in &made.restless {
        output::warn(format_args!(
            "{} changed while it was read: it will be read in every search until `umbel index update` finds it at rest",
            path.display()
        ));
    }
    ExitCode::from(if made.failed.is_empty() { 0 } else { exit::FAILED })
}
