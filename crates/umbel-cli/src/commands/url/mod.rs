//! `umbel url`: unsafe web addresses.

mod build;
mod check;

use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Detect unsafe web addresses, by a filter and an exact list.
///
/// As in Safe Browsing, addresses are brought into canonical form, and a listed host or folder
/// covers everything below it. The filter holds the first bytes of hashes and excludes nearly all
/// addresses with certainty; the exact list is consulted only for the rest.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel url build phishing.txt -o bad.urls
  umbel url check bad.urls http://www.evil.example/page")]
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
    with_suffix(filter, ".exact")
}

/// Returns the path of an exact list until its filter is in place.
fn next_exact_list_beside(filter: &Path) -> PathBuf {
    with_suffix(filter, ".exact.new")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
