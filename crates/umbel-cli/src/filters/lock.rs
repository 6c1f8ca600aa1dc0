//! Locks on filters that are changed.
//!
//! Anyone who can read a file can lock it, since `flock` needs no other permission. A lock file that
//! only its owner can open would not help: users who share a filter through a group could not lock
//! it, and each filter would leave a second file behind. So every wait has a limit, `--wait`.

use super::shards::{check_no_shard, not_for_shards};
use super::target::folder;
use crate::args::{headings, number};
use crate::report::printable;
use crate::system::locks::{LockHolder, lock_holder};
use crate::terminal::output;
use anyhow::{Context, Result, anyhow};
use std::fs::{self, File, TryLockError};
use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::Duration;
use umbel::internals::file_lock::{FileLockKind, lock_current, lock_within};
use umbel::internals::regular_file;
use umbel::sharded::is_sharded;

/// The option `--wait`.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct LockArgs {
    /// Wait at most TIME (30s, 10m, 0) for another process that has locked the file, and then fail
    #[arg(
        long,
        value_name = "TIME",
        value_parser = number::wait,
        default_value = "30s",
        help_heading = headings::OUTPUT
    )]
    wait: Duration,
}

/// An exclusive lock on a file, which is held until it is dropped.
pub struct FileLock(File);

impl FileLock {
    /// Returns the file, which stays locked until it is closed.
    pub fn into_file(self) -> File {
        self.0
    }
}

impl LockArgs {
    /// Locks the folder of a file, which need not exist yet, to create several files in it. Only
    /// processes that lock the folder too are kept out. Returns `None` if the folder cannot be
    /// locked.
    pub fn lock_folder(self, path: &Path) -> Result<Option<FileLock>> {
        let path = folder(path);
        let Ok(folder) = regular_file::open_folder(path) else { return Ok(None) };
        match lock_within(&folder, FileLockKind::Exclusive, self.wait) {
            Ok(()) => Ok(Some(FileLock(folder))),
            Err(TryLockError::WouldBlock) => Err(self.locked(path)),
            Err(TryLockError::Error(_)) => Ok(None),
        }
    }

    /// Waits for the lock on a file.
    pub fn lock(self, path: &Path) -> Result<FileLock> {
        let failed = |doing: &str| format!("cannot {doing} {}", path.display());
        let open = || {
            if path.is_dir() && is_sharded(path) {
                return Err(not_for_shards(path));
            }
            check_no_shard(path)?;
            let found = fs::metadata(path).with_context(|| failed("open"))?;
            regular_file::check(&found).with_context(|| failed("read"))?;
            regular_file::open(path).with_context(|| failed("open"))
        };
        self.wait(path, |wait| match lock_current(path, FileLockKind::Exclusive, wait, open)? {
            Ok(file) => Ok(Some(FileLock(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error).with_context(|| failed("lock")),
        })
    }

    /// Calls `try_for` without waiting, and if it returns `None`, since another process holds the
    /// lock, again with the time to wait. Fails if the lock is still held then.
    pub fn wait<T>(self, path: &Path, try_for: impl Fn(Duration) -> Result<Option<T>>) -> Result<T> {
        if let Some(done) = try_for(Duration::ZERO)? {
            return Ok(done);
        }
        if io::stderr().is_terminal() && !self.wait.is_zero() {
            output::warn(format_args!("waiting for {}, which has locked {}", holder(path), path.display()));
        }
        try_for(self.wait)?.ok_or_else(|| self.locked(path))
    }

    /// Returns the error of a lock that another process holds.
    fn locked(self, path: &Path) -> anyhow::Error {
        let (path, holder) = (path.display(), holder(path));
        match self.wait {
            Duration::ZERO => {
                anyhow!("{path} is locked by {holder}: try again later, or wait with --wait 10m")
            }
            wait => anyhow!(
                "{path} is locked by {holder}, and was not released within {wait:?}: end that process, or wait longer with --wait 10m"
            ),
        }
    }
}

/// Describes the process that holds the lock on a file.
fn holder(path: &Path) -> String {
    match lock_holder(path) {
        Some(LockHolder { pid, program: Some(program) }) => {
            format!("process {pid} ({})", printable(&program))
        }
        Some(LockHolder { pid, program: None }) => format!("process {pid}"),
        None => "another process".to_string(),
    }
}
