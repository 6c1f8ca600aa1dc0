//! The folder of the store: it belongs to one process, and only a folder that was created for a
//! store is used as one.

use crate::error::{Error, Result};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::Duration;

/// The file that marks a folder as a store. Opening a store deletes files, so no other folder may
/// be mistaken for one.
const MARKER_FILE: &str = "umbel-cache";

/// The number of attempts to lock a folder, as the process that holds the lock may be about to end.
const LOCK_ATTEMPTS: u32 = 20;
/// The pause between two attempts.
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Marks an empty folder as a store.
///
/// # Errors
///
/// [`Error::NotACache`] if the folder has files but no marker.
pub(super) fn mark(folder: &Path) -> Result<()> {
    let (marker, failed) = (folder.join(MARKER_FILE), Error::store("open"));
    if marker.exists() {
        return Ok(());
    }
    if fs::read_dir(folder).map_err(&failed)?.next().is_some() {
        return Err(Error::NotACache { folder: folder.to_owned() });
    }
    fs::write(marker, "A cache of umbel is in this folder.\n").map_err(failed)
}

/// Locks a folder for this process, for as long as the returned file is open.
///
/// # Errors
///
/// [`Error::InUse`] if another process has locked it.
pub(super) fn lock(folder: &Path) -> Result<File> {
    let failed = Error::store("open");
    let lock = OpenOptions::new().write(true).create(true).truncate(false).open(folder.join("lock"));
    let lock = lock.map_err(&failed)?;
    for _ in 0..LOCK_ATTEMPTS {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_RETRY_DELAY),
        }
    }
    Err(Error::InUse { folder: folder.to_owned() })
}
