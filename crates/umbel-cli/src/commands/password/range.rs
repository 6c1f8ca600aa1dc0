//! `umbel password range`: the range query of the service Have I Been Pwned.

use crate::args::headings;
use crate::documents::word_lists;
use crate::input::{is_stdin, open_list};
use crate::terminal::exit::found;
use crate::terminal::output::Out;
use anyhow::Result;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use umbel_text::content;
use umbel_text::password::{Prefix, RangeList, scan};

/// Print the hashes in a list that start with five digits, like Have I Been Pwned.
///
/// A client of that service sends the first five digits of a password's SHA-1 or NTLM hash, receives
/// the other 35 or 27 digits of all hashes with that prefix, with counts, and compares them itself,
/// so the service does not learn the password's hash. No Bloom filter is involved. `umbel
/// password check --range LIST` is such a client.
///
/// A list that is sorted by hash is searched by bisection, which reads only a few pages of it. A
/// list that is unsorted, compressed or from a pipe is read as a whole. Whether it is sorted is
/// decided by a sample of its lines. The exit code is 1 if no hash has the prefix.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel password range pwned-passwords.txt 5BAA6")]
pub struct Args {
    /// List of SHA-1 or NTLM hashes, with or without counts; `-` means standard input
    #[arg(value_name = "LIST")]
    list: PathBuf,

    /// First five hexadecimal digits of a hash
    #[arg(value_name = "PREFIX")]
    prefix: Prefix,

    /// Read the whole list, even if it seems to be sorted
    #[arg(long, help_heading = headings::INPUT)]
    scan: bool,

    /// End lines with a carriage return and a newline, like the service
    #[arg(long, help_heading = headings::OUTPUT)]
    crlf: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    // This also fails if the file is not a list.
    let mut reader = open_list(&args.list, Arc::default())?;
    let plain = !is_stdin(&args.list)
        && std::fs::metadata(&args.list).is_ok_and(|found| found.is_file())
        && content::format(&content::start_of(&mut std::fs::File::open(&args.list)?)?).is_none();
    let found_here = if plain && !args.scan {
        RangeList::open(&args.list).and_then(|mut list| list.range(args.prefix))
    } else {
        scan(&mut reader, args.prefix)
    };
    let failed = |error| word_lists::with_list_name(error, format!("cannot ask {}", args.list.display()));
    let suffixes = found_here.map_err(failed)?;
    let end = if args.crlf { "\r\n" } else { "\n" };
    let mut lines = Vec::new();
    for suffix in &suffixes {
        // Writing to memory cannot fail.
        let _ = write!(lines, "{suffix}{end}");
    }
    let mut out = Out::new(false)?;
    out.write(&lines, true)?;
    out.finish()?;
    Ok(found(!suffixes.is_empty()))
}
