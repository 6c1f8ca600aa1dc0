//! `umbel spell`: lists the words that are not in a dictionary.

use crate::args::{headings, number};
use crate::documents::spelling::{Checker, Options, open_dictionary};
use crate::filters::Secrets;
use crate::input::is_stdin;
use crate::terminal::{exit, output};
use anyhow::{Result, bail};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

/// List the words of a text that are not in a dictionary.
///
/// Each unknown word is printed as FILE:LINE:COLUMN: WORD: SUGGESTIONS, a form that editors
/// understand. Lines and columns start at 1, and a column is a Unicode code point. Suggestions are
/// words of the dictionary that are one letter away.
///
/// The words of the dictionary are in a filter, so a misspelling is missed at the filter's rate
/// (-p), and a known word is never reported. A capitalised word is also looked up in lower case,
/// and a word in capitals also capitalised, so such misspellings are missed two and three times as
/// often. Suggestions always come from the word list itself.
///
/// A word consists of letters with apostrophes between them; hyphens separate words. Words with
/// digits or underscores, web addresses, file names and paths are skipped. German compounds are not
/// taken apart, so those that are not in the list are reported.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel spell README.md
  umbel spell --lang words.txt --add names.txt letter.txt
  umbel spell --lang de brief.txt
  umbel spell --no-suggest --once < letter.txt

Exit codes: 0 every word is known, 1 some are not, 2 an error occurred.")]
pub struct Args {
    /// Texts to check; `-` or no file means standard input. Files compressed with gzip or zstd are
    /// decompressed
    #[arg(value_name = "TEXT")]
    texts: Vec<PathBuf>,

    /// Language (en, en-gb, de, fr, it or es), whose word list is in a Debian package; or a file
    /// with one word per line; or a filter of words made by `umbel build`, which has no suggestions
    #[arg(short, long, value_name = "LANG|FILE", default_value = "en", help_heading = headings::SEARCH)]
    lang: String,

    /// Accept the words in FILE too, one per line (repeatable)
    #[arg(short, long, value_name = "FILE", help_heading = headings::SEARCH)]
    add: Vec<PathBuf>,

    /// Maximum share of misspellings that are missed [default: 0.1%]
    #[arg(
        short = 'p',
        long,
        value_name = "RATE",
        alias = "rate",
        value_parser = number::rate,
        help_heading = headings::FILTER
    )]
    fpr: Option<f64>,

    /// Check web addresses, file names and paths too
    #[arg(long, help_heading = headings::SEARCH)]
    addresses: bool,

    #[command(flatten)]
    secrets: Secrets,

    /// Print no suggestions
    #[arg(long, help_heading = headings::OUTPUT)]
    no_suggest: bool,

    /// Print only the first occurrence of each unknown word
    #[arg(long, help_heading = headings::OUTPUT)]
    once: bool,

    /// Print only the number of unknown words
    #[arg(short, long, conflicts_with = "quiet", help_heading = headings::OUTPUT)]
    count: bool,

    /// Print nothing, and stop at the first unknown word
    #[arg(short, long, help_heading = headings::OUTPUT)]
    quiet: bool,

    /// Print a line of JSON for each unknown word
    #[arg(long, conflicts_with_all = ["count", "quiet"], help_heading = headings::OUTPUT)]
    json: bool,

    /// Report on standard error the size of the filter and how often the list was read
    #[arg(long, help_heading = headings::OUTPUT)]
    stats: bool,
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
