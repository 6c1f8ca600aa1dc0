//! `umbel vault adopt`: takes documents into the list of a vault.

use crate::documents::passphrases::PassphraseArgs;
use crate::documents::vaults::{find_documents, finish_changes, start_changes};
use crate::filters::LockArgs;
use crate::report::printable;
use crate::terminal::output;
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;

/// Take documents into the list of a vault, in which they are missing.
///
/// A vault has a list of its documents, so that nobody can bring back one that was removed or
/// replaced. `umbel vault list` reports each document that is not in it. If it was added to a copy
/// of the vault, on another computer for instance, take it into the list by its id; otherwise remove
/// it. The names of the documents are printed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel vault adopt secrets 2c0154bf0b18071c7756416f97948276

Exit codes: 0 done, 1 there is no such document, 2 an error occurred.")]
pub struct Args {
    /// Directory of the vault
    #[arg(value_name = "VAULT")]
    vault: PathBuf,

    /// Ids of documents, or their starts
    #[arg(value_name = "ID", required = true)]
    documents: Vec<String>,

    #[command(flatten)]
    secret: PassphraseArgs,

    #[command(flatten)]
    lock: LockArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let vault = args.secret.open(&args.vault)?;
    let mut changes = start_changes(&vault, &args.vault, args.lock)?;
    let ids = match find_documents(&vault, &args.documents)? {
        Ok(ids) => ids,
        Err(code) => return Ok(code),
    };
    let entries = changes.adopt(&ids)?;
    finish_changes(changes, &args.vault)?;
    args.secret.remember(&vault)?;
    let lines: String = entries.iter().map(|entry| format!("{}\n", printable(&entry.head.name))).collect();
    output::bytes(lines.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
