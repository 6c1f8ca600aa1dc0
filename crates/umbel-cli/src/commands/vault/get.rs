//! `umbel vault get`: a document, decrypted.

use super::opening::{Secret, resolve};
use crate::filters::unless_exists;
use crate::output::FAILED;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel_text::vault::zidx::Id;
use umbel_text::vault::{Error, ReadError, Vault};

/// Decrypt a document.
///
/// All of it is checked before the first byte is printed, and a file is written wholly or not at all. The name in the vault
/// never decides where something is written: -o does.
#[derive(clap::Args)]
#[command(after_help = "Exit codes: 0 done, 1 there is no such document, 2 something went wrong.")]
pub struct Args {
    /// The directory of the vault
    #[arg(value_name = "VAULT")]
    vault: PathBuf,

    /// The name of the document, or the start of its id
    #[arg(value_name = "NAME|ID")]
    document: String,

    /// The file to write; without it, or with `-`, standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Replace FILE if it is there
    #[arg(short, long)]
    force: bool,

    #[command(flatten)]
    secret: Secret,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let to = args.output.as_deref().filter(|path| *path != Path::new("-"));
    if let Some(path) = to {
        check(path, args.force)?;
    }
    let vault = args.secret.open(&args.vault)?;
    let ids = match resolve(&vault, std::slice::from_ref(&args.document))? {
        Ok(ids) => ids,
        Err(code) => return Ok(code),
    };
    for id in &ids {
        match to {
            Some(path) => save(&vault, id, path, args.force)?,
            None => print(&vault, id)?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses before the passphrase is asked for what would be refused after it.
fn check(path: &Path, force: bool) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => bail!("{} is a directory: name a file in it with -o", path.display()),
        Ok(_) if !force => bail!("{} exists: give -f to replace it, or another name", path.display()),
        _ => Ok(()),
    }
}

fn save(vault: &Vault, id: &Id, path: &Path, force: bool) -> Result<()> {
    vault.save(id, path, force).map_err(|error| match error {
        Error::Io { path: at, doing, source } if at == path => {
            unless_exists(umbel::Error::Io { path: at, doing, source }, path)
        }
        other => other.into(),
    })
}

fn print(vault: &Vault, id: &Id) -> Result<()> {
    if io::stdout().is_terminal() && !vault.entry(id)?.head.is_text {
        bail!(
            "this document is no text, and not for a terminal: name a file with -o, or redirect the output"
        );
    }
    vault.check(id)?;
    match vault.read(id, &mut io::stdout().lock()) {
        Err(ReadError::Output(error)) => Err(error).context(FAILED),
        Err(ReadError::Vault(error)) => Err(error.into()),
        Ok(()) => Ok(()),
    }
}
