//! `umbel key`: secrets for keyed and sealed filters.

use crate::args::{headings, names};
use crate::filters::NewKey;
use crate::terminal::output;
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::hash::Strength;

/// Create secrets for keyed and sealed filters.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel key new secret.key
  umbel build --hash keyed --key-file secret.key -o words.umbel words.txt
  umbel check --key-file secret.key words.umbel essay.txt")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    New(NewArgs),
}

/// Create a random secret in a file that only its owner can read.
///
/// A keyed hash prevents others from crafting false positives. A sealed hash also hides the set
/// from anyone who obtains the filter. A filter cannot be queried without its secret, so keep a
/// copy of the file in a safe place. The printed tag identifies the secret without revealing it;
/// `umbel info` shows the same tag.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel key new secret.key
  umbel key new --hash sealed sealed.key")]
struct NewArgs {
    /// File to create; it must not exist
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Hash that the secret is for
    #[arg(
        long,
        default_value_t = Strength::Keyed,
        value_parser = names::secret_hash(),
        help_heading = headings::FILTER
    )]
    hash: Strength,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let Command::New(NewArgs { file, hash }) = &args.command;
    let key = NewKey::random(*hash)?;
    key.write(file)?;
    output::text(format_args!("{}\n", key.hasher.id()))?;
    Ok(ExitCode::SUCCESS)
}
