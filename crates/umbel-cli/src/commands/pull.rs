//! `umbel pull`: a filter from a server.

use crate::progress::Progress;
use crate::remote::{self, Address, Answer, Client, PIECE, refused};
use anyhow::{Context, Result, bail};
use bstr::ByteSlice;
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use umbel::file;

/// Fetch a filter from a Redis or Valkey server that has loaded umbel's module.
///
/// It comes in pieces, into a file that ends with `.part`; what is interrupted goes on where it was when the same command
/// is given again. When all of it is there and its checksums hold, the file gets its name.
///
/// A keyed filter comes without its secret: ask it with the key file that the server has.
#[derive(clap::Args)]
pub struct Args {
    /// Where from, as in redis://user:password@host:6379/key
    #[arg(value_name = "ADDRESS", long_help = remote::HELP)]
    from: Address,

    /// The file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// How often it is fetched anew when it has changed meanwhile.
const TRIES: u32 = 3;

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut part = args.output.clone().into_os_string();
    part.push(".part");
    let part = PathBuf::from(part);
    let mut client = Client::connect(&args.from)?;
    for _ in 0..TRIES {
        fetch(&mut client, &args.from.key, &part)?;
        match file::examine(&part) {
            Ok(_) => {
                fs::rename(&part, &args.output)
                    .with_context(|| format!("cannot give {} its name", args.output.display()))?;
                return Ok(ExitCode::SUCCESS);
            }
            // Pieces of different times do not fit together.
            Err(_) => fs::remove_file(&part).with_context(|| format!("cannot remove {}", part.display()))?,
        }
    }
    bail!("the filter changes while it is fetched: copy it on the server (COPY), and fetch the copy")
}

/// Fetches what is missing of a file.
fn fetch(client: &mut Client, key: &[u8], part: &Path) -> Result<()> {
    let name = part.display();
    let mut to = OpenOptions::new()
        .create(true)
        .append(true)
        .open(part)
        .with_context(|| format!("cannot write to {name}"))?;
    let mut at = to.seek(SeekFrom::End(0)).with_context(|| format!("cannot read {name}"))?;
    let done = Arc::new(AtomicU64::new(at));
    let mut progress = None;
    loop {
        let (total, bytes) = piece(client, key, at)
            .with_context(|| format!("{at} bytes have come: the same command goes on from there"))?;
        progress.get_or_insert_with(|| Progress::of_bytes(Arc::clone(&done), Some(total)));
        if at > total {
            // Of a larger one that is no longer there.
            to.set_len(0).with_context(|| format!("cannot empty {name}"))?;
            at = 0;
            continue;
        }
        to.write_all(&bytes).with_context(|| format!("cannot write to {name}"))?;
        at += bytes.len() as u64;
        done.store(at, Relaxed);
        if at >= total || bytes.is_empty() {
            break;
        }
    }
    File::sync_all(&to).with_context(|| format!("cannot write to {name}"))?;
    if let Some(progress) = progress {
        progress.finish();
    }
    Ok(())
}

/// The length of the file, and its bytes from an offset on.
fn piece(client: &mut Client, key: &[u8], offset: u64) -> Result<(u64, Vec<u8>)> {
    let (offset, count) = (offset.to_string(), PIECE.to_string());
    match client.call(&[b"UMBEL.EXPORT", key, offset.as_bytes(), count.as_bytes()])? {
        Answer::Error(text) if text == "ERR not found" => {
            bail!("there is nothing under the key {}", key.as_bstr())
        }
        Answer::Error(text) => Err(refused("the server", &text)),
        Answer::Array(answers) => match <[Answer; 2]>::try_from(answers) {
            Ok([Answer::Integer(total), Answer::Bytes(bytes)]) => Ok((u64::try_from(total)?, bytes)),
            _ => bail!("the server's answer is not understood"),
        },
        _ => bail!("the server's answer is not understood"),
    }
}
