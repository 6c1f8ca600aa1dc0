//! `umbel count`: counts of repeated lines.

mod add;
mod answer;
mod ask;
mod build;
mod get;

use anyhow::Result;
use std::process::ExitCode;

/// Count repeated lines in a few bits, and look up the counts.
///
/// A multiset estimates how often a key was recorded, with a 95 % interval. It suits streams in
/// which some lines come once and others a million times: it never overflows, and stores no keys.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel count build -d ' ' -F 1 -o hosts.umbel access.log
  umbel count get hosts.umbel suspects.txt")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Build(Box<build::Args>),
    Add(add::Args),
    Get(get::Args),
    Ask(ask::Args),
    Answer(answer::Args),
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Build(args) => build::run(args),
        Command::Add(args) => add::run(args),
        Command::Get(args) => get::run(args),
        Command::Ask(args) => ask::run(args),
        Command::Answer(args) => answer::run(args),
    }
}
