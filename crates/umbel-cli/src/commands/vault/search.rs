//! `umbel vault search`: the documents that hold some words.

use crate::documents::vaults::{PassphraseArgs, document_json, report_problems};
use crate::report::printable;
use crate::terminal::exit::found;
use crate::terminal::output;
use anyhow::Result;
use serde_json::json;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

/// Print the names of the documents that hold all of some words.
///
/// Words are runs of letters, digits and underscores; capitals do not matter. The indexes are asked with trapdoors that are
/// made of the words and the key, so that this half of the work could be a server's, which learns no word. What they find is
/// then decrypted and read, so that what is printed is certain; with --possible it is not.
#[derive(clap::Args)]
#[command(after_help = "Exit codes: 0 something found, 1 nothing found, 2 something went wrong.")]
pub struct Args {
    /// The directory of the vault
    #[arg(value_name = "VAULT")]
    vault: PathBuf,

    /// Words, which all have to be in a document
    #[arg(value_name = "WORD", required = true)]
    words: Vec<String>,

    /// Believe the indexes, and read no document: some that are printed may not hold the words
    #[arg(long)]
    possible: bool,

    /// Print what is found as JSON, a document in each line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    secret: PassphraseArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let vault = args.secret.open(&args.vault)?;
    let query = vault.query(&args.words)?;
    let hits = vault.search(&query, !args.possible)?;
    let any = !hits.hits.is_empty();
    let mut lines = String::new();
    for entry in &hits.hits {
        if args.json {
            let mut document = document_json(entry);
            document["confirmed"] = json!(!args.possible);
            lines += &format!("{document}\n");
        } else {
            lines += &format!("{}\n", printable(&entry.head.name));
        }
    }
    output::bytes(lines.as_bytes())?;
    if hits.refuted > 0 && io::stderr().is_terminal() {
        output::message(format_args!(
            "documents that the indexes took for hits, and that are none: {}",
            hits.refuted
        ));
    }
    Ok(report_problems(hits.problems).unwrap_or(found(any)))
}
