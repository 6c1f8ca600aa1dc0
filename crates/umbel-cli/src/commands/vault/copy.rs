//! `umbel vault copy`: encrypts the documents of a vault again.

use crate::args::headings;
use crate::documents::passphrases::{PassphraseArgs, choose_passphrase};
use crate::documents::vaults::{report_problems, start_changes};
use crate::filters::LockArgs;
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::ExitCode;
use umbel_text::vault::{Header, Options, Vault};

/// Encrypt the documents of a vault again, into a new vault with another key.
///
/// Every document is verified and encrypted again, so that nobody can read the copy with the key or
/// the passphrase of the old vault. A damaged document is reported, and the others are copied.
/// Remove the old vault when the copy is complete: its documents are as safe as its passphrase. The
/// same command, with the same new passphrase, continues a copy that was interrupted.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel vault copy secrets renewed
  umbel vault copy secrets fresh --passphrase-file old --new-passphrase-file new

Exit codes: 0 all documents were copied, 2 an error occurred.")]
pub struct Args {
    /// Directory of the vault
    #[arg(value_name = "VAULT")]
    vault: PathBuf,

    /// Directory to create, an empty one, or a copy of the vault that was interrupted
    #[arg(value_name = "NEW")]
    new: PathBuf,

    #[command(flatten)]
    secret: PassphraseArgs,

    #[command(flatten)]
    lock: LockArgs,

    /// Read the passphrase of the new vault from the first line of FILE, or from the second line of
    /// standard input if both are `-` (default: prompt on the terminal)
    #[arg(long, value_name = "FILE", help_heading = headings::SECRETS)]
    new_passphrase_file: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let was_interrupted = Vault::exists(&args.new)?;
    if !was_interrupted {
        Vault::check_free(&args.new)?;
    }
    let old = args.secret.open(&args.vault)?;
    let new = match was_interrupted {
        true => args.secret.open_with(&args.new, &args.new_passphrase_file)?,
        false => {
            let prompt = format!("Passphrase for the new vault {}", args.new.display());
            let passphrase = choose_passphrase(&args.new_passphrase_file, &prompt)?;
            let Header { cost, shape, .. } = *old.header();
            let options = Options { cost, words: shape.words(), rate: 0.5_f64.powi(shape.hashes() as i32) };
            Vault::create(&args.new, &passphrase, &options)?
        }
    };
    let (entries, mut problems) = old.entries()?;
    let mut changes = start_changes(&new, &args.new, args.lock)?;
    problems.extend(changes.copy(&old, &entries)?);
    changes.finish().with_context(|| format!("cannot complete {}", args.new.display()))?;
    Ok(report_problems(problems).unwrap_or(ExitCode::SUCCESS))
}
