//! The parts that all commands of a vault share: locking it, documents found by name or id, and
//! reports of them.

use crate::filters::LockArgs;
use crate::report::printable;
use crate::terminal::exit::{FAILED, NOT_FOUND};
use crate::terminal::output;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use umbel_net::capture::Timestamp;
use umbel_net::rfc3339;
use umbel_text::Error;
use umbel_text::near_names::near_names;
use umbel_text::vault::zidx::Id;
use umbel_text::vault::{Changes, Entry, Vault};

/// The number of similar names in the error for a document that does not exist.
const MAX_SIMILAR_NAMES: usize = 5;

/// Waits for the lock on a vault, and starts to change it.
pub fn start_changes<'a>(vault: &'a Vault, folder: &Path, lock: LockArgs) -> Result<Changes<'a>> {
    let lock = lock.lock(&Vault::header_path(folder))?;
    Ok(vault.changes_under(lock.into_file())?)
}

/// Completes the list of documents after changes, which are in effect even if that fails.
pub fn finish_changes(changes: Changes<'_>, folder: &Path) -> Result<()> {
    changes.finish().with_context(|| {
        format!(
            "done, but the list of documents in {} could not be completed, as the next change will",
            folder.display()
        )
    })
}

/// Adds a remedy to the error of a missing vault. Returns other errors unchanged.
pub fn explain_missing(error: Error, folder: &Path) -> anyhow::Error {
    match error {
        Error::NoVault { .. } if folder.is_file() => {
            anyhow!("{} is a file: the vault, which is a directory, comes first", folder.display())
        }
        Error::NoVault { .. } => {
            anyhow!("{error}: `umbel vault add {} FILE` makes one", folder.display())
        }
        other => other.into(),
    }
}

/// Reports the problems of documents; returns the exit code if there are any.
pub fn report_problems(problems: Vec<Error>) -> Option<ExitCode> {
    let any = !problems.is_empty();
    for problem in problems {
        output::error(format_args!("{:#}", anyhow::Error::from(problem)));
    }
    any.then(|| ExitCode::from(FAILED))
}

/// Returns the documents with these names or starts of ids, or the exit code if one is missing.
/// Fails if one is ambiguous.
pub fn find_documents(vault: &Vault, wanted: &[String]) -> Result<Result<Vec<Id>, ExitCode>> {
    let (entries, problems) = vault.entries()?;
    let mut ids = vault.server().documents()?;
    ids.extend(vault.missing()?);
    let mut found = Vec::new();
    for wanted in wanted {
        let named: Vec<Id> = entries
            .iter()
            .filter(|entry| entry.head.name == wanted.as_bytes())
            .map(|entry| entry.id)
            .collect();
        // The name of a damaged document cannot be read, but its id can.
        let begins = |id: &&Id| wanted.len() >= 4 && id.to_string().starts_with(&wanted[..]);
        let candidates = if named.is_empty() { ids.iter().filter(begins).copied().collect() } else { named };
        match candidates[..] {
            [one] => found.push(one),
            [] => {
                let broken = report_problems(problems);
                output::error(format_args!(
                    "there is no document \"{}\" in {}{}",
                    printable(wanted),
                    vault.server().folder().display(),
                    similar_names(wanted, &entries)
                ));
                return Ok(Err(broken.unwrap_or(ExitCode::from(NOT_FOUND))));
            }
            _ => {
                let ids: Vec<String> = candidates.iter().map(Id::to_string).collect();
                bail!(
                    "{} are {} documents: give the id of one, {}",
                    printable(wanted),
                    ids.len(),
                    ids.join(" or ")
                );
            }
        }
    }
    Ok(Ok(found))
}

/// Returns the end of an error with the names of documents that resemble a wanted one.
fn similar_names(wanted: &str, entries: &[Entry]) -> String {
    let names = entries.iter().filter_map(|entry| str::from_utf8(&entry.head.name).ok());
    let near: Vec<String> = near_names(wanted, names, MAX_SIMILAR_NAMES).into_iter().map(printable).collect();
    if near.is_empty() { String::new() } else { format!("; similar names: {}", near.join(", ")) }
}

/// Describes a document as JSON.
pub fn document_json(entry: &Entry) -> Value {
    let head = &entry.head;
    json!({
        "id": entry.id.to_string(),
        "name": String::from_utf8_lossy(&head.name),
        "size": head.size,
        "text": head.is_text,
        "words": head.words,
        "modified": head.modified.and_then(format_time),
        "added": format_time(head.added),
    })
}

/// Formats a time as in RFC 3339; `None` before 1970.
pub fn format_time(seconds: i64) -> Option<String> {
    let text = rfc3339::format(Timestamp::from_secs(u64::try_from(seconds).ok()?));
    Some(format!("{}Z", text.get(..19)?))
}
