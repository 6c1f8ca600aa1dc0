//! The parts that all commands of a vault share: the passphrase, documents found by name or id, and
//! reports of them.

use crate::args::headings;
use crate::filters::{FileLock, LockArgs};
use crate::input::{is_stdin, name, open_raw};
use crate::report::printable;
use crate::terminal::exit::{FAILED, NOT_FOUND};
use crate::terminal::{output, prompt};
use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use std::io::{self, IsTerminal, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel_net::capture::Timestamp;
use umbel_net::rfc3339;
use umbel_text::Error;
use umbel_text::near_names::near_names;
use umbel_text::vault::zidx::Id;
use umbel_text::vault::{Entry, Passphrase, Vault};
use zeroize::Zeroizing;

/// The option for the passphrase.
#[derive(clap::Args)]
pub struct PassphraseArgs {
    /// Read the passphrase from the first line of FILE, which may be a pipe or `-` for standard
    /// input (default: prompt on the terminal)
    #[arg(long, value_name = "FILE", help_heading = headings::SECRETS)]
    passphrase_file: Option<PathBuf>,
}

/// The length below which a new passphrase causes a warning.
const MIN_PASSPHRASE_CHARS: usize = 12;
/// The number of similar names in the error for a document that does not exist.
const MAX_SIMILAR_NAMES: usize = 5;
/// The longest passphrase; a file is not read further.
const MAX_PASSPHRASE_BYTES: usize = 4096;

impl PassphraseArgs {
    /// Returns whether the passphrase is read from standard input.
    pub fn is_stdin(&self) -> bool {
        self.passphrase_file.as_deref().is_some_and(is_stdin)
    }

    /// Returns the file or pipe with the passphrase; `None` if it is prompted for on the terminal.
    fn file(&self) -> Option<&Path> {
        self.passphrase_file.as_deref().filter(|path| !is_stdin(path) || !io::stdin().is_terminal())
    }

    /// Opens the vault. Problems of the vault itself are reported before the prompt.
    pub fn open(&self, folder: &Path) -> Result<Vault> {
        Vault::header_of(folder).map_err(|error| explain_missing(error, folder))?;
        let passphrase = match self.file() {
            Some(path) => read_passphrase(path)?,
            None => prompt_passphrase(&format!("Passphrase of {}", folder.display()))?,
        };
        Ok(Vault::open(folder, &passphrase)?)
    }

    /// Returns the passphrase of a new vault, which is prompted for twice.
    pub fn new_passphrase(&self, folder: &Path) -> Result<Passphrase> {
        Vault::check_free(folder)?;
        let passphrase = match self.file() {
            Some(path) => read_passphrase(path)?,
            None => {
                let typed = prompt_secret(&format!("Passphrase for the new vault {}", folder.display()))?;
                if *typed != *prompt_secret("The same again")? {
                    bail!("these are two different passphrases: nothing was changed");
                }
                as_passphrase(typed)?
            }
        };
        if passphrase.chars() < MIN_PASSPHRASE_CHARS {
            output::warn(format_args!(
                "a passphrase of fewer than {MIN_PASSPHRASE_CHARS} characters is soon guessed by anyone who has the vault"
            ));
        }
        Ok(passphrase)
    }
}

/// Locks a vault for changes until the lock is dropped.
pub fn lock_vault(folder: &Path, lock: LockArgs) -> Result<FileLock> {
    lock.lock(&Vault::header_path(folder))
}

/// Reads the first line of a file, which may lack its end. In a pipe, the bytes after it are left
/// to the next reader.
fn read_passphrase(path: &Path) -> Result<Passphrase> {
    let called = name(path);
    let file = open_raw(path).with_context(|| format!("cannot read the passphrase from {called}"))?;
    let found = file.metadata().with_context(|| format!("cannot examine {called}"))?;
    // Allocated at once, since growing would leave pieces of the secret in memory.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_PASSPHRASE_BYTES));
    #[expect(clippy::unbuffered_bytes, reason = "a buffer would take what is not ours, and keep the secret")]
    for byte in file.bytes() {
        match byte.with_context(|| format!("cannot read {called}"))? {
            b'\n' => break,
            _ if bytes.len() == MAX_PASSPHRASE_BYTES => {
                bail!(
                    "the first line of {called} is longer than {MAX_PASSPHRASE_BYTES} bytes, and not a passphrase"
                )
            }
            byte => bytes.push(byte),
        }
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    if bytes.is_empty() {
        bail!("the first line of {called} is empty, and not a passphrase");
    }
    if found.is_file() && found.permissions().mode() & 0o077 != 0 {
        output::warn(format_args!(
            "others may read the passphrase in {called}: `chmod 600 {called}` keeps it secret"
        ));
    }
    as_passphrase(bytes)
}

fn prompt_passphrase(prompt: &str) -> Result<Passphrase> {
    as_passphrase(prompt_secret(prompt)?)
}

/// Prompts for a secret on the terminal, which does not show it.
fn prompt_secret(prompt: &str) -> Result<Zeroizing<Vec<u8>>> {
    let typed = prompt::read_secret(prompt)
        .context("no passphrase was typed on a terminal: give it with --passphrase-file")?;
    Ok(Zeroizing::new(typed.as_bytes().to_vec()))
}

fn as_passphrase(bytes: Zeroizing<Vec<u8>>) -> Result<Passphrase> {
    Passphrase::new(bytes).context("an empty passphrase protects nothing")
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
    let ids = vault.server().documents()?;
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
