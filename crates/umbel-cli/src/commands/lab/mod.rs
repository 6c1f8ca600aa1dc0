//! `umbel lab`: experiments that reproduce the numbers of the literature.

pub mod fpr;
mod list;
mod run;
mod trace;
mod words;

use anyhow::Result;
use std::process::ExitCode;

/// Run experiments that compare theory and measurement.
///
/// An experiment has a claim, a setup and criteria that hold or do not. `umbel lab run all` runs
/// all of them and writes a report with tables and charts. `umbel lab trace` shows worked examples,
/// or filters of your own keys, step by step; `umbel lab words` and `umbel lab fpr` measure rates on
/// your own data.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel lab run all --quick
  umbel lab trace search
  umbel lab trace --bits 10 --insert rose,lily --ask tulip
  umbel lab fpr seen.umbel --absent others.txt")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    List(list::Args),
    Run(run::Args),
    Trace(trace::Args),
    Words(words::Args),
    Fpr(fpr::Args),
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::List(args) => list::run(args),
        Command::Run(args) => run::run(args),
        Command::Trace(args) => trace::run(args),
        Command::Words(args) => words::run(args),
        Command::Fpr(args) => fpr::run(args),
    }
}
