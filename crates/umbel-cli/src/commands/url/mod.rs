//! `umbel url`: unsafe web addresses.

mod build;
mod check;

use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Find unsafe web addresses: a small filter first, and an exact list before any verdict.
///
/// As in Safe Browsing, addresses are made canonical, and a host or folder on the list stands for everything below it. The
/// filter holds the first bytes of hashes, and says "certainly not" to nearly all addresses; only when it says yes, the exact
/// list is looked at.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Build(build::Args),
    Check(check::Args),
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Build(args) => build::run(args),
        Command::Check(args) => check::run(args),
    }
}

/// Returns the default path of a filter's exact list: its own path and `.exact`.
fn exact_list_beside(filter: &Path) -> PathBuf {
    let mut name = filter.as_os_str().to_owned();
    name.push(".exact");
    name.into()
}
