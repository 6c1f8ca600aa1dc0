//! Locks on filters that are changed.

use super::target::folder;
use crate::terminal::output;
use anyhow::{Context, Result, bail};
use std::fs::{self, File, TryLockError};
use std::io::{self, IsTerminal};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// An exclusive lock on a file, which is held until it is dropped.
///
/// Filters are replaced, not overwritten. If another process has replaced the file while this one
/// waited, the lock on the new file is acquired instead. No lock file is needed, and none is left
/// behind.
pub struct FileLock(File);

impl FileLock {
    /// Returns the file, which stays locked until it is closed.
    pub fn into_file(self) -> File {
        self.0
    }

    /// Locks the folder of a file, which need not exist yet, to create several files in it. Only
    /// processes that lock the folder too are kept out. Returns `None` if the folder cannot be
    /// locked.
    pub fn acquire_folder(path: &Path) -> Option<FileLock> {
        let folder = File::open(folder(path)).ok()?;
        folder.lock().ok()?;
        Some(FileLock(folder))
    }

    /// Waits for the lock on a file.
    pub fn acquire(path: &Path) -> Result<FileLock> {
        let failed = |doing: &str| format!("cannot {doing} {}", path.display());
        loop {
            let found = fs::metadata(path).with_context(|| failed("open"))?;
            if !found.is_file() {
                bail!(
                    "cannot read {}: it is {}",
                    path.display(),
                    if found.is_dir() { "a directory" } else { "not a regular file" }
                );
            }
            let file = File::open(path).with_context(|| failed("open"))?;
            if let Err(TryLockError::WouldBlock) = file.try_lock()
                && io::stderr().is_terminal()
            {
                output::warn(format_args!("waiting for another umbel that changes {}", path.display()));
            }
            file.lock().with_context(|| failed("lock"))?;
            let (locked, named) = (file.metadata(), fs::metadata(path));
            let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
            if locked.map(identity).ok() == named.map(identity).ok() {
                return Ok(FileLock(file));
            }
        }
    }
}
