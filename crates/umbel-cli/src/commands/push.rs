//! `umbel push`: sends a filter to a server.

use crate::args::headings;
use crate::remote::{
    self, Address, Client, ConnectionArgs, Interrupted, PIECE_BYTES, Value, command, refused,
};
use crate::report::FilterReport;
use crate::terminal::{Progress, output};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use umbel::file;
use umbel::hash::Strength;

/// Send a filter to a Redis or Valkey server.
///
/// The server must have loaded umbel's module. The filter is sent in pieces, whatever its size. An
/// interrupted transfer is resumed by running the same command again. The server verifies the
/// checksums of the whole filter before it becomes available under the key: a Bloom filter for the
/// BF.* commands, a cuckoo filter for CF.*, any other for UMBEL.*.
///
/// A keyed filter is sent without its secret. The server can use it if its module was loaded with
/// the same key file (KEY-FILE).
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel push words.umbel redis://10.0.0.1/words
  REDISCLI_AUTH=secret umbel push words.umbel redis://me:@10.0.0.1:6379/3/words")]
pub struct Args {
    /// Filter to send
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Key on a server, such as redis://user:password@host:6379/key
    #[arg(value_name = "ADDRESS", long_help = remote::HELP)]
    to: Address,

    /// Replace the value under the key, or an unfinished transfer of another filter
    #[arg(long, help_heading = headings::OUTPUT)]
    replace: bool,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let (path, name) = (&args.filter, args.filter.display());
    // Fail now for a damaged filter, which the server would refuse at the end.
    let examined = file::examine(path)?;
    let info = &examined.info;
    if info.embedded_key {
        bail!(
            "{name} has its secret in it, which should not travel: build it with --key-file and without --embed-key"
        );
    }
    if info.hash.is_some_and(|id| id.strength == Strength::Sealed) {
        bail!("{name} is sealed: no server may have its secret, so none can query it");
    }
    let source = File::open(path).with_context(|| format!("cannot open {name}"))?;
    let length = source.metadata().with_context(|| format!("cannot examine {name}"))?.len();
    let mut client = Client::connect(&args.connection.endpoint(&args.to)?)?;
    let key = &args.to.key;
    if args.replace {
        integer(client.call(&command("DEL").arg(key))?)?;
    }
    let mut send = |offset: u64, piece: &[u8]| -> Result<u64> {
        integer(client.call(&command("UMBEL.IMPORT").arg(key).number(length).number(offset).arg(piece))?)
    };
    // The server reports what it has for an empty piece.
    let mut sent = send(0, &[])?;
    if sent >= length {
        bail!(
            "the server has {sent} bytes of an unfinished filter of {length}: its answer is not understood"
        );
    }
    let done = Arc::new(AtomicU64::new(sent));
    let progress = Progress::of_bytes(Arc::clone(&done), Some(length));
    let mut piece = vec![0; PIECE_BYTES as usize];
    while sent < length {
        let size = (length - sent).min(PIECE_BYTES) as usize;
        source.read_exact_at(&mut piece[..size], sent).with_context(|| format!("cannot read {name}"))?;
        let arrived =
            send(sent, &piece[..size]).map_err(|error| match error.is::<Interrupted>() && sent > 0 {
                true => error.context(format!(
                    "{sent} of {length} bytes have arrived: the same command goes on from there"
                )),
                // A server that refuses a filter will refuse it the next time.
                false => error,
            })?;
        if arrived != sent + size as u64 {
            bail!(
                "the server has {arrived} bytes instead of {}: another client is writing to this key",
                sent + size as u64
            );
        }
        sent = arrived;
        done.store(sent, Relaxed);
    }
    progress.finish();
    if io::stderr().is_terminal() {
        output::message(FilterReport::from_file(name.to_string(), &examined).summary());
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the number that a server responds with.
fn integer(response: Value) -> Result<u64> {
    match response {
        Value::Integer(number) => u64::try_from(number).context("the server answers with a number below 0"),
        Value::Error(error) if error.text == "ERR item exists" => {
            bail!("there is something under this key already: --replace puts the filter in its place")
        }
        Value::Error(error) if error.text.contains("not among the given keys") => {
            bail!(
                "the server does not know the secret that this filter was built with: load its module with KEY-FILE and the key file of the filter, or build the filter with --hash fast"
            )
        }
        Value::Error(error) => Err(refused("the server", &error)),
        other => bail!("the server answers with {other} instead of a number"),
    }
}
