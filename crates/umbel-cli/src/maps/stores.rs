//! Stores of tables, opened to read or to write.

use crate::filters::LockArgs;
use crate::terminal::output::warn;
use anyhow::Result;
use std::path::Path;
use std::time::Duration;
use umbel_text::Error;
use umbel_text::tables::{Changes, Options, Reader, Store, lock_path};

/// The number of tables above which some are merged after a change.
const MAX_TABLES: usize = 8;

/// Opens a store for reading, after a process that changes it.
pub fn open_reader(folder: &Path, lock: LockArgs) -> Result<Reader> {
    wait_for(lock, folder, |wait| Reader::open(folder, Options { wait, ..Options::default() }))
}

/// Opens a store to change it, after another process that does. New tables get filters of this
/// rate. With `create`, a store that does not exist is created.
pub fn open_store(folder: &Path, rate: Option<f64>, create: bool, lock: LockArgs) -> Result<Store> {
    let open = if create { Store::open } else { Store::open_existing };
    let default = Options::default();
    let rate = rate.unwrap_or(default.rate);
    wait_for(lock, folder, |wait| open(folder, Options { rate, wait, ..default.clone() }))
}

/// Calls `open`, and waits for another process that has the store open.
fn wait_for<T>(lock: LockArgs, folder: &Path, open: impl Fn(Duration) -> umbel_text::Result<T>) -> Result<T> {
    lock.wait(&lock_path(folder), |wait| match open(wait) {
        Err(Error::Locked { .. }) => Ok(None),
        opened => Ok(Some(opened?)),
    })
}

/// Writes changes as a table of their own, and merges tables if there are too many.
pub fn write_changes(store: &mut Store, changes: Changes) -> Result<()> {
    store.write(changes)?;
    if let Err(error) = store.compact(MAX_TABLES) {
        warn(format_args!("the changes are stored, but tables could not be merged: {error:#}"));
    }
    Ok(())
}
