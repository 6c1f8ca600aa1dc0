//! `umbel table scan`: lists the keys of a store in order.

use crate::args::headings;
use crate::filters::LockArgs;
use crate::maps::open_reader;
use crate::report::printable;
use crate::terminal::exit;
use crate::terminal::output::Out;
use anyhow::{Result, anyhow};
use std::ffi::OsString;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::internals::hex;

/// Print the keys of a store with their values, in the order of the keys.
///
/// Keys are compared as bytes. The lines are those that `umbel table put` reads. The store is read
/// block by block, so the output can be larger than the memory. The exit code is 0 if a key was
/// printed, 1 if there was none.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel table scan prices | less
  umbel table scan --prefix app prices
  umbel table scan --from m --to n prices     # keys that start with m")]
pub struct Args {
    /// Directory of the store
    #[arg(value_name = "DIR")]
    store: PathBuf,

    #[command(flatten)]
    lock: LockArgs,

    /// Start at this key
    #[arg(long, value_name = "KEY", help_heading = headings::SEARCH)]
    from: Option<OsString>,

    /// End before this key
    #[arg(long, value_name = "KEY", help_heading = headings::SEARCH)]
    to: Option<OsString>,

    /// Print only the keys that start with these bytes
    #[arg(long, value_name = "BYTES", conflicts_with_all = ["from", "to"], help_heading = headings::SEARCH)]
    prefix: Option<OsString>,

    /// Print keys in hexadecimal, and expect hexadecimal in --from, --to and --prefix
    #[arg(long, help_heading = headings::KEYS)]
    hex: bool,

    /// End lines with a zero byte instead of a newline
    #[arg(short = '0', long, help_heading = headings::OUTPUT)]
    null: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let [from, to, prefix] = [args.bytes(&args.from)?, args.bytes(&args.to)?, args.bytes(&args.prefix)?];
    let reader = open_reader(&args.store, args.lock)?;
    let entries: Box<dyn Iterator<Item = _>> = match &prefix {
        Some(prefix) => Box::new(reader.prefixed(prefix)?),
        None => {
            let from = from.as_deref().map_or(Bound::Unbounded, Bound::Included);
            Box::new(reader.range(from, to.as_deref().map_or(Bound::Unbounded, Bound::Excluded))?)
        }
    };
    let (mut out, mut any) = (Out::new(false)?, false);
    let mut line = Vec::new();
    for entry in entries {
        let (key, value) = entry?;
        line.clear();
        match args.hex {
            true => line.extend_from_slice(hex::encode(&key).as_bytes()),
            false => line.extend_from_slice(&key),
        }
        line.push(b'\t');
        line.extend_from_slice(&value);
        line.push(if args.null { 0 } else { b'\n' });
        out.write(&line, false)?;
        any = true;
    }
    out.finish()?;
    Ok(exit::found(any))
}

impl Args {
    /// Returns the bytes of a key on the command line.
    fn bytes(&self, key: &Option<OsString>) -> Result<Option<Vec<u8>>> {
        let Some(key) = key.as_ref().map(|key| key.as_bytes()) else { return Ok(None) };
        if !self.hex {
            return Ok(Some(key.to_vec()));
        }
        let mut bytes = Vec::new();
        hex::decode(key, &mut bytes)
            .ok_or_else(|| anyhow!("{} is not pairs of hexadecimal digits", printable(key)))?;
        Ok(Some(bytes))
    }
}
