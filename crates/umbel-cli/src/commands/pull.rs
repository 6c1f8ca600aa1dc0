//! `umbel pull`: fetches a filter from a server.

use crate::args::headings;
use crate::filters::{LockArgs, already_exists, check_writable};
use crate::remote::{
    self, Address, Client, Interrupted, PIECE_BYTES, TlsArgs, error_text, refused, was_signalled,
};
use crate::report::FilterReport;
use crate::terminal::{Progress, output};
use anyhow::{Context, Result, bail};
use bstr::ByteSlice;
use redis::{Value, cmd};
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tempfile::TempPath;
use umbel::file::{self, Examined};
use umbel::hash::{HashId, Strength};

/// Fetch a filter from a Redis or Valkey server.
///
/// The server must have loaded umbel's module. The filter is received in pieces into a file that
/// ends with `.part`. An interrupted transfer is resumed by running the same command again. The
/// file gets its final name once it is complete and its checksums match.
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
    tls: TlsArgs,
}

/// Number of times that a filter is fetched if it changes meanwhile.
const MAX_ATTEMPTS: u32 = 3;

pub fn run(args: &Args) -> Result<ExitCode> {
    if args.output == Path::new("-") {
        bail!("a filter that comes in pieces needs a file, not standard output: name one with -o");
    }
    check_writable(&args.output, args.force)?;
    let mut part = args.output.clone().into_os_string();
    part.push(".part");
    let part = PathBuf::from(part);
    let mut client = Client::connect(&args.tls.apply(&args.from)?)?;
    for _ in 0..MAX_ATTEMPTS {
        fetch(&mut client, &args.from.key, &part)?;
        match file::examine(&part) {
            Ok(examined) => {
                place(&part, &args.output, args)?;
                report(&args.output, &examined);
                return Ok(ExitCode::SUCCESS);
            }
            // Pieces of different times do not fit together.
            Err(_) => fs::remove_file(&part).with_context(|| format!("cannot remove {}", part.display()))?,
        }
    }
    bail!("the filter changes while it is fetched: copy it on the server (COPY), and fetch the copy")
}

/// Moves a complete file to its final name.
fn place(part: &Path, path: &Path, args: &Args) -> Result<()> {
    let failed = || format!("cannot rename {} to its final name", path.display());
    // A command that is adding to the replaced file finishes first, and does not undo this.
    let _lock = if args.force && path.is_file() { Some(args.lock.lock(path)?) } else { None };
    if args.force {
        return fs::rename(part, path).with_context(failed);
    }
    // Another process may have created the file meanwhile.
    let part = TempPath::try_from_path(part).with_context(failed)?;
    part.persist_noclobber(path).or_else(|error| {
        // Not a temporary file: it stays when its handle is dropped.
        error.path.keep().map_err(|error| error.error).with_context(failed)?;
        match error.error.kind() {
            io::ErrorKind::AlreadyExists => bail!("{}", already_exists(path)),
            _ => Err(error.error).with_context(failed),
        }
    })
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

/// Fetches the missing rest of a file.
fn fetch(client: &mut Client, key: &[u8], part: &Path) -> Result<()> {
    let name = part.display();
    let failed = || format!("cannot write to {name}");
    let mut at = match fs::metadata(part) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        found => found.with_context(|| format!("cannot examine {name}"))?.len(),
    };
    let done = Arc::new(AtomicU64::new(at));
    // Created with the first piece: a server that has none leaves no file and shows no progress.
    let (mut file, mut progress) = (None, None);
    loop {
        let response = fetch_piece(client, key, at);
        if response.as_ref().is_err_and(was_signalled) {
            continue;
        }
        let (total, bytes) = response.map_err(|error| match error.is::<Interrupted>() && at > 0 {
            true => error.context(format!("{at} bytes have come: the same command goes on from there")),
            // A server without the filter will not have it the next time.
            false => error,
        })?;
        if at > total {
            // The file is a part of a larger filter, which is gone.
            fs::remove_file(part).with_context(|| format!("cannot remove {name}"))?;
            at = 0;
            continue;
        }
        let file: &mut File = match &mut file {
            Some(file) => file,
            none => {
                none.insert(OpenOptions::new().create(true).append(true).open(part).with_context(failed)?)
            }
        };
        progress.get_or_insert_with(|| Progress::of_bytes(Arc::clone(&done), Some(total)));
        file.write_all(&bytes).with_context(failed)?;
        at += bytes.len() as u64;
        done.store(at, Relaxed);
        if at >= total || bytes.is_empty() {
            file.sync_all().with_context(failed)?;
            break;
        }
    }
    if let Some(progress) = progress {
        progress.finish();
    }
    Ok(())
}

/// Fetches the length of the file and a piece of it, from an offset on.
fn fetch_piece(client: &mut Client, key: &[u8], offset: u64) -> Result<(u64, Vec<u8>)> {
    match client.call(cmd("UMBEL.EXPORT").arg(key).arg(offset).arg(PIECE_BYTES))? {
        Value::ServerError(error) if error_text(&error) == "ERR not found" => {
            bail!("there is nothing under the key {}", key.as_bstr())
        }
        Value::ServerError(error) => Err(refused("the server", &error)),
        Value::Array(parts) => match <[Value; 2]>::try_from(parts) {
            Ok([Value::Int(total), Value::BulkString(bytes)]) => Ok((u64::try_from(total)?, bytes)),
            _ => bail!("the server's answer is not understood"),
        },
        _ => bail!("the server's answer is not understood"),
    }
}
