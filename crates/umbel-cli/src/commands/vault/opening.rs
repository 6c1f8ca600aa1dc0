//! What every command of a vault needs: the passphrase, the documents by their names, and what to say of them.

use crate::filters::FileLock;
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
use umbel_net::capture::Time;
use umbel_text::Error;
use umbel_text::vault::zidx::Id;
use umbel_text::vault::{Entry, Passphrase, Vault};
use zeroize::Zeroizing;

/// Where the passphrase comes from.
#[derive(clap::Args)]
pub struct Secret {
    /// Read the passphrase from the first line of this file or pipe; `-` is standard input. Without it you are asked on the
    /// terminal
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

/// A passphrase with fewer characters is warned of when it is new.
const SHORT: usize = 12;
/// No passphrase is longer, and no file is read further.
const LONGEST: usize = 4096;

impl Secret {
    /// Whether standard input is for the passphrase.
    pub fn is_stdin(&self) -> bool {
        self.passphrase_file.as_deref().is_some_and(is_stdin)
    }

    /// The file or pipe with the passphrase; who sits at a terminal is asked, and not shown what they type.
    fn file(&self) -> Option<&Path> {
        self.passphrase_file.as_deref().filter(|path| !is_stdin(path) || !io::stdin().is_terminal())
    }

    /// Opens the vault; whatever can be wrong with it is told before the passphrase is asked for.
    pub fn open(&self, folder: &Path) -> Result<Vault> {
        Vault::header_of(folder).map_err(|error| explained(error, folder))?;
        let passphrase = match self.file() {
            Some(path) => read(path)?,
            None => ask(&format!("Passphrase of {}", folder.display()))?,
        };
        Ok(Vault::open(folder, &passphrase)?)
    }

    /// The passphrase of a new vault, which is asked for twice.
    pub fn new_passphrase(&self, folder: &Path) -> Result<Passphrase> {
        Vault::check_free(folder)?;
        let passphrase = match self.file() {
            Some(path) => read(path)?,
            None => {
                let typed = type_in(&format!("Passphrase for the new vault {}", folder.display()))?;
                if *typed != *type_in("The same again")? {
                    bail!("these are two different passphrases: nothing was changed");
                }
                as_passphrase(typed)?
            }
        };
        if passphrase.chars() < SHORT {
            output::warn(format_args!(
                "whoever has the vault can try passphrases at leisure, and one of fewer than {SHORT} characters is soon found"
            ));
        }
        Ok(passphrase)
    }
}

/// The right to change a vault, held until it is dropped.
pub fn lock(folder: &Path) -> Result<FileLock> {
    FileLock::acquire(&Vault::header_path(folder))
}

/// The first line of a file, which need not end. What comes after it in a pipe is left to whoever reads on.
fn read(path: &Path) -> Result<Passphrase> {
    let called = name(path);
    let file = open_raw(path).with_context(|| format!("cannot read the passphrase from {called}"))?;
    let found = file.metadata().with_context(|| format!("cannot examine {called}"))?;
    // No growth, which would leave pieces of it in memory.
    let mut bytes = Zeroizing::new(Vec::with_capacity(LONGEST));
    #[expect(clippy::unbuffered_bytes, reason = "a buffer would take what is not ours, and keep the secret")]
    for byte in file.bytes() {
        match byte.with_context(|| format!("cannot read {called}"))? {
            b'\n' => break,
            _ if bytes.len() == LONGEST => {
                bail!("the first line of {called} is longer than {LONGEST} bytes, and no passphrase")
            }
            byte => bytes.push(byte),
        }
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    if bytes.is_empty() {
        bail!("the first line of {called} is empty, and no passphrase");
    }
    if found.is_file() && found.permissions().mode() & 0o077 != 0 {
        output::warn(format_args!(
            "others may read the passphrase in {called}: `chmod 600 {called}` keeps it secret"
        ));
    }
    as_passphrase(bytes)
}

fn ask(prompt: &str) -> Result<Passphrase> {
    as_passphrase(type_in(prompt)?)
}

/// What is typed on the terminal, which does not show it.
fn type_in(prompt: &str) -> Result<Zeroizing<Vec<u8>>> {
    let typed = prompt::secret(prompt)
        .context("no passphrase was typed on a terminal: give it with --passphrase-file")?;
    Ok(Zeroizing::new(typed.as_bytes().to_vec()))
}

fn as_passphrase(bytes: Zeroizing<Vec<u8>>) -> Result<Passphrase> {
    Passphrase::new(bytes).context("an empty passphrase protects nothing")
}

/// What to do about a vault that is not there.
pub fn explained(error: Error, folder: &Path) -> anyhow::Error {
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

/// Says what is wrong with documents; the exit code if nothing else is.
pub fn tell(problems: Vec<Error>) -> Option<ExitCode> {
    let any = !problems.is_empty();
    for problem in problems {
        output::error(format_args!("{:#}", anyhow::Error::from(problem)));
    }
    any.then(|| ExitCode::from(FAILED))
}

/// The documents with these names or ids, each of which has to stand for one; or the exit code when one does not.
pub fn resolve(vault: &Vault, wanted: &[String]) -> Result<Result<Vec<Id>, ExitCode>> {
    let (entries, problems) = vault.entries()?;
    let ids = vault.server().documents()?;
    let mut found = Vec::new();
    for wanted in wanted {
        let named: Vec<Id> = entries
            .iter()
            .filter(|entry| entry.head.name == wanted.as_bytes())
            .map(|entry| entry.id)
            .collect();
        // A damaged document has no name any more, but it has an id.
        let begins = |id: &&Id| wanted.len() >= 4 && id.to_string().starts_with(&wanted[..]);
        let candidates = if named.is_empty() { ids.iter().filter(begins).copied().collect() } else { named };
        match candidates[..] {
            [one] => found.push(one),
            [] => {
                let broken = tell(problems);
                output::error(format_args!(
                    "there is no document \"{}\" in {}",
                    printable(wanted),
                    vault.server().folder().display()
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

/// A document, for programs.
pub fn to_json(entry: &Entry) -> Value {
    let head = &entry.head;
    json!({
        "id": entry.id.to_string(),
        "name": String::from_utf8_lossy(&head.name),
        "size": head.size,
        "text": head.is_text,
        "words": head.words,
        "modified": head.modified.and_then(time),
        "added": time(head.added),
    })
}

/// A time as RFC 3339 writes it, if it is after 1970.
pub fn time(seconds: i64) -> Option<String> {
    let text = Time::from_secs(u64::try_from(seconds).ok()?).to_string();
    Some(format!("{}Z", text.get(..19)?))
}
