//! `umbel meta`: reads and changes the metadata of a filter.

use crate::args::headings;
use crate::args::meta::{self, entry};
use crate::filters::LockArgs;
use crate::system::signals;
use crate::terminal::exit::found;
use crate::terminal::output;
use anyhow::{Result, anyhow, bail};
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::file;

/// Read or change the metadata of a filter.
///
/// Without a name, all entries are printed. With a name, its value is printed, and the exit code is
/// 1 if there is none. Entries written as name=value are set, and the file is replaced as a whole.
/// No secret is needed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel meta seen.umbel                         # all entries
  umbel meta seen.umbel source=crawl day=2026-01-31
  umbel meta seen.umbel source                  # the value of one entry
  umbel meta seen.umbel --unset day")]
pub struct Args {
    /// Filter
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Name to read, or entries to set
    #[arg(value_name = "NAME|NAME=VALUE")]
    entries: Vec<String>,

    /// Remove an entry (repeatable)
    #[arg(long, value_name = "NAME", help_heading = headings::FILTER)]
    unset: Vec<String>,

    #[command(flatten)]
    lock: LockArgs,

    /// Print all entries as JSON
    #[arg(long, conflicts_with_all = ["entries", "unset"], help_heading = headings::OUTPUT)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    if args.unset.is_empty() && !args.entries.iter().any(|entry| entry.contains('=')) {
        return read(args);
    }
    let set =
        args.entries.iter().map(|text| entry(text).map_err(|why| anyhow!("\"{text}\" sets nothing: {why}")));
    let set = meta::collect(&set.collect::<Result<Vec<_>>>()?)?;
    let lock = args.lock.lock(&args.filter)?;
    signals::watch_mapped(&args.filter);
    let mut meta = file::inspect(&args.filter)?.meta;
    for name in &args.unset {
        if meta.remove(name).is_none() {
            bail!("there is no \"{name}\" to remove");
        }
    }
    meta.extend(set);
    file::set_meta(&args.filter, meta)?;
    drop(lock);
    Ok(ExitCode::SUCCESS)
}

fn read(args: &Args) -> Result<ExitCode> {
    let meta = file::inspect(&args.filter)?.meta;
    match &args.entries[..] {
        [] if args.json => output::json(&meta)?,
        [] => {
            for (name, value) in &meta {
                output::text(format_args!("{name}={value}\n"))?;
            }
        }
        [name] => match meta.get(name) {
            Some(value) => output::text(format_args!("{value}\n"))?,
            None => return Ok(found(false)),
        },
        _ => bail!("one name at a time is read; to set entries write name=value"),
    }
    Ok(ExitCode::SUCCESS)
}
