//! `umbel key`: secrets for keyed and sealed filters.

use crate::filters::key_file;
use crate::names;
use crate::output;
use anyhow::{Context, Result, bail};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::{Hasher, Strength};

/// Make secrets for keyed and sealed filters.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    New(NewArgs),
}

/// Make a new secret and write it to a file that only you can read.
///
/// A keyed hash keeps others from crafting false positives; a sealed one also keeps the set itself from whoever holds
/// the filter. Without the file a filter built with it cannot be asked: keep a copy in a safe place. The tag that is
/// printed names the secret without giving it away; `umbel info` shows the same.
#[derive(clap::Args)]
struct NewArgs {
    /// The file to write; it must not exist
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// What it is for
    #[arg(long, default_value_t = Strength::Keyed, value_parser = names::secret_hash())]
    hash: Strength,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let Command::New(NewArgs { file, hash }) = &args.command;
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).context("the system has no random numbers")?;
    let (keyed, _) = secret.split_first_chunk().context("a secret of 32 bytes")?;
    let (hasher, contents) = match hash {
        Strength::Keyed => (Hasher::keyed(*keyed), key_file(*hash, keyed)),
        Strength::Sealed => (Hasher::sealed(secret), key_file(*hash, &secret)),
        _ => bail!("a {hash} hash has no secret: keyed and sealed have"),
    };
    let name = file.display();
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let mut created = match created {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!(
                "{name} exists: a secret is never overwritten, since filters may depend on it; give another name"
            )
        }
        result => result.with_context(|| format!("cannot create {name}"))?,
    };
    let written = created.write_all(contents.as_bytes()).and_then(|()| created.sync_all());
    if let Err(error) = written {
        // Half a secret is none, and would stand in the way of the next attempt. What went wrong first is what is told.
        let _ = std::fs::remove_file(file);
        return Err(error).with_context(|| format!("cannot write to {name}"));
    }
    output::text(format_args!("{}\n", hasher.id()))?;
    Ok(ExitCode::SUCCESS)
}
