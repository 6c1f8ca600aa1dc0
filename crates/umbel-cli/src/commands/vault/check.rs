//! `umbel vault check`: verifies all documents of a vault.

use crate::documents::passphrases::PassphraseArgs;
use crate::documents::vaults::report_problems;
use crate::terminal::output;
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;

/// Read every document of a vault and report the damaged ones.
///
/// A document that is missing, or was brought back after it was removed or replaced, is reported
/// too. Only --state-file reveals that the whole vault was set back to an earlier state.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel vault check secrets
  umbel vault check secrets --state-file secrets.state

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
