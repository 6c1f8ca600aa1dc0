//! `umbel vault list`: lists the documents of a vault.

use crate::args::headings;
use crate::documents::passphrases::PassphraseArgs;
use crate::documents::vaults::{document_json, format_time, report_problems};
use crate::report::{Columns, printable, size};
use crate::terminal::output;
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;

/// List the documents in a vault, in the order in which they were added.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel vault list secrets
  umbel vault list --json secrets")]
pub struct Args {
    /// Directory of the vault
    #[arg(value_name = "VAULT")]
    vault: PathBuf,

    #[command(flatten)]
    secret: PassphraseArgs,

    /// Print a line of JSON for each document
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let vault = args.secret.open(&args.vault)?;
    let (entries, problems) = vault.entries()?;
    if args.json {
        let lines: String = entries.iter().map(|entry| format!("{}\n", document_json(entry))).collect();
        output::bytes(lines.as_bytes())?;
    } else if !entries.is_empty() {
        let mut columns = Columns::new(&["name", "size", "words", "modified", "added", "id"]);
        for entry in &entries {
            let head = &entry.head;
            let minutes =
                |seconds| format_time(seconds).map_or("-".into(), |text| text[..16].replace('T', " "));
            columns.add(vec![
                printable(&head.name),
                size(head.size),
                if head.is_text { head.words.to_string() } else { "no text".into() },
                head.modified.map_or("-".into(), minutes),
                minutes(head.added),
                entry.id.to_string(),
            ]);
        }
        output::text(columns)?;
    }
    Ok(report_problems(problems).unwrap_or(ExitCode::SUCCESS))
}
