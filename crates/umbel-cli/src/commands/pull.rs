//! `umbel pull`: fetches a filter from a server.

use crate::args::headings;
use crate::filters::{LockArgs, check_writable};
use crate::remote::{
    self, Address, Client, ConnectionArgs, Interrupted, PIECE_BYTES, Unfinished, Value, command, refused,
};
use crate::report::FilterReport;
use crate::terminal::{Progress, output};
use anyhow::{Context, Error, Result, bail};
use bstr::ByteSlice;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use umbel::file::{self, Examined, FormatError};
use umbel::hash::{HashId, Strength};

/// Fetch a filter from a Redis or Valkey server.
///
/// The server must have loaded umbel's module. The filter is received in pieces into a file that
/// ends with `.part`. An interrupted transfer is resumed by running the same command again. The
/// file gets its final name once it is complete and its checksums match. A `.part` that another
/// user may have put there is refused: links, files of others, and files that others can change.
///
/// A keyed filter is received without its secret: query it with the key file that the module was
/// loaded with (KEY-FILE). A module that was loaded without one uses a secret of its own, which is
/// lost when the server stops; then the file cannot be queried.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel pull redis://10.0.0.1/words -o words.umbel
  REDISCLI_AUTH=secret umbel pull redis://me:@10.0.0.1/3/words -o words.umbel")]
pub struct Args {
    /// Key on a server, such as redis://user:password@host:6379/key
    #[arg(value_name = "ADDRESS", long_help = remote::HELP)]
    from: Address,

    /// Write to FILE
    #[arg(short, long, value_name = "FILE", help_heading = headings::OUTPUT)]
    output: PathBuf,

    /// Replace FILE if it exists
    #[arg(short, long, help_heading = headings::OUTPUT)]
    force: bool,

    #[command(flatten)]
    lock: LockArgs,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Number of times that a filter is fetched if it changes meanwhile.
const MAX_ATTEMPTS: u32 = 3;

pub fn run(args: &Args) -> Result<ExitCode> {
    if args.output == Path::new("-") {
        bail!("a filter that comes in pieces needs a file, not standard output: name one with -o");
    }
    check_writable(&args.output, args.force)?;
    let mut part = Unfinished::beside(&args.output)?;
    let mut client = Client::connect(&args.connection.endpoint(&args.from)?)?;
    for _ in 0..MAX_ATTEMPTS {
        if fetch(&mut client, &args.from.key, &mut part)?
            && let Ok(examined) = file::examine(part.path())
        {
            // A command that is adding to the replaced file finishes first, and does not undo this.
            let lock = args.force && args.output.is_file();
            let _lock = if lock { Some(args.lock.lock(&args.output)?) } else { None };
            part.persist(&args.output, args.force)?;
            report(&args.output, &examined);
            return Ok(ExitCode::SUCCESS);
        }
        // Pieces of different times do not fit together.
        part.clear()?;
    }
    bail!(
        "the filter changes while it is fetched, or arrives damaged: copy it on the server (COPY), and fetch the copy"
    )
}

/// Warns about a missing secret, and describes the file if standard error is a terminal.
fn report(path: &Path, examined: &Examined) {
    if let Some(id @ HashId { strength: Strength::Keyed, .. }) = examined.info.hash
        && !examined.info.embedded_key
    {
        output::warn(format_args!(
            "{} is without its secret ({id}): it can be queried only with the key file that the server's module was loaded with (KEY-FILE); without one, a server makes a secret that is lost when it stops",
            path.display()
        ));
    }
    if io::stderr().is_terminal() {
        output::message(FilterReport::from_file(path.display().to_string(), examined).summary());
    }
}

/// Fetches the missing rest of a file. Returns whether it is complete: not if the filter has
/// another length meanwhile.
fn fetch(client: &mut Client, key: &[u8], part: &mut Unfinished) -> Result<bool> {
    let (total, start) = fetch_piece(client, key, 0).map_err(|error| resumable(error, part))?;
    check_start(&start, total)?;
    if part.len() > total || !part.has_start(&start)? {
        // The header has a checksum of every part of a filter.
        output::warn(format_args!(
            "{} is a part of another filter, or of another version of this one: the transfer starts again",
            part.path().display()
        ));
        part.clear()?;
    }
    part.check_space(total)?;
    let done = Arc::new(AtomicU64::new(part.len()));
    let progress = Progress::of_bytes(Arc::clone(&done), Some(total));
    let mut next = Some(start).filter(|_| part.len() == 0);
    let mut is_same = true;
    while part.len() < total && is_same {
        let bytes = match next.take() {
            Some(start) => start,
            None => {
                let (length, bytes) =
                    fetch_piece(client, key, part.len()).map_err(|error| resumable(error, part))?;
                is_same = length == total;
                bytes
            }
        };
        if is_same {
            part.append(&bytes)?;
            done.store(part.len(), Relaxed);
        }
    }
    progress.finish();
    part.sync()?;
    Ok(is_same)
}

/// Explains that an interrupted transfer can be continued.
fn resumable(error: Error, part: &Unfinished) -> Error {
    match part.len() {
        at @ 1.. if error.is::<Interrupted>() => {
            error.context(format!("{at} bytes have come: the same command goes on from there"))
        }
        // A server without the filter will not have it the next time.
        _ => error,
    }
}

/// Fails if a file of this length does not begin with these bytes, so that a server cannot fill the
/// disk with anything else.
fn check_start(start: &[u8], total: u64) -> Result<()> {
    match file::inspect_start(start, total) {
        Ok(_) => Ok(()),
        // The header is longer than a piece.
        Err(umbel::Error::Format { problem: FormatError::Length { found, .. }, .. })
            if found == start.len() as u64 && found < total =>
        {
            Ok(())
        }
        Err(error) => Err(error).context("the server sends something that is not a filter"),
    }
}

/// Fetches the length of the file and a piece of it, from an offset on.
fn fetch_piece(client: &mut Client, key: &[u8], offset: u64) -> Result<(u64, Vec<u8>)> {
    let (total, bytes) = match client
        .call(&command("UMBEL.EXPORT").arg(key).number(offset).number(PIECE_BYTES))?
    {
        Value::Error(error) if error.text == "ERR not found" => {
            bail!("there is nothing under the key {}", key.as_bstr())
        }
        Value::Error(error) => return Err(refused("the server", &error)),
        Value::Array(parts) => match <[Value; 2]>::try_from(parts) {
            Ok([Value::Integer(total), Value::Bytes(bytes)]) if total >= 0 => (total.unsigned_abs(), bytes),
            _ => bail!("the server's answer is not understood"),
        },
        _ => bail!("the server's answer is not understood"),
    };
    let expected = total.saturating_sub(offset).min(PIECE_BYTES);
    if bytes.len() as u64 != expected {
        bail!(
            "the server sends {} bytes instead of {expected}, from byte {offset} of {total} on",
            bytes.len()
        );
    }
    Ok((total, bytes))
}
