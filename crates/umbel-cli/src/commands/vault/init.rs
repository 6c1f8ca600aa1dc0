//! `umbel vault init`: creates an empty vault.

use crate::args::{headings, number};
use crate::documents::passphrases::PassphraseArgs;
use crate::terminal::output;
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel_text::vault::{Cost, Options, Vault};

/// Create an empty vault.
///
/// `umbel vault add` also creates a vault; this command is only needed for other parameters than
/// the defaults. Without the passphrase, the contents of a vault are lost.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel vault init archive
  umbel vault init --words 20000 --memory 256MiB large-archive")]
pub struct Args {
    /// Directory to create, or an empty one
    #[arg(value_name = "VAULT")]
    vault: PathBuf,

    /// Number of distinct words that an index has room for; a document with more has several
    /// indexes, which is visible
    #[arg(
        long,
        value_name = "N",
        default_value = "2000",
        value_parser = words,
        help_heading = headings::FILTER
    )]
    words: u32,

    /// Share of documents that an index reports without a match
    #[arg(
        short = 'p',
        long,
        value_name = "RATE",
        default_value = "0.01%",
        value_parser = number::rate,
        help_heading = headings::FILTER
    )]
    fpr: f64,

    /// Memory that each guess of the passphrase costs
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "64MiB",
        value_parser = memory,
        help_heading = headings::SECRETS
    )]
    memory: u32,

    /// Number of passes over that memory
    #[arg(
        long,
        value_name = "N",
        default_value_t = Cost::DEFAULT.passes,
        value_parser = passes,
        help_heading = headings::SECRETS
    )]
    passes: u32,

    #[command(flatten)]
    secret: PassphraseArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let passphrase = args.secret.new_passphrase(&args.vault)?;
    let cost = Cost { memory: args.memory, passes: args.passes, ..Cost::DEFAULT };
    let options = Options { cost, words: args.words, rate: args.fpr };
    let vault = Vault::create(&args.vault, &passphrase, &options)?;
    args.secret.remember(&vault)?;
    if cost.required_limit() > Cost::MAX_TRUSTED_MEMORY {
        let limit = cost.required_limit().div_ceil(1024);
        output::message(format_args!("umbel: this vault opens only with --max-memory {limit}MiB"));
    }
    Ok(ExitCode::SUCCESS)
}

fn words(text: &str) -> Result<u32, String> {
    let words = u32::try_from(number::count(text)?).ok().filter(|words| (8..=1 << 20).contains(words));
    words.ok_or_else(|| "an index has 8 to 1048576 words".to_owned())
}

/// Parses the memory of the passphrase hash, and returns it in KiB.
fn memory(text: &str) -> Result<u32, String> {
    let kib = u32::try_from(number::bytes(text)? / 1024).unwrap_or(u32::MAX);
    let most = Cost::LARGEST.memory;
    if (16 << 10..=most).contains(&kib) {
        return Ok(kib);
    }
    Err(format!("at least 16MiB, so that guesses are expensive, and at most {}MiB", most >> 10))
}

fn passes(text: &str) -> Result<u32, String> {
    let passes = u32::try_from(number::count(text)?).unwrap_or(u32::MAX);
    let most = Cost::LARGEST.passes;
    if (1..=most).contains(&passes) { Ok(passes) } else { Err(format!("1 to {most} passes")) }
}
