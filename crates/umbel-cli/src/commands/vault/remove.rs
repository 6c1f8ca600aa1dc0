//! `umbel vault remove`: removes documents from a vault.

use crate::documents::passphrases::PassphraseArgs;
use crate::documents::vaults::{find_documents, finish_changes, start_changes};
use crate::filters::LockArgs;
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;

/// Remove documents from a vault.
///
/// If one of them does not exist, none is removed. Copies of the vault keep their documents.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel vault remove secrets diary.txt

Exit codes: 0 done, 1 there is no such document, 2 an error occurred.")]
pub struct Args {
    /// Directory of the vault
    #[arg(value_name = "VAULT")]
    vault: PathBuf,

    /// Names of documents, or the starts of their ids
    #[arg(value_name = "NAME|ID", required = true)]
    documents: Vec<String>,

    #[command(flatten)]
    secret: PassphraseArgs,

    #[command(flatten)]
    lock: LockArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let vault = args.secret.open(&args.vault)?;
    let mut changes = start_changes(&vault, &args.vault, args.lock)?;
    let mut ids = match find_documents(&vault, &args.documents)? {
        Ok(ids) => ids,
        Err(code) => return Ok(code),
    };
    ids.sort_unstable();
    ids.dedup();
    changes.remove(&ids)?;
    finish_changes(changes, &args.vault)?;
    args.secret.remember(&vault)?;
    Ok(ExitCode::SUCCESS)
}
