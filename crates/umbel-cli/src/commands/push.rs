//! `umbel push`: sends a filter to a server, or a filter in shards to the servers of a cluster.

use crate::args::headings;
use crate::remote::{
    self, Address, Client, ConnectionArgs, Interrupted, NotCreated, PIECE_BYTES, Record, ShardedFilter,
    Value, command, refused,
};
use crate::report::{FilterReport, percent};
use crate::terminal::{Progress, output};
use anyhow::{Context, Result, bail};
use bstr::ByteSlice;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use umbel::file::{self, Info};
use umbel::hash::Strength;
use umbel::sharded::{self, ExaminedShards, shard_path};

/// Send a filter to a Redis or Valkey server or cluster.
///
/// The server must have loaded umbel's module. The filter is sent in pieces, whatever its size. An
/// interrupted transfer is resumed by running the same command again. The server verifies the
/// checksums of the whole filter before it becomes available under the key: a Bloom filter for the
/// BF.* commands, a cuckoo filter for CF.*, any other for UMBEL.*.
///
/// A filter in shards is given by its directory. Each shard becomes a key, and the hash tags in the
/// names of the keys spread them over the servers of a cluster. `umbel shard` then checks and adds
/// lines. All shards are verified before the first one is sent. If one cannot be sent, the others
/// are removed: such a transfer is not resumed.
///
/// A keyed filter is sent without its secret. The server can use it if its module was loaded with
/// the same key file (KEY-FILE).
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel push words.umbel redis://10.0.0.1/words
  REDISCLI_AUTH=secret umbel push words.umbel redis://me:@10.0.0.1:6379/3/words
  umbel push seen/ redis://10.0.0.1:7000/seen")]
pub struct Args {
    /// Filter to send: a file, or the directory of a filter in shards
    #[arg(value_name = "FILTER")]
    filter: PathBuf,

    /// Key on a server, such as redis://user:password@host:6379/key
    #[arg(value_name = "ADDRESS", long_help = remote::HELP)]
    to: Address,

    /// Replace the value under the key, or an unfinished transfer of another filter
    ///
    /// A filter in shards can replace only another filter in shards.
    #[arg(long, help_heading = headings::OUTPUT)]
    replace: bool,

    #[command(flatten)]
    connection: ConnectionArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    if args.filter.is_dir() { push_shards(args) } else { push_file(args) }
}

fn push_file(args: &Args) -> Result<ExitCode> {
    let (path, name) = (&args.filter, args.filter.display());
    // Fail now for a damaged filter, which the server would refuse at the end.
    let examined = file::examine(path)?;
    check_secret(path, &examined.info)?;
    let source = File::open(path).with_context(|| format!("cannot open {name}"))?;
    let length = source.metadata().with_context(|| format!("cannot examine {name}"))?.len();
    let mut client = Client::connect(&args.connection.endpoint(&args.to)?)?;
    let key = &args.to.key;
    if args.replace {
        integer(client.call(&command("DEL").arg(key))?, "")?;
    }
    let mut target = Target { client: &mut client, key, remedy: "--replace puts the filter in its place" };
    // The server reports what it has for an empty piece.
    let start = target.send_piece(length, 0, &[])?;
    if start >= length {
        bail!(
            "the server has {start} bytes of an unfinished filter of {length}: its answer is not understood"
        );
    }
    let sent = Arc::new(AtomicU64::new(start));
    let progress = Progress::of_bytes(Arc::clone(&sent), Some(length));
    let arrived = |bytes| {
        sent.fetch_add(bytes, Relaxed);
    };
    target.send((&source, path), start..length, arrived).map_err(|error| {
        match sent.load(Relaxed) {
            sent @ 1.. if error.is::<Interrupted>() => error.context(format!(
                "{sent} of {length} bytes have arrived: the same command goes on from there"
            )),
            // A server that refuses a filter will refuse it the next time.
            _ => error,
        }
    })?;
    progress.finish();
    if io::stderr().is_terminal() {
        output::message(FilterReport::from_file(name.to_string(), &examined).summary());
    }
    Ok(ExitCode::SUCCESS)
}

fn push_shards(args: &Args) -> Result<ExitCode> {
    let (folder, name) = (&args.filter, args.to.key.as_bstr());
    let shards = sharded::examine(folder)?;
    let secrets = (0..shards.shards()).try_for_each(|shard| check_secret(folder, &shards.info(shard)));
    secrets.and_then(|()| remote::check_name(name))?;
    verify(&shards)?;
    let endpoint = args.connection.endpoint(&args.to)?;
    if args.replace
        && let Some(replaced) = ShardedFilter::find_any(&endpoint)?
    {
        replaced.delete()?;
    }
    let length_of = |shard| shards.info(shard).file_len;
    let (total, sent) = ((0..shards.shards()).map(length_of).sum(), Arc::new(AtomicU64::new(0)));
    let progress = Progress::of_bytes(Arc::clone(&sent), Some(total));
    let make = |client: &mut Client, shard: usize, key: &[u8]| {
        let (source, path) = (shards.file(shard), shard_path(folder, shard));
        let mut is_begun = false;
        let arrived = |bytes| {
            is_begun = true;
            sent.fetch_add(bytes, Relaxed);
        };
        let mut target = Target { client, key, remedy: "remove it, or name another filter" };
        target.send((source, &path), 0..length_of(shard), arrived).map_err(|error| {
            let error = error.context(format!("cannot send the shard {}", key.as_bstr()));
            NotCreated { is_begun, error }
        })
    };
    ShardedFilter::create(&endpoint, Record::from_manifest(shards.manifest()), make)?;
    progress.finish();
    if io::stderr().is_terminal() {
        let (manifest, count) = (shards.manifest(), shards.shards());
        let (capacity, rate) = (manifest.capacity(), percent(manifest.rate()));
        output::message(format_args!("{name}, {count} shards for {capacity} lines together, rate {rate}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails for a filter whose secret would travel or must not be on a server.
fn check_secret(path: &Path, info: &Info) -> Result<()> {
    let name = path.display();
    if info.embedded_key {
        bail!(
            "{name} has its secret in it, which should not travel: build it with --key-file and without --embed-key"
        );
    }
    if info.hash.is_some_and(|id| id.strength == Strength::Sealed) {
        bail!("{name} is sealed: no server may have its secret, so none can query it");
    }
    Ok(())
}

/// Verifies all shards, on all processors.
fn verify(shards: &ExaminedShards) -> Result<()> {
    let next = AtomicUsize::new(0);
    let verify_some = || {
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Relaxed));
        numbers
            .take_while(|shard| *shard < shards.shards())
            .try_for_each(|shard| shards.stats(shard).map(drop))
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(shards.shards());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(verify_some)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(verified) => Ok(verified?),
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

/// The key that a file is sent to.
struct Target<'a> {
    client: &'a mut Client,
    key: &'a [u8],
    /// The advice if there is something else under the key.
    remedy: &'static str,
}

impl Target<'_> {
    /// Sends these bytes of a file, piece by piece. Calls `arrived` with the size of each piece that
    /// has arrived.
    fn send(
        &mut self,
        (source, path): (&File, &Path),
        bytes: Range<u64>,
        mut arrived: impl FnMut(u64),
    ) -> Result<()> {
        let (mut sent, length) = (bytes.start, bytes.end);
        let mut piece = vec![0; (length - sent).min(PIECE_BYTES) as usize];
        while sent < length {
            let piece = &mut piece[..(length - sent).min(PIECE_BYTES) as usize];
            source.read_exact_at(piece, sent).with_context(|| format!("cannot read {}", path.display()))?;
            let (before, expected) = (sent, sent + piece.len() as u64);
            sent = self.send_piece(length, sent, piece)?;
            if sent != expected {
                bail!(
                    "the server has {sent} bytes instead of {expected}: another client is writing to this key"
                );
            }
            arrived(sent - before);
        }
        Ok(())
    }

    /// Sends a piece of a file of this length. Returns the number of bytes that the server has.
    fn send_piece(&mut self, length: u64, offset: u64, piece: &[u8]) -> Result<u64> {
        let import = command("UMBEL.IMPORT").arg(self.key).number(length).number(offset).arg(piece);
        integer(self.client.call(&import)?, self.remedy)
    }
}

/// Returns the number that a server responds with. `remedy` is the advice if there is something else
/// under the key.
fn integer(response: Value, remedy: &str) -> Result<u64> {
    match response {
        Value::Integer(number) => u64::try_from(number).context("the server answers with a number below 0"),
        Value::Error(error) if error.text == "ERR item exists" => {
            bail!("there is something under this key already: {remedy}")
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
