//! `umbel key`: secrets for keyed and sealed filters.

use crate::args::names;
use crate::filters::NewKey;
use crate::terminal::output;
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::hash::Strength;

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
    let key = NewKey::random(*hash)?;
    key.write(file)?;
    output::text(format_args!("{}\n", key.hasher.id()))?;
    Ok(ExitCode::SUCCESS)
}
