//! `umbel password`: weak passwords in a filter.

mod add;
mod build;
mod check;
mod range;

use anyhow::Result;
use std::process::ExitCode;

/// Refuse weak passwords, by a filter that does not give them away.
///
/// A filter is built from lists of weak or leaked passwords, and sealed with a secret: without it nobody can test a word
/// against the filter. Words that were used before can be added. A candidate that may be in it is weak; a good one is taken
/// for weak at the filter's rate, and a weak one never for good. No command prints a password.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Build(Box<build::Args>),
    Add(add::Args),
    Check(check::Args),
    Range(range::Args),
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Build(args) => build::run(args),
        Command::Add(args) => add::run(args),
        Command::Check(args) => check::run(args),
        Command::Range(args) => range::run(args),
    }
}
