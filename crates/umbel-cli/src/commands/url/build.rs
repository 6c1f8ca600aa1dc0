//! `umbel url build`: builds a filter and an exact list from unsafe addresses.

use super::{exact_list_beside, next_exact_list_beside};
use crate::args::{headings, number};
use crate::filters::{LockArgs, Secrets, explain_exists};
use crate::input::{LineLimit, check_not_output, is_stdin, name, open_list, read_failed, resolve};
use crate::report::size;
use crate::terminal::output::{self, warn};
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use umbel::any::Stored;
use umbel::file::{self, Meta, Options};
use umbel_text::address::{Address, Exact, Full, Screen, sha256};
use umbel_text::lines::Lines;

/// Build a filter of unsafe addresses, and the exact list beside it.
///
/// A line is a host (`evil.example`), a host with a folder (`host.example/bad/`) or a page, with or
/// without a scheme; empty lines and text after `#` are ignored. Hosts files (`0.0.0.0
/// evil.example`) are understood too, and `*.evil.example` and `||evil.example^` mean the host.
/// Other lines that contain blanks or one of `*|^` are skipped and counted. A host covers all hosts
/// below it with up to four more labels than its own, and five in all; a folder covers everything
/// below it, if it is at most three levels deep.
///
/// OUTPUT holds four bytes of each hash in a filter, and OUTPUT.exact the whole hashes, 32 bytes
/// each. The filter can be distributed widely, while the exact list stays in one place. If a build is
/// interrupted after the filter was replaced, the list of that filter is OUTPUT.exact.new, which `url
/// check` reads and the next build renames.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel url build phishing.txt -o bad.urls")]
pub struct Args {
    /// Lists of addresses; `-` or no list means standard input
    #[arg(value_name = "LIST")]
    lists: Vec<PathBuf>,

    /// Share of the expressions of safe addresses for which the exact list is read in vain
    #[arg(
        short = 'p',
        long,
        value_name = "RATE",
        value_parser = number::rate,
        default_value = "0.1%",
        help_heading = headings::FILTER
    )]
    fpr: f64,

    /// Number of bytes of each hash in the filter, 4 to 32
    #[arg(long, value_name = "BYTES", default_value_t = Screen::PREFIX, help_heading = headings::FILTER)]
    prefix: usize,

    #[command(flatten)]
    max_line: LineLimit,

    #[command(flatten)]
    secrets: Secrets,

    /// Write the filter to FILE, and the exact list to FILE.exact
    #[arg(short, long, value_name = "FILE", help_heading = headings::OUTPUT)]
    output: PathBuf,

    /// Replace both files if they exist
    #[arg(short, long, help_heading = headings::OUTPUT)]
    force: bool,

    #[command(flatten)]
    lock: LockArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    if is_stdin(&args.output) {
        bail!("two files are written, so standard output cannot be used: name a file with -o");
    }
    let exact = exact_list_beside(&args.output);
    let lists = resolve(&args.lists)?;
    for path in [&args.output, &exact] {
        check_not_output(&lists, path)?;
        if path.is_dir() {
            bail!("{} is a directory: name a file in it with -o", path.display());
        }
        if !args.force && path.exists() {
            bail!("{} exists: give -f to replace it, or another name", path.display());
        }
    }
    let hasher = args.secrets.single()?.unwrap_or_default();
    let mut hashes: Vec<Full> = Vec::new();
    let mut skipped = SkippedLines::default();
    for list in &lists {
        let mut lines = Lines::with_max_line(open_list(list, Arc::default())?, args.max_line.bytes());
        while lines.more().map_err(|error| read_failed(error, list))? {
            for (number, line) in (lines.number()..).zip(lines.lot()) {
                let mut wrong = None;
                for address in Address::listed(line) {
                    match address {
                        Ok(address) => hashes.push(sha256(&address.expression())),
                        Err(why) => wrong = Some(why),
                    }
                }
                if let Some(why) = wrong {
                    skipped.add(format_args!("line {number} of {}, since {why}", name(list)));
                }
            }
        }
    }
    if hashes.is_empty() {
        match skipped.first {
            Some(first) => bail!("there is no address: the first line that is not one is {first}"),
            None => bail!("there is no address in the list"),
        }
    }
    skipped.report();
    hashes.sort_unstable();
    hashes.dedup();
    let screen = Screen::from_hashes(&hashes, args.prefix, args.fpr, hasher)?;
    let mut meta = Meta::new();
    screen.record(&mut meta);
    // Both files come from the same process if two write at once, and a process that sets metadata
    // does not undo this.
    let _folder = args.lock.lock_folder(&args.output)?;
    let _lock = if args.force && args.output.is_file() { Some(args.lock.lock(&args.output)?) } else { None };
    let next = next_exact_list_beside(&args.output);
    finish_interrupted(&args.output, &next, &exact)?;
    // Until the new filter is in place, the old one and its list are in use; from then on, the new
    // list is, also under its temporary name. So a crash at any time leaves a filter with its list.
    Exact::save(&next, &hashes, true)?;
    let filter = Stored::from(screen.into_filter());
    let options = Options { meta, create_new: !args.force, ..Options::default() };
    if let Err(error) = file::save(&args.output, &filter, &options) {
        // The first error is the one to report.
        let _ = fs::remove_file(&next);
        return Err(explain_exists(error, &args.output));
    }
    rename(&next, &exact)?;
    if std::io::stderr().is_terminal() {
        let bytes = filter.stats().bytes;
        output::message(format_args!("{} addresses, filter of {}", hashes.len(), size(bytes)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Renames the list of a build that was interrupted after its filter was in place.
fn finish_interrupted(filter: &Path, next: &Path, exact: &Path) -> Result<()> {
    let Ok(list) = Exact::open(next) else { return Ok(()) };
    match file::inspect(filter) {
        Ok(info) if Screen::meta_fits(&info.meta, &list) => rename(next, exact),
        _ => Ok(()),
    }
}

fn rename(next: &Path, exact: &Path) -> Result<()> {
    fs::rename(next, exact)
        .with_context(|| format!("cannot rename {} to {}", next.display(), exact.display()))
}

/// Lines that are not addresses.
#[derive(Default)]
struct SkippedLines {
    count: u64,
    first: Option<String>,
}

impl SkippedLines {
    fn add(&mut self, which: std::fmt::Arguments<'_>) {
        self.count += 1;
        self.first.get_or_insert_with(|| which.to_string());
    }

    fn report(&self) {
        if let Some(first) = &self.first {
            let lines =
                if self.count == 1 { "line that is not an address" } else { "lines that are not addresses" };
            warn(format_args!("skipped {} {lines}; the first is {first}", self.count));
        }
    }
}
