//! `umbel table delete`: deletes keys.

use crate::filters::LockArgs;
use crate::input::InputArgs;
use crate::maps::{open_store, write_changes};
use crate::pipeline;
use crate::terminal::exit;
use anyhow::Result;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::Batch;
use umbel_text::tables::Changes;

/// Delete keys from a store.
///
/// Each key that is in the store is deleted, as one table: all of them, or after an error none. The
/// space is freed when tables are merged. The exit code is 0 if a key was deleted, 1 if none of them
/// was in the store.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel table delete prices sold.txt
  echo pear | umbel table delete prices || echo 'was not there'")]
pub struct Args {
    /// Directory of the store
    #[arg(value_name = "DIR")]
    store: PathBuf,

    #[command(flatten)]
    lock: LockArgs,

    #[command(flatten)]
    input: InputArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    // Read everything first: the store is locked only while it is written.
    let keys = read_keys(&args.input)?;
    let mut store = open_store(&args.store, None, false, args.lock)?;
    let mut changes = Changes::default();
    for key in keys {
        if store.get(&key)?.is_some() {
            changes.delete(key)?;
        }
    }
    let any = !changes.is_empty();
    write_changes(&mut store, changes)?;
    Ok(exit::found(any))
}

fn read_keys(input: &InputArgs) -> Result<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    pipeline::run(
        input.open()?,
        input.threads(),
        |_, records| {
            let keys = records.keys()?;
            Ok((0..keys.len()).map(|key| keys.with_bytes(key, <[u8]>::to_vec)).collect())
        },
        |mut keys: Vec<Vec<u8>>, _| {
            all.append(&mut keys);
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(all)
}
