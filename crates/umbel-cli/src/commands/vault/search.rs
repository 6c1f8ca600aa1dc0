//! `umbel vault search`: lists the documents that contain some words.

use crate::args::headings;
use crate::documents::passphrases::PassphraseArgs;
use crate::documents::vaults::{document_json, report_problems};
use crate::terminal::exit::found;
use crate::terminal::output;
use anyhow::Result;
use serde_json::json;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

/// List the documents of a vault that contain all of the given words.
///
/// Words are runs of letters, digits and underscores; case is ignored. The indexes are queried with
/// trapdoors made from the words and the key, so an untrusted server could do this half of the work
/// without learning a word. The documents found are then decrypted and read, so the result is
/// exact; with --possible this step is left out.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel vault search secrets holiday 2023
  umbel vault search --possible secrets holiday

Exit codes: 0 something was found, 1 nothing was, 2 an error occurred.")]
pub struct Args {
    /// Directory of the vault
    #[arg(value_name = "VAULT")]
    vault: PathBuf,

    /// Words that a document must contain
    #[arg(value_name = "WORD", required = true)]
    words: Vec<String>,

    /// Trust the indexes and read no document: some results may not contain the words
    #[arg(long, help_heading = headings::SEARCH)]
    possible: bool,

    #[command(flatten)]
    secret: PassphraseArgs,

    /// Print a line of JSON for each document
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let vault = args.secret.open(&args.vault)?;
    let query = vault.query(&args.words)?;
    let hits = vault.search(&query, !args.possible)?;
    let any = !hits.hits.is_empty();
    let mut lines = Vec::new();
    for entry in &hits.hits {
        if args.json {
            let mut document = document_json(entry);
            document["confirmed"] = json!(!args.possible);
            lines.extend_from_slice(format!("{document}\n").as_bytes());
        } else {
            lines.extend_from_slice(&entry.head.name);
            lines.push(b'\n');
        }
    }
    output::bytes(&lines)?;
    if hits.refuted > 0 && io::stderr().is_terminal() {
        output::message(format_args!(
            "documents that the indexes reported without a match: {}",
            hits.refuted
        ));
    }
    Ok(report_problems(hits.problems).unwrap_or(found(any)))
}
