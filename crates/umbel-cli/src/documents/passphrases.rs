//! The passphrase of a vault, from a file or the terminal, and the remembered state of a vault.

use super::vaults::explain_missing;
use crate::args::{headings, number};
use crate::input::{is_stdin, name, open_raw};
use crate::terminal::{output, prompt};
use anyhow::{Context, Result, anyhow, bail};
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use umbel::file::{self, Placing};
use umbel::internals::secret_file::SecretFile;
use umbel::internals::{key_file, regular_file};
use umbel_text::Error;
use umbel_text::vault::{Passphrase, State, Vault};
use zeroize::Zeroizing;

/// The options for opening a vault.
#[derive(clap::Args)]
pub struct PassphraseArgs {
    /// Read the passphrase from the first line of FILE, which may be `-` for standard input, or a
    /// pipe that brings it within a minute (default: prompt on the terminal)
    #[arg(long, value_name = "FILE", help_heading = headings::SECRETS)]
    passphrase_file: Option<PathBuf>,

    #[command(flatten)]
    max_memory: HashMemoryArgs,

    /// Remember the state of the vault in FILE, and fail if the vault was set back to an earlier one
    #[arg(long, value_name = "FILE", help_heading = headings::SECRETS)]
    state_file: Option<PathBuf>,
}

/// The cost of a slow hash that a file may demand, since an attacker may have written it.
#[derive(clap::Args)]
pub struct HashMemoryArgs {
    /// Largest memory of the slow hash; with it, at most four passes over that much
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "256MiB",
        value_parser = number::bytes,
        help_heading = headings::SECRETS
    )]
    max_memory: u64,
}

impl HashMemoryArgs {
    /// Returns the limit in bytes.
    pub fn bytes(&self) -> u64 {
        self.max_memory
    }

    fn kibibytes(&self) -> u32 {
        u32::try_from(self.max_memory / 1024).unwrap_or(u32::MAX)
    }
}

/// The length below which a new passphrase causes a warning.
const MIN_PASSPHRASE_CHARS: usize = 12;
/// The longest passphrase; a file is not read further.
const MAX_PASSPHRASE_BYTES: usize = 4096;
/// The longest state of a vault; a file is not read further.
const MAX_STATE_BYTES: u64 = 1024;

impl PassphraseArgs {
    /// Returns whether the passphrase is read from standard input.
    pub fn is_stdin(&self) -> bool {
        self.passphrase_file.as_deref().is_some_and(is_stdin)
    }

    /// Opens the vault. Problems of the vault itself are reported before the prompt.
    pub fn open(&self, folder: &Path) -> Result<Vault> {
        let vault = self.open_with(folder, &self.passphrase_file)?;
        self.remember(&vault)?;
        Ok(vault)
    }

    /// Opens a vault with the passphrase in this file, and does not remember its state.
    pub fn open_with(&self, folder: &Path, passphrase_file: &Option<PathBuf>) -> Result<Vault> {
        let cost = Vault::header_of(folder).map_err(|error| explain_missing(error, folder))?.cost;
        if cost.required_limit() > self.max_memory.kibibytes() {
            return Err(Error::CostlyVault { path: folder.to_owned(), cost }.into());
        }
        let passphrase = match file_of(passphrase_file) {
            Some(path) => read_passphrase(path)?,
            None => as_passphrase(prompt_secret(&format!("Passphrase of {}", folder.display()))?)?,
        };
        Ok(Vault::open_costly(folder, &passphrase, self.max_memory.kibibytes())?)
    }

    /// Returns the passphrase of a new vault, which is prompted for twice.
    pub fn new_passphrase(&self, folder: &Path) -> Result<Passphrase> {
        Vault::check_free(folder)?;
        if let Some(path) = self.state_file.as_ref().filter(|path| path.exists()) {
            bail!("{} is the state of another vault: there is none in {}", path.display(), folder.display());
        }
        let prompt = format!("Passphrase for the new vault {}", folder.display());
        choose_passphrase(&self.passphrase_file, &prompt)
    }

    /// Compares the state of the vault with the one in the state file, and replaces that.
    pub fn remember(&self, vault: &Vault) -> Result<()> {
        let Some(path) = &self.state_file else { return Ok(()) };
        let name = path.display();
        let state = vault.state()?;
        match read_state(path) {
            Ok(text) => {
                let before: State = text.parse().map_err(|_| {
                    anyhow!("{name} is not the state of a vault: give --state-file a name that is free")
                })?;
                if !state.is_of_same_vault(&before) {
                    bail!("{name} is the state of another vault: give each vault a state file of its own");
                }
                if !state.follows(&before) {
                    let path = vault.server().folder().to_owned();
                    bail!(
                        "{}: if you have set it back yourself, remove {name}, and the state is accepted",
                        Error::RolledBack { path }
                    );
                }
                if state == before {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("cannot read {name}")),
        }
        let placing = Placing { private: true, ..Placing::default() };
        file::save_bytes(path, format!("{state}\n").as_bytes(), placing)?;
        Ok(())
    }
}

/// Reads a state file.
fn read_state(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    regular_file::open(path)?.take(MAX_STATE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Returns the file or pipe with the passphrase; `None` if it is prompted for on the terminal.
fn file_of(passphrase_file: &Option<PathBuf>) -> Option<&Path> {
    passphrase_file.as_deref().filter(|path| !is_stdin(path) || !io::stdin().is_terminal())
}

/// Returns a new passphrase from a file, or from the terminal, where it is prompted for twice.
pub fn choose_passphrase(passphrase_file: &Option<PathBuf>, prompt: &str) -> Result<Passphrase> {
    let passphrase = match file_of(passphrase_file) {
        Some(path) => read_passphrase(path)?,
        None => {
            let typed = prompt_secret(prompt)?;
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

/// Reads the first line of a file, which may lack its end. In a pipe, the bytes after it are left
/// to the next reader.
fn read_passphrase(path: &Path) -> Result<Passphrase> {
    let called = name(path);
    let failed = || format!("cannot read the passphrase from {called}");
    let (file, found): (Box<dyn Read>, _) = match is_stdin(path) {
        true => {
            let file = open_raw(path).with_context(failed)?;
            let found = file.metadata().with_context(failed)?;
            (Box::new(file), found)
        }
        false => {
            let file = SecretFile::open(path).with_context(failed)?;
            let found = file.metadata().clone();
            (Box::new(file), found)
        }
    };
    // Allocated at once, since growing would leave pieces of the secret in memory.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_PASSPHRASE_BYTES));
    #[expect(clippy::unbuffered_bytes, reason = "a buffer would take what is not ours, and keep the secret")]
    for byte in file.bytes() {
        match byte.with_context(failed)? {
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
    key_file::check_private(&found, "passphrase file", &called)?;
    as_passphrase(bytes)
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
