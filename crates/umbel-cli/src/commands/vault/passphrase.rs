//! `umbel vault passphrase`: changes the passphrase of a vault.

use crate::args::headings;
use crate::documents::passphrases::{PassphraseArgs, choose_passphrase};
use crate::documents::vaults::{finish_changes, start_changes};
use crate::filters::LockArgs;
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;

/// Change the passphrase of a vault.
///
/// The vault opens with the old passphrase or with the new one, even if the command is interrupted.
/// The documents are not encrypted again: anyone who has both a copy of the file `vault` from before
/// and the old passphrase can still read them, and those added later. If the old passphrase may be
/// known, use `umbel vault copy`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel vault passphrase secrets
  umbel vault passphrase secrets --passphrase-file old --new-passphrase-file new

Exit codes: 0 the new passphrase is in effect, 2 an error occurred, and the old one is.")]
pub struct Args {
    /// Directory of the vault
    #[arg(value_name = "VAULT")]
    vault: PathBuf,

    #[command(flatten)]
    secret: PassphraseArgs,

    #[command(flatten)]
    lock: LockArgs,

    /// Read the new passphrase from the first line of FILE, or from the second line of standard
    /// input if both are `-` (default: prompt on the terminal)
    #[arg(long, value_name = "FILE", help_heading = headings::SECRETS)]
    new_passphrase_file: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let vault = args.secret.open(&args.vault)?;
    let prompt = format!("New passphrase of {}", args.vault.display());
    let passphrase = choose_passphrase(&args.new_passphrase_file, &prompt)?;
    let mut changes = start_changes(&vault, &args.vault, args.lock)?;
    changes.set_passphrase(&passphrase)?;
    finish_changes(changes, &args.vault)?;
    args.secret.remember(&vault)?;
    Ok(ExitCode::SUCCESS)
}
