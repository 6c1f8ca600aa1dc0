//! `umbel hyphenate`: marks where the words of a text may be broken.

use crate::args::{headings, names};
use crate::documents::hyphenation::{open_hyphenator, report_counts};
use crate::input::{check_not_stdout, may_wait, name, open_bytes, resolve};
use crate::terminal::output::Out;
use crate::terminal::{exit, output};
use anyhow::{Context, Result};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel_text::Error;
use umbel_text::hyphenation::{Counts, Hyphenator, Language};

/// Mark where the words of a text may be broken.
///
/// Rules hyphenate most words, and an exact list has the exceptions. A filter of the exceptions
/// says whether the list has to be read: this is the example with which Bloom introduced his filter
/// in 1970. The rules are the patterns of TeX.
///
/// All other bytes are copied as they are: white space, line ends, and bytes that are not UTF-8.
/// Words with digits, underscores or hyphens, web addresses, file names and absolute paths are left
/// alone. A word is broken after at least two letters, and before at least three in English and two
/// in German.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel hyphenate letter.txt
  umbel hyphenate --lang de --soft brief.txt > weich.txt
  umbel hyphenate --exceptions names.txt --stats < letter.txt")]
pub struct Args {
    /// Texts; `-` or no file means standard input. Files compressed with gzip or zstd are
    /// decompressed
    #[arg(value_name = "TEXT")]
    texts: Vec<PathBuf>,

    /// Language of the text
    #[arg(
        short,
        long,
        value_name = "LANG",
        default_value = Language::English.code(),
        value_parser = names::hyphenated_language(),
        help_heading = headings::INPUT
    )]
    lang: Language,

    /// Break the words in FILE at its hyphens, but never closer to an end of the word than the
    /// language allows; one word per line, such as ta-ble (repeatable)
    #[arg(short, long, value_name = "FILE", help_heading = headings::INPUT)]
    exceptions: Vec<PathBuf>,

    /// Insert soft hyphens, which are shown only at the end of a line, instead of hyphens
    #[arg(short, long, help_heading = headings::OUTPUT)]
    soft: bool,

    /// Report on standard error how often the list of exceptions was read
    #[arg(long, help_heading = headings::OUTPUT)]
    stats: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let texts = resolve(&args.texts)?;
    check_not_stdout(&texts)?;
    let hyphenator = open_hyphenator(args.lang, &args.exceptions)?;
    let mark = if args.soft { "\u{ad}" } else { "-" };
    let (mut counts, mut failed) = (Counts::default(), false);
    for text in &texts {
        match hyphenate(&hyphenator, text, mark) {
            Ok(more) => counts += more,
            Err(error) if output::is_broken_pipe(&error) => return Err(error),
            // The other texts are printed all the same.
            Err(error) => {
                failed = true;
                output::error(format_args!("{error:#}"));
            }
        }
    }
    if args.stats {
        report_counts(&hyphenator, counts);
    }
    Ok(if failed { ExitCode::from(exit::FAILED) } else { ExitCode::SUCCESS })
}

fn hyphenate(hyphenator: &Hyphenator, path: &Path, mark: &str) -> Result<Counts> {
    let text = BufReader::with_capacity(1 << 16, open_bytes(path)?);
    match hyphenator.hyphenate(text, Out::new(may_wait(path))?, mark) {
        Ok(counts) => Ok(counts),
        Err(Error::Input(error)) => Err(error).with_context(|| format!("cannot read {}", name(path))),
        Err(Error::Output(error)) => Err(error).context(output::WRITE_FAILED),
        Err(error) => Err(error.into()),
    }
}
