//! `umbel password`: weak passwords in a filter.

mod add;
mod build;
mod check;
mod range;

use anyhow::Result;
use std::process::ExitCode;

/// Reject weak passwords, by a filter that does not reveal them.
///
/// The filter is built from lists of weak or leaked passwords and sealed with a secret; without the
/// secret, no one can test words against it. Passwords that were used before can be added. A
/// candidate that may be in the filter is weak: a good password is rejected at the filter's rate,
/// and a listed one is never accepted. No command prints a password.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel password build common.txt -o weak.umbel
  umbel password check weak.umbel")]
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
