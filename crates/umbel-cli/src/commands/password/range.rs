//! `umbel password range`: what the service Have I Been Pwned answers.

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

/// Print all hashes of a list that start with five digits, as the service Have I Been Pwned answers.
///
/// That service is no Bloom filter. Who has a password sends the first five of the forty digits of its SHA-1, and receives
/// the other 35 of all that start so, with counts; the comparison is made at home, so that the service does not learn which
/// hash was meant. `umbel password check --range LIST` is that client.
///
/// A list that is sorted by hash is searched by halving, and only a few pages of it are read; one in another order, compressed
/// or from a pipe is read through. Whether it is sorted is told by a sample of its lines. Exit code 1 if there are none.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel password range pwned-passwords-sha1-ordered-by-hash.txt 5BAA6")]
pub struct Args {
    /// A list with SHA-1 hashes, each with a count or without; `-` is standard input
    #[arg(value_name = "LIST")]
    list: PathBuf,

    /// The first five hexadecimal digits of a SHA-1 hash
    #[arg(value_name = "PREFIX")]
    prefix: Prefix,

    /// End lines as the service does, with a carriage return and a newline
    #[arg(long)]
    crlf: bool,

    /// Read the whole list, even if it seems to be sorted
    #[arg(long)]
    scan: bool,
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
