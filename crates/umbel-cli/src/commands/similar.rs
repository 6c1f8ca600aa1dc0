//! `umbel similar`: estimates how similar documents are.

use crate::args::{headings, number};
use crate::documents::similarity::{Documents, MAX_MATRIX_FILES, Options};
use crate::terminal::exit;
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;
use umbel_text::similarity::By;

/// Estimate how similar documents are, by a filter of each.
///
/// Two files are compared in full; for up to 32, a matrix shows the similarity of each pair. For
/// directories, or with --top or --at-least, the most similar pairs are listed instead, one per
/// line: the Jaccard similarity and the two files, separated by tabs.
///
/// The Jaccard similarity is the share of all elements of two files that both contain, estimated
/// from the bits of the two filters and of their union. The AND score of the literature is printed
/// beside it: the share of the bits of one filter that are also set in the other. It is never below
/// the fill of the other filter, even for files without a common element, so it grows with the
/// fill.
///
/// If all bits of one filter are set in the other, the first file is reported as contained in the
/// second. For HTML, only the visible text counts.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel similar draft1.txt draft2.txt
  umbel similar --by shingles --at-least 0.5 articles/
  umbel similar --by chunks backup1.tar backup2.tar

Exit codes: 0 done, 1 no pair is similar enough, 2 an error occurred.")]
pub struct Args {
    /// Files, or directories with files; `-` means standard input. Files compressed with gzip or
    /// zstd are decompressed
    #[arg(value_name = "FILE|DIR", required = true)]
    paths: Vec<PathBuf>,

    /// Elements to compare: words, runs of words (shingles), or chunks of about 256 bytes of any
    /// file [default: words]
    #[arg(
        short,
        long,
        value_name = "ELEMENTS",
        value_parser = ["words", "shingles", "chunks"],
        hide_possible_values = true,
        help_heading = headings::SEARCH
    )]
    by: Option<String>,

    /// Compare shingles of N words [default: 4]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(2..=64),
        help_heading = headings::SEARCH
    )]
    shingle: Option<u16>,

    /// List the pairs with at least this Jaccard similarity, from 0.05 to 1 [default: 0.5]
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = headings::SEARCH)]
    at_least: Option<f64>,

    /// Size of every filter (default: a size that fits the largest file)
    #[arg(
        short = 'm',
        long,
        value_name = "BITS",
        value_parser = number::bits,
        conflicts_with_all = ["top", "at_least"],
        help_heading = headings::FILTER
    )]
    bits: Option<u64>,

    /// Number of bits that an element sets, with --bits [default: 2]
    #[arg(short = 'k', long, value_name = "K", requires = "bits", help_heading = headings::FILTER)]
    hashes: Option<u32>,

    /// List at most N pairs [default: 20]
    #[arg(long, value_name = "N", value_parser = number::count, help_heading = headings::OUTPUT)]
    top: Option<u64>,

    /// Print JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

/// The default number of words in a shingle.
const SHINGLE_WORDS: u16 = 4;

/// The default number of pairs listed.
const LISTED_PAIRS: u64 = 20;

/// The default similarity from which pairs are listed.
const AT_LEAST: f64 = 0.5;

pub fn run(args: &Args) -> Result<ExitCode> {
    if args.shingle.is_some() && args.elements() != "shingles" {
        bail!("--shingle is for shingles, and --by asks for {}", args.elements());
    }
    let mut documents = Documents::find(&args.paths)?;
    let lists_pairs = args.top.is_some()
        || args.at_least.is_some()
        || args.paths.iter().any(|path| path.is_dir())
        || documents.paths.len() > MAX_MATRIX_FILES;
    if lists_pairs && args.bits.is_some() {
        bail!(
            "-m is for up to {MAX_MATRIX_FILES} files without directories: beyond that, each filter has the size that fits its file"
        );
    }
    let options = args.options();
    let code = if lists_pairs { documents.list_pairs(&options) } else { documents.print_matrix(&options) }?;
    Ok(if documents.skipped.is_empty() { code } else { ExitCode::from(exit::FAILED) })
}

/// Parses a similarity for --at-least.
fn share(text: &str) -> Result<f64, String> {
    let share = match text.trim_end_matches('%').parse() {
        Ok(0.0) => {
            return Err(format!(
                "that is every pair, and too many to list: a similarity from 0.05 to 1 is needed; without the option up to {MAX_MATRIX_FILES} files \
                 are compared each with each"
            ));
        }
        _ if text == "1" || text == "100%" => 1.0,
        _ => number::rate(text)?,
    };
    if share >= 0.05 { Ok(share) } else { Err("a similarity from 0.05 to 1 is needed".to_string()) }
}

impl Args {
    /// Returns the name of the elements that are compared.
    fn elements(&self) -> &str {
        self.by.as_deref().unwrap_or(if self.shingle.is_some() { "shingles" } else { "words" })
    }

    fn options(&self) -> Options<'_> {
        let by = match self.elements() {
            "chunks" => By::Chunks,
            "shingles" => By::Shingles(self.shingle.unwrap_or(SHINGLE_WORDS).into()),
            _ => By::Words,
        };
        Options {
            by,
            elements: self.elements(),
            shape: self.bits.map(|bits| (bits, self.hashes.unwrap_or(umbel_text::similarity::HASHES))),
            at_least: self.at_least.unwrap_or(AT_LEAST),
            top: usize::try_from(self.top.unwrap_or(LISTED_PAIRS)).unwrap_or(usize::MAX),
            json: self.json,
        }
    }
}
