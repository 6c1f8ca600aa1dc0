//! `umbel vault init`: a vault with nothing in it.

use crate::args::number;
use crate::documents::vaults::PassphraseArgs;
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel_text::vault::{Cost, Options, Vault};

/// Make a new vault.
///
/// `umbel vault add` makes one too; this is for other parameters than the usual ones. Whoever forgets the passphrase has lost
/// what is in the vault.
#[derive(clap::Args)]
pub struct Args {
    /// The directory to make, or an empty one
    #[arg(value_name = "VAULT")]
    vault: PathBuf,

    /// Indexes for so many different words; a document with more has several, and that can be seen
    #[arg(long, value_name = "N", default_value = "2000", value_parser = words)]
    words: u32,

    /// The share of documents that the server takes for hits and that are none
    #[arg(short = 'p', long, value_name = "RATE", default_value = "0.01%", value_parser = number::rate)]
    fpr: f64,

    /// The memory that every guess of the passphrase takes
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = memory)]
    memory: u32,

    /// How often it goes through that memory
    #[arg(long, value_name = "N", default_value_t = Cost::DEFAULT.passes, value_parser = passes)]
    passes: u32,

    #[command(flatten)]
    secret: PassphraseArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let passphrase = args.secret.new_passphrase(&args.vault)?;
    let cost = Cost { memory: args.memory, passes: args.passes, ..Cost::DEFAULT };
    let options = Options { cost, words: args.words, rate: args.fpr };
    Vault::create(&args.vault, &passphrase, &options)?;
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
    Err(format!("at least 16MiB, so that guesses are dear, and at most {}MiB", most >> 10))
}

fn passes(text: &str) -> Result<u32, String> {
    let passes = u32::try_from(number::count(text)?).unwrap_or(u32::MAX);
    let most = Cost::LARGEST.passes;
    if (1..=most).contains(&passes) { Ok(passes) } else { Err(format!("1 to {most} passes")) }
}
