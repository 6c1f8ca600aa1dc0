//! `umbel vault check`: verifies all documents of a vault.

use crate::documents::vaults::{PassphraseArgs, report_problems};
use crate::terminal::output;
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;

/// Read every document of a vault and report the damaged ones.
///
/// A document that was deleted, or replaced by an older version of itself, cannot be detected.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel vault check secrets

Exit codes: 0 all documents are intact, 2 an error occurred.")]
pub struct Args {
    /// Directory of the vault
    #[arg(value_name = "VAULT")]
    vault: PathBuf,

    #[command(flatten)]
    secret: PassphraseArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let vault = args.secret.open(&args.vault)?;
    let (whole, problems) = vault.check_all()?;
    output::text(format_args!("whole: {whole}, damaged: {}\n", problems.len()))?;
    Ok(report_problems(problems).unwrap_or(ExitCode::SUCCESS))
}
