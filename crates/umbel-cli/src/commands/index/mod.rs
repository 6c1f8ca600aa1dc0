//! `umbel index`: which of many files can hold a word.

mod build;
mod info;
mod update;
mod which;

use crate::terminal::{exit, output};
use anyhow::Result;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel_text::index::Made;

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

/// Says what could not be read, as grep does: the rest is done all the same.
pub fn report(failed: &[(PathBuf, io::Error)]) {
    for (path, error) in failed {
        output::error(format_args!("{}: {error}", path.display()));
    }
}

/// What can be said of an index that was made: 0, or 2 if something could not be read.
fn ending(made: &Made) -> ExitCode {
    report(&made.failed);
    for path in &made.restless {
        output::warn(format_args!(
            "{} changed while it was read: it will be read in every search until `umbel index update` finds it at rest",
            path.display()
        ));
    }
    ExitCode::from(if made.failed.is_empty() { 0 } else { exit::FAILED })
}
