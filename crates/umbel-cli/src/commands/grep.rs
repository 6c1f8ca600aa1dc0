//! `umbel grep`: prints the lines that contain a text.

use crate::args::headings;
use crate::documents::search::{Search, SearchOptions};
use crate::input::LineLimit;
use crate::terminal::output;
use anyhow::{Result, bail};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel_text::index::{self, Index, Look, Selection};
use umbel_text::search::Pattern;

/// Print the lines that contain a text, reading few files.
///
/// Prints the same lines as `grep -rF`, and decompresses gzip and zstd, but skips the files and
/// blocks that an index rules out. The index is DIR.idx beside the directory, as written by `umbel
/// index build DIR`, or the one of --index. Files that are new or have changed since are read.
///
/// An index of words rules out files by the whole words of STRING. With -w these are all its words;
/// without -w only those that STRING itself delimits on both sides, such as `disk` in `[disk full`.
/// If there is no such word, or no index, all files are read, and a message says so.
///
/// A word consists of letters, digits and underscores of any language; if no language is set (LANG,
/// LC_ALL), only of ASCII ones, as in grep. A file with a zero byte is binary, and only the fact
/// that it matches is printed. Exit codes: 0 a line was found, 1 none was, 2 something could not be
/// read.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel index build logs && umbel grep -w timeout logs
  umbel grep -wn 'disk full' logs
  umbel grep -wil warning logs              # names of files, ignoring case")]
pub struct Args {
    /// Text to find, exactly as written; each line of it is a separate text
    #[arg(value_name = "STRING")]
    pattern: String,

    /// Directories or files [default: the current directory]
    #[arg(value_name = "DIR|FILE")]
    places: Vec<PathBuf>,

    /// Match only whole words
    #[arg(short, long, help_heading = headings::SEARCH)]
    word_regexp: bool,

    /// Ignore case
    #[arg(short, long, help_heading = headings::SEARCH)]
    ignore_case: bool,

    /// Use this index
    #[arg(long, value_name = "INDEX", conflicts_with = "no_index", help_heading = headings::SEARCH)]
    index: Option<PathBuf>,

    /// Use no index: read all files
    #[arg(long, help_heading = headings::SEARCH)]
    no_index: bool,

    /// Treat binary files as text
    #[arg(short = 'a', long, help_heading = headings::SEARCH)]
    text: bool,

    /// Accepted for compatibility with grep; directories are always searched recursively
    #[arg(short = 'r', long, hide = true, help_heading = headings::SEARCH)]
    recursive: bool,

    /// Accepted for compatibility with grep; the text is always a fixed string
    #[arg(short = 'F', long, hide = true, help_heading = headings::SEARCH)]
    fixed_strings: bool,

    #[command(flatten)]
    max_line: LineLimit,

    /// Print the number of each line before it
    #[arg(short = 'n', long, help_heading = headings::OUTPUT)]
    line_number: bool,

    /// Print only the names of files with matching lines
    #[arg(short = 'l', long, conflicts_with = "count", help_heading = headings::OUTPUT)]
    files_with_matches: bool,

    /// Print only the number of matching lines of each file
    #[arg(short, long, help_heading = headings::OUTPUT)]
    count: bool,

    /// Print nothing; only the exit code matters
    #[arg(short, long, help_heading = headings::OUTPUT)]
    quiet: bool,

    /// Print at most N lines of each file
    #[arg(short, long, value_name = "N", help_heading = headings::OUTPUT)]
    max_count: Option<u64>,

    /// Print the name of the file before each line, even for a single file
    #[arg(short = 'H', long, help_heading = headings::OUTPUT)]
    with_filename: bool,

    /// Print lines without the names of their files
    #[arg(long, conflicts_with = "with_filename", help_heading = headings::OUTPUT)]
    no_filename: bool,

    /// Report at the end how much was read
    #[arg(long, help_heading = headings::OUTPUT)]
    stats: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let look =
        Look { whole_words: args.word_regexp, ignore_case: args.ignore_case, ascii: language_is_unset() };
    let texts: Vec<&str> = args.pattern.split('\n').collect();
    let pattern = Pattern::new(&texts, look);
    let here = [PathBuf::from(".")];
    let places = if args.places.is_empty() { &here[..] } else { &args.places };
    let with_names = !args.no_filename
        && (args.with_filename || places.len() > 1 || places.iter().any(|place| place.is_dir()));
    let options = SearchOptions {
        with_names,
        line_numbers: args.line_number,
        names_only: args.files_with_matches,
        count: args.count,
        quiet: args.quiet,
        max_count: args.max_count.unwrap_or(u64::MAX),
        binary_as_text: args.text,
        max_line: args.max_line,
    };
    let mut search = Search::new(&pattern, options)?;
    for place in places {
        let mut selection = select(args, place, &texts, look)?;
        if args.places.is_empty() {
            // Without a place on the command line, names do not start with "./".
            selection = selection.named_from(Path::new(""));
        }
        if search.selection(&selection)?.is_break() {
            break;
        }
    }
    search.finish(args.stats)
}

/// Returns whether only ASCII letters count as letters, as for grep: when no environment variable
/// sets a language.
fn language_is_unset() -> bool {
    let set =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os).find(|set| !set.is_empty());
    set.is_none_or(|language| language == "C" || language == "POSIX")
}

/// Selects the files of a place, and the parts of each that have to be read.
fn select(args: &Args, place: &Path, texts: &[&str], look: Look) -> Result<Selection> {
    if args.no_index {
        return Ok(index::everything(place));
    }
    let Some((path, index)) = open_index(args, place)? else { return Ok(index::everything(place)) };
    let query = index.any_of(texts, look);
    if !query.is_decided() {
        let grams = index.source().text().and_then(|settings| settings.grams);
        let reason = match (grams, look.whole_words) {
            (Some(length), _) => format!("it needs {length} bytes in a row, or whole words with -w"),
            (None, true) => "there is no word in it".to_string(),
            (None, false) => {
                "it knows whole words, and this may be a part of one; see -w, or build it with --substrings"
                    .to_string()
            }
        };
        output::warn(format_args!(
            "the index {} cannot rule out files, so all are read: {reason}",
            path.display()
        ));
    }
    Ok(index.select_under(&query, place)?)
}

/// Opens the index of a place. Without --index, an index that cannot be used is reported, and
/// everything is read.
fn open_index(args: &Args, place: &Path) -> Result<Option<(PathBuf, Index)>> {
    let shown = place.display();
    if let Some(path) = &args.index {
        let index = Index::open(path)?;
        index.text()?;
        if !index.covers(place) && place.exists() {
            bail!("{} is not an index of {shown}", path.display());
        }
        return Ok(Some((path.clone(), index)));
    }
    let none = |why: String| {
        if place.is_dir() {
            output::warn(format_args!("{why}, so all of it is read: `umbel index build {shown}` makes one"));
        }
        Ok(None)
    };
    let Some(path) = index::beside(place) else { return none(format!("{shown} has no index")) };
    // Do not trust the index of another user, who could hide lines with it.
    let ours = fs::metadata(&path)
        .is_ok_and(|found| [0, rustix::process::geteuid().as_raw()].contains(&found.uid()));
    if !ours {
        return none(format!(
            "{} belongs to someone else, and is not used unless --index names it",
            path.display()
        ));
    }
    match Index::open(&path).and_then(|index| index.text().map(drop).map(|()| index)) {
        Ok(index) if index.covers(place) => Ok(Some((path, index))),
        Ok(_) => none(format!("{} is not an index of {shown}", path.display())),
        Err(error) => none(format!("{error:#}")),
    }
}
