//! `umbel vault check`: whether all documents are what was written.

use crate::documents::vaults::{PassphraseArgs, report_problems};
use crate::terminal::output;
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;

/// Read every document of a vault, and tell which are damaged.
///
/// That a document was taken away altogether, or that an old one was put back, cannot be told.
#[derive(clap::Args)]
#[command(after_help = "Exit codes: 0 all documents are what was written, 2 something went wrong.")]
pub struct Args {
    /// The directory of the vault
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
