//! `umbel grep`: lines that hold a text, in files that may hold it.

use crate::documents::report_unreadable;
use crate::input;
use crate::terminal::exit::{FAILED, NOT_FOUND};
use crate::terminal::output::{self, Out};
use anyhow::{Result, bail};
use rayon::prelude::*;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel_text::index::{self, Index, Look, Part, Selected, Selection};
use umbel_text::search::{Pattern, Searcher};

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
    text: String,

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
    text_only: bool,

    /// Tell at the end how much was read
    #[arg(long)]
    stats: bool,
}

/// Files of more bytes than this are searched one at a time, and what they give is printed at once.
const LARGE: u64 = 16 << 20;
/// How many others are searched at once, and then printed in their order.
const MANY: usize = 256;
/// A file that gives more than this is searched again, and what it gives printed at once.
const MUCH: usize = 1 << 20;

pub fn run(args: &Args) -> Result<ExitCode> {
    let look =
        Look { whole_words: args.word_regexp, ignore_case: args.ignore_case, ascii: language_is_unset() };
    let texts: Vec<&str> = args.text.split('\n').collect();
    let pattern = Pattern::new(&texts, look);
    let here = [PathBuf::from(".")];
    let places = if args.places.is_empty() { &here[..] } else { &args.places };
    let named = !args.no_filename
        && (args.with_filename || places.len() > 1 || places.iter().any(|place| place.is_dir()));
    let mut run = Run {
        args,
        named,
        pattern: &pattern,
        out: Out::new(false)?,
        any: false,
        failed: false,
        read: Amount::default(),
        all: Amount::default(),
    };
    for place in places {
        let mut selection = select(args, place, &texts, look)?;
        if args.places.is_empty() {
            // Who names no place wants no "./" before the names.
            selection = selection.named_from(Path::new(""));
        }
        if run.selection(&selection)? {
            break;
        }
    }
    run.finish()
}

/// Whether programs take letters for those of ASCII here, as grep does: no variable names a language.
fn language_is_unset() -> bool {
    let set =
        ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(std::env::var_os).find(|set| !set.is_empty());
    set.is_none_or(|language| language == "C" || language == "POSIX")
}

/// The files of a place, and what of each has to be read.
fn select(args: &Args, place: &Path, texts: &[&str], look: Look) -> Result<Selection> {
    if args.no_index {
        return Ok(index::everything(place));
    }
    let Some((path, index)) = open(args, place)? else { return Ok(index::everything(place)) };
    let query = index.any_of(texts, look);
    if !query.is_decided() {
        let why = match (index.settings().grams, look.whole_words) {
            (Some(length), _) => format!("it needs {length} bytes in a row, or whole words with -w"),
            (None, true) => "there is no word in it".to_string(),
            (None, false) => {
                "it knows whole words, and this may be a part of one; see -w, or build it with --substrings"
                    .to_string()
            }
        };
        output::warn(format_args!("the index {} cannot tell, so all files are read: {why}", path.display()));
    }
    Ok(index.select_under(&query, place)?)
}

/// The index of a place. One that was not asked for is used if it can be; if not, that is said, and everything is read.
fn open(args: &Args, place: &Path) -> Result<Option<(PathBuf, Index)>> {
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
    // Who may write an index may hide lines by it.
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

/// Files and bytes.
#[derive(Default)]
struct Amount {
    files: u64,
    bytes: u64,
}

/// What is done with every file, and what came of it.
struct Run<'a> {
    args: &'a Args,
    /// Whether lines begin with the names of their files.
    named: bool,
    pattern: &'a Pattern,
    out: Out,
    any: bool,
    failed: bool,
    read: Amount,
    all: Amount,
}

/// What one file gave.
#[derive(Default)]
struct Given {
    count: u64,
    printed: Vec<u8>,
    read: u64,
    failed: Option<io::Error>,
}

impl Run<'_> {
    /// Searches the files in their order; whether enough was found.
    fn selection(&mut self, selection: &Selection) -> Result<bool> {
        self.failed |= !selection.failed.is_empty();
        report_unreadable(&selection.failed);
        // What is printed would be found again, and again.
        let (output, files): (Vec<&Selected>, Vec<&Selected>) =
            selection.files.iter().partition(|file| input::is_output_file(|| file.path(), file.inode()));
        for file in output {
            self.failed = true;
            output::error(format_args!(
                "{} is both an input and the output: it is not searched",
                file.name().display()
            ));
        }
        let mut left = &files[..];
        while let Some(first) = left.first() {
            let large = |file: &&Selected| file.bytes() > LARGE && file.part != Part::Nothing;
            if large(first) {
                let given = self.large(first)?;
                self.take(first, given)?;
                left = &left[1..];
            } else {
                let count = left.iter().take(MANY).take_while(|file| !large(file)).count();
                let (now, later) = left.split_at(count);
                let (args, named, pattern) = (self.args, self.named, self.pattern);
                let search = |file: &&Selected| {
                    let mut printed = Vec::new();
                    let given = search(args, named, pattern, file, |line| {
                        printed.extend_from_slice(line);
                        printed.len() < MUCH
                    });
                    Given { printed, ..given }
                };
                let given: Vec<Given> = now.par_iter().with_min_len(16).map(search).collect();
                for (file, mut given) in now.iter().zip(given) {
                    if given.printed.len() >= MUCH {
                        given = self.large(file)?;
                    }
                    self.take(file, given)?;
                }
                left = later;
            }
            if self.args.quiet && self.any {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A file whose lines are printed as they are found.
    fn large(&mut self, file: &Selected) -> Result<Given> {
        let mut trouble = Ok(());
        let out = &mut self.out;
        let given = search(self.args, self.named, self.pattern, file, |line| {
            trouble = out.write(line, false);
            trouble.is_ok()
        });
        trouble?;
        Ok(given)
    }

    fn take(&mut self, file: &Selected, given: Given) -> Result<()> {
        self.all.files += 1;
        self.all.bytes += file.bytes();
        self.read.files += u64::from(file.part != Part::Nothing);
        self.read.bytes += given.read;
        self.any |= given.count > 0;
        self.out.write(&given.printed, false)?;
        match given.failed {
            // It has gone since its directory was read.
            Some(error) if error.kind() == io::ErrorKind::NotFound => {}
            Some(error) => {
                self.failed = true;
                report_unreadable(&[(file.name(), error)]);
            }
            None => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<ExitCode> {
        let Run { args, out, any, failed, read, all, .. } = self;
        out.finish()?;
        if args.stats {
            let share = |part: u64, of: u64| if of > 0 { 100.0 * part as f64 / of as f64 } else { 0.0 };
            output::say(format_args!(
                "read {} of {} files ({:.2} %), {} of {} bytes ({:.2} %)",
                read.files,
                all.files,
                share(read.files, all.files),
                read.bytes,
                all.bytes,
                share(read.bytes, all.bytes)
            ));
        }
        Ok(ExitCode::from(match (failed, any) {
            (true, any) if !(any && args.quiet) => FAILED,
            (_, true) => 0,
            _ => NOT_FOUND,
        }))
    }
}

/// Searches a file, and gives what is to be printed line by line, as long as more is wanted.
fn search(
    args: &Args,
    named: bool,
    pattern: &Pattern,
    file: &Selected,
    mut print: impl FnMut(&[u8]) -> bool,
) -> Given {
    let most = args.max_count.unwrap_or(u64::MAX);
    let mut searcher = Searcher::new(pattern).numbers(args.line_number);
    let silent = args.quiet || args.count || args.files_with_matches;
    let name = file.name();
    let name = name.as_os_str().as_bytes();
    let mut given = Given::default();
    let mut line_out = Vec::new();
    let result = if most == 0 {
        Ok(())
    } else {
        searcher.search(file, |line| {
            given.count += 1;
            if silent {
                return args.count && given.count < most;
            }
            if line.binary && !args.text_only {
                print(&[b"umbel: ", name, b": binary file matches\n"].concat());
                return false;
            }
            line_out.clear();
            if named {
                line_out.extend_from_slice(name);
                line_out.push(b':');
            }
            if args.line_number {
                let _ = write!(line_out, "{}:", line.number);
            }
            line_out.extend_from_slice(line.text);
            line_out.push(b'\n');
            print(&line_out) && given.count < most
        })
    };
    if args.count && !args.quiet {
        let count = given.count.to_string();
        let prefix: &[&[u8]] = if named { &[name, b":"] } else { &[] };
        print(&[&prefix.concat()[..], count.as_bytes(), b"\n"].concat());
    } else if args.files_with_matches && !args.quiet && given.count > 0 {
        print(&[name, b"\n"].concat());
    }
    given.read = searcher.bytes_read();
    given.failed = result.err();
    given
}
