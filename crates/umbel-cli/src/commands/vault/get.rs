//! `umbel vault get`: decrypts a document.

use crate::args::headings;
use crate::documents::passphrases::PassphraseArgs;
use crate::documents::vaults::find_documents;
use crate::filters::explain_exists;
use crate::terminal::output::{Out, WRITE_FAILED};
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{self, IsTerminal};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel_text::Error;
use umbel_text::vault::Vault;
use umbel_text::vault::zidx::Id;

/// Decrypt a document.
///
/// The whole document is verified before the first byte is printed, and a file is written
/// completely or not at all. The output path comes only from -o, never from the name in the vault.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel vault get secrets diary.txt -o diary.copy
  umbel vault get secrets diary.txt | less

Exit codes: 0 done, 1 there is no such document, 2 an error occurred.")]
pub struct Args {
    /// Directory of the vault
    #[arg(value_name = "VAULT")]
    vault: PathBuf,

    /// Name of the document, or the start of its id
    #[arg(value_name = "NAME|ID")]
    document: String,

    #[command(flatten)]
    secret: PassphraseArgs,

    /// Write to FILE; without this option, or with `-`, write to standard output
    #[arg(short, long, value_name = "FILE", help_heading = headings::OUTPUT)]
    output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(short, long, help_heading = headings::OUTPUT)]
    force: bool,
}

/// The number of times to look up a document that is replaced before it can be read.
const MAX_TRIES: usize = 10;

pub fn run(args: &Args) -> Result<ExitCode> {
    let to = args.output.as_deref().filter(|path| *path != Path::new("-"));
    if let Some(path) = to {
        check(path, args.force)?;
        check_outside(path, &args.vault)?;
    }
    let vault = args.secret.open(&args.vault)?;
    let mut tries = 0;
    loop {
        let ids = match find_documents(&vault, std::slice::from_ref(&args.document))? {
            Ok(ids) => ids,
            Err(code) => return Ok(code),
        };
        let written = ids.iter().try_for_each(|id| match to {
            Some(path) => save(&vault, id, path, args.force),
            None => print(&vault, id),
        });
        tries += 1;
        match written {
            Err(error) if tries < MAX_TRIES && error.downcast_ref().is_some_and(Error::is_gone) => {}
            written => return written.map(|()| ExitCode::SUCCESS),
        }
    }
}

/// Fails before the prompt if the file could not be written after it.
fn check(path: &Path, force: bool) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => bail!("{} is a directory: name a file in it with -o", path.display()),
        Ok(_) if !force => bail!("{} exists: give -f to replace it, or another name", path.display()),
        _ => Ok(()),
    }
}

/// Fails if the file would be written into the vault itself.
fn check_outside(path: &Path, vault: &Path) -> Result<()> {
    let identity = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    // Follow links, even to a file that does not exist yet.
    let mut target = path.to_owned();
    for _ in 0..40 {
        let Ok(link) = fs::read_link(&target) else { break };
        target = target.parent().unwrap_or(Path::new("")).join(link);
    }
    let folder = target.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let folder = fs::canonicalize(folder).unwrap_or_default();
    let vault_itself = identity(vault);
    if vault_itself.is_some() && folder.ancestors().any(|folder| identity(folder) == vault_itself) {
        bail!("{} is in the vault itself: write to a place outside of {}", path.display(), vault.display());
    }
    Ok(())
}

fn save(vault: &Vault, id: &Id, path: &Path, force: bool) -> Result<()> {
    vault.save(id, path, force).map_err(|error| explain_exists(error, path))
}

fn print(vault: &Vault, id: &Id) -> Result<()> {
    if io::stdout().is_terminal() && !vault.entry(id)?.head.is_text {
        bail!(
            "this document is not text, and not for a terminal: name a file with -o, or redirect the output"
        );
    }
    vault.check(id)?;
    let mut out = Out::new(false)?;
    match vault.read(id, &mut out) {
        Err(Error::Output(error)) => Err(error).context(WRITE_FAILED),
        read => Ok(read?),
    }?;
    out.finish()
}
