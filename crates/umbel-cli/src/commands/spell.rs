//! `umbel spell`: words that are in no dictionary.

use crate::args::number;
use crate::documents::spelling::{Checker, Options, open_dictionary};
use crate::filters::Secrets;
use crate::input::is_stdin;
use crate::terminal::{exit, output};
use anyhow::{Result, bail};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

/// List the words of a text that are in no dictionary, with what may have been meant.
///
/// Every unknown word is a line: the file, the line, the character at which the word begins, both from 1, the word, and words
/// of the list that are one letter away. A character is a Unicode code point. Editors and compilers' tools know lines of this form.
///
/// The words of the dictionary are in a filter. What it does not know is certainly not in the dictionary, and a misspelling is missed with the
/// rate of the filter (-p). A word with a capital counts as known in small letters too, a word in capitals also with a capital, so
/// that such misspellings are missed twice and three times as often. What is suggested is in the list itself, always.
///
/// Words are letters with apostrophes between them; hyphens part words. Words with digits or underscores, addresses, names of files, and
/// paths are left out. German compounds that are not in the list are listed: they are not taken apart.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel spell README.md
  umbel spell --lang de --add names.txt brief.txt
  git log --format=%B | umbel spell --no-suggest

Exit codes: 0 every word is known, 1 some are not, 2 something went wrong.")]
pub struct Args {
    /// Texts to check; `-`, or no file, is standard input. What is compressed with gzip or zstd is recognised
    #[arg(value_name = "TEXT")]
    texts: Vec<PathBuf>,

    /// The language, en, en-gb, de, fr, it or es, whose word list Debian has in a package; or a file with a word in each line; or a
    /// filter of words, as `umbel build` makes it, which can suggest nothing
    #[arg(short, long, value_name = "LANG|FILE", default_value = "en")]
    lang: String,

    /// These words are known too: a file with a word in each line (repeatable)
    #[arg(short, long, value_name = "FILE")]
    add: Vec<PathBuf>,

    /// The share of misspellings that may be missed [default: 0.1%]
    #[arg(short = 'p', long, value_name = "RATE", alias = "rate", value_parser = number::rate)]
    fpr: Option<f64>,

    /// Suggest nothing
    #[arg(long)]
    no_suggest: bool,

    /// List each unknown word only where it comes first
    #[arg(long)]
    once: bool,

    /// Check addresses, names of files, and paths as well
    #[arg(long)]
    addresses: bool,

    /// Print only how many unknown words there are
    #[arg(short, long, conflicts_with = "quiet")]
    count: bool,

    /// Print nothing, and stop at the first unknown word
    #[arg(short, long)]
    quiet: bool,

    /// Print a line of JSON for each unknown word
    #[arg(long, conflicts_with_all = ["count", "quiet"])]
    json: bool,

    /// Say on standard error how large the filter is, and how often the list was read
    #[arg(long)]
    stats: bool,

    #[command(flatten)]
    secrets: Secrets,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let stdin = [PathBuf::from("-")];
    let texts = if args.texts.is_empty() { &stdin[..] } else { &args.texts };
    if args.texts.is_empty() && io::stdin().is_terminal() {
        bail!(
            "there is no text to check: name a file, or send one, as in `umbel spell < letter.txt`; `-` reads the terminal"
        );
    }
    let dictionary = open_dictionary(&args.lang, &args.add, args.fpr, &args.secrets)?;
    let options = Options {
        suggest: !args.no_suggest,
        once: args.once,
        addresses: args.addresses,
        count: args.count,
        quiet: args.quiet,
        json: args.json,
    };
    let mut checker = Checker::new(&dictionary, options, texts.iter().any(|text| is_stdin(text)))?;
    let mut failed = false;
    for text in texts {
        match checker.check(text) {
            Ok(flow) if flow.is_continue() => {}
            Ok(_) => break,
            // The exit code reports the result even if the output is not read to its end.
            Err(error) if output::is_broken_pipe(&error) => break,
            // The other texts are checked all the same.
            Err(error) => {
                failed = true;
                output::error(format_args!("{error:#}"));
            }
        }
    }
    let unknown = checker.finish(args.stats)?;
    Ok(match unknown {
        _ if failed => ExitCode::from(exit::FAILED),
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(exit::NOT_FOUND),
    })
}
