//! `umbel vault list`: what is in a vault.

use crate::documents::vaults::{PassphraseArgs, document_json, format_time, report_problems};
use crate::report::{Columns, printable, size};
use crate::terminal::output;
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;

/// List the documents in a vault, in the order in which they were added.
#[derive(clap::Args)]
pub struct Args {
    /// The directory of the vault
    #[arg(value_name = "VAULT")]
    vault: PathBuf,

    /// Print it as JSON, a document in each line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    secret: PassphraseArgs,
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
