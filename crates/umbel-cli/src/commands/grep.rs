//! `umbel grep`: lines that hold a text, in files that may hold it.

use crate::documents::search::{Search, SearchOptions};
use crate::terminal::output;
use anyhow::{Result, bail};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel_text::index::{self, Index, Look, Selection};
use umbel_text::search::Pattern;

/// Print the lines with a text, reading only the files that may hold it.
///
/// Prints what `grep -rF` prints, for gzip and zstd what their text has, but skips the files and blocks that the index of
/// the directory rules out: DIR.idx beside it, made by `umbel index build DIR`, or --index. Files that are new or have
/// changed since are read. An index of words can rule out files by the whole words of STRING: with -w by all of them,
/// without by those that STRING shows to end on both sides, as `disk` in `[disk full`. When it cannot tell, or there is no
/// index, everything is read, and a message says so.
///
/// What belongs to a word is a letter, digit or underscore of any language, unless none is set (LANG, LC_ALL): then of ASCII,
/// as for grep. A file with a zero byte counts as binary: that it matches is all that is printed. Exit codes: 0 a line was found, 1
/// none was, 2 something could not be read.
#[derive(clap::Args)]
pub struct Args {
    /// The text, exactly as it stands; several lines are several texts, any of which is looked for
    #[arg(value_name = "STRING")]
    pattern: String,

    /// Directories, or files [default: the current directory]
    #[arg(value_name = "DIR|FILE")]
    places: Vec<PathBuf>,

    /// The index to use
    #[arg(long, value_name = "INDEX", conflicts_with = "no_index")]
    index: Option<PathBuf>,

    /// Read everything
    #[arg(long)]
    no_index: bool,

    /// Only where no letter, digit or underscore stands before or behind it
    #[arg(short, long)]
    word_regexp: bool,

    /// Capital and small letters are the same
    #[arg(short, long)]
    ignore_case: bool,

    /// Print the number of each line before it
    #[arg(short = 'n', long)]
    line_number: bool,

    /// Print only the names of files with such lines
    #[arg(short = 'l', long, conflicts_with = "count")]
    files_with_matches: bool,

    /// Print only how many such lines each file has
    #[arg(short, long)]
    count: bool,

    /// Print nothing: the exit code tells
    #[arg(short, long)]
    quiet: bool,

    /// Print no more than this many lines of each file
    #[arg(short, long, value_name = "N")]
    max_count: Option<u64>,

    /// Print the name of the file before each line, for a single file too
    #[arg(short = 'H', long)]
    with_filename: bool,

    /// Print lines without the names of their files
    #[arg(long, conflicts_with = "with_filename")]
    no_filename: bool,

    /// What grep would be told, and is so anyway
    #[arg(short = 'r', long, hide = true)]
    recursive: bool,

    /// What grep would be told, and is so anyway
    #[arg(short = 'F', long, hide = true)]
    fixed_strings: bool,

    /// Take binary files for text
    #[arg(short = 'a', long)]
    text: bool,

    /// Tell at the end how much was read
    #[arg(long)]
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

/// Returns whether only ASCII letters count as letters, as for grep: when no environment variable sets a language.
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
        let reason = match (index.settings().grams, look.whole_words) {
            (Some(length), _) => format!("it needs {length} bytes in a row, or whole words with -w"),
            (None, true) => "there is no word in it".to_string(),
            (None, false) => {
                "it knows whole words, and this may be a part of one; see -w, or build it with --substrings"
                    .to_string()
            }
        };
        output::warn(format_args!(
            "the index {} cannot tell, so all files are read: {reason}",
            path.display()
        ));
    }
    Ok(index.select_under(&query, place)?)
}

/// Opens the index of a place. Without --index, an index that cannot be used is reported, and everything is read.
fn open_index(args: &Args, place: &Path) -> Result<Option<(PathBuf, Index)>> {
    let shown = place.display();
    if let Some(path) = &args.index {
        let index = Index::open(path)?;
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
    match Index::open(&path) {
        Ok(index) if index.covers(place) => Ok(Some((path, index))),
        Ok(_) => none(format!("{} is not an index of {shown}", path.display())),
        Err(error) => none(format!("{error:#}")),
    }
}
