//! Changes of a folder: a program that opens it finds all of a change or nothing of it, also if the
//! process that makes it is killed.
//!
//! ```text
//!   shard-0003.umbel.new     1. staged: the new contents of each shard that changes
//!   manifest.next            2. written at once: this commits the change
//!   shard-0003.umbel         3. staged shards get their names
//!   manifest                 4. and so does the manifest
//! ```
//!
//! While there is a `manifest.next`, it is the manifest, and a shard is the staged one if there is
//! one. So a reader needs no lock, and the next process that changes the folder makes up for missing
//! steps 3 and 4. Before step 2, staged shards mean nothing.
//!
//! A folder without a manifest is not a filter. There the shards get their names at once, and the
//! manifest is written last.

use super::manifest::{MANIFEST, Manifest, NEXT_MANIFEST};
use super::{is_sharded, shard_path};
use crate::file::{self, Options, Storable};
use crate::hash::KeyRing;
use crate::internals::file_lock::{FileLockKind, is_named, lock_current};
use crate::internals::regular_file;
use crate::internals::sync::lock;
use crate::{Error, Result};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

const STAGED: &str = ".new";

/// The right to write the filter in a folder, which one process has at a time. Readers are not kept
/// out.
///
/// Unless the filter is written completely, all that was written is removed when the lock is
/// released.
#[derive(Debug)]
pub struct FolderLock {
    folder: PathBuf,
    /// Whether there is a filter, which is replaced.
    replaces: bool,
    /// The files that are of no use unless the filter is complete.
    written: Mutex<Vec<PathBuf>>,
    /// The folder itself, which stays locked until it is closed.
    locked: File,
}

impl FolderLock {
    /// Waits at most this long until no other process writes to the folder, and completes a change
    /// that was interrupted. Returns `None` if another process still has the lock.
    ///
    /// ```
    /// use std::time::Duration;
    /// use umbel::sharded::FolderLock;
    /// let folder = tempfile::tempdir()?;
    /// let lock = FolderLock::acquire(folder.path(), Duration::ZERO)?.expect("nobody else has it");
    /// assert!(FolderLock::acquire(folder.path(), Duration::ZERO)?.is_none());
    /// # drop(lock);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the folder cannot be opened or locked, or an interrupted change cannot be completed.
    pub fn acquire(folder: impl AsRef<Path>, wait: Duration) -> Result<Option<FolderLock>> {
        let folder = folder.as_ref();
        let open = || regular_file::open_folder(folder).map_err(|source| Error::io(folder, "open", source));
        let locked = match lock_current(folder, FileLockKind::Exclusive, wait, open)? {
            Ok(locked) => locked,
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(source)) => return Err(Error::io(folder, "lock", source)),
        };
        complete(folder)?;
        // Nobody else stages shards now, so these are of a change that was never committed.
        remove_shards(folder, |_, is_staged| is_staged)?;
        let (folder, replaces, written) = (folder.to_owned(), is_sharded(folder), Mutex::default());
        Ok(Some(FolderLock { folder, replaces, written, locked }))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Returns whether the folder has a filter, which is replaced by the one that is written.
    pub fn replaces(&self) -> bool {
        self.replaces
    }

    /// Returns the path at which a shard is written.
    pub(super) fn next_path(&self, shard: usize) -> PathBuf {
        if self.replaces { staged_path(&self.folder, shard) } else { shard_path(&self.folder, shard) }
    }

    /// Fails if another folder has been moved to the path. The filter in it is not the one that is
    /// changed, and other processes may lock it.
    fn check_current(&self) -> Result<()> {
        if is_named(&self.locked, &self.folder) {
            return Ok(());
        }
        let why = "another folder has taken its place in the meantime: start again";
        Err(Error::io(&self.folder, "change", io::Error::other(why)))
    }

    /// Writes a shard, and returns its checksum for the manifest.
    pub(super) fn save_shard(&self, shard: usize, filter: &impl Storable, options: &Options) -> Result<u64> {
        self.check_current()?;
        let path = self.next_path(shard);
        lock(&self.written).push(path.clone());
        file::save(&path, filter, options)?;
        if self.replaces {
            take_permissions(&path, &shard_path(&self.folder, shard))?;
        }
        Ok(file::map(&path, &KeyRing::blind())?.header_sum())
    }

    /// Makes the shards that were written, and the others that this manifest lists, the filter.
    pub(super) fn commit(self, manifest: &Manifest) -> Result<()> {
        self.check_current()?;
        if self.replaces {
            manifest.save_next(&self.folder)?;
            // The change is made. If the files cannot get their names now, they will later.
            let _ = complete(&self.folder);
        } else {
            manifest.save(&self.folder)?;
        }
        lock(&self.written).clear();
        Ok(())
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        if self.check_current().is_err() {
            return;
        }
        // If the commit has failed, the manifest may be there nevertheless, and with it the filter.
        let is_committed = if self.replaces {
            !matches!(Manifest::load_next(&self.folder), Ok(None))
        } else {
            is_sharded(&self.folder)
        };
        if !is_committed {
            lock(&self.written).drain(..).for_each(|path| drop(fs::remove_file(path)));
        }
    }
}

/// Returns the path of the new contents of a shard.
pub(super) fn staged_path(folder: &Path, shard: usize) -> PathBuf {
    let mut path = shard_path(folder, shard).into_os_string();
    path.push(STAGED);
    path.into()
}

/// Gives the files of a change that is committed their names.
fn complete(folder: &Path) -> Result<()> {
    let Some(manifest) = Manifest::load_next(folder)? else { return Ok(()) };
    let shards = manifest.sums().len();
    for shard in 0..shards {
        rename(&staged_path(folder, shard), &shard_path(folder, shard))?;
    }
    // Those of a filter with more shards, which this one replaces.
    remove_shards(folder, |shard, _| shard >= shards)?;
    flush(folder);
    let (next, usual) = (folder.join(NEXT_MANIFEST), folder.join(MANIFEST));
    // Another user, whose process was interrupted, may have written it.
    let _ = take_permissions(&next, &usual);
    rename(&next, &usual)?;
    flush(folder);
    Ok(())
}

/// Renames a file, if there is one.
fn rename(from: &Path, to: &Path) -> Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(to, "replace", error)),
        _ => Ok(()),
    }
}

/// Gives a file the permissions and, if the system permits it, the owner of the file that it will
/// replace, if there is one.
fn take_permissions(path: &Path, from: &Path) -> Result<()> {
    let Ok(before) = fs::metadata(from) else { return Ok(()) };
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, chown};
        let _ = chown(path, Some(before.uid()), Some(before.gid()));
    }
    let failed = |source| Error::io(path, "give its permissions to", source);
    fs::set_permissions(path, before.permissions()).map_err(failed)
}

/// Flushes the names in a folder to disk, where the system can.
fn flush(folder: &Path) {
    if let Ok(folder) = regular_file::open_folder(folder) {
        let _ = folder.sync_all();
    }
}

/// Removes the shards for which `remove` returns true, by their number and whether they are staged.
fn remove_shards(folder: &Path, remove: impl Fn(usize, bool) -> bool) -> Result<()> {
    let failed = |source| Error::io(folder, "list", source);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some((shard, is_staged)) = name.to_str().and_then(shard_of_name) else { continue };
        if remove(shard, is_staged) {
            let path = folder.join(name);
            fs::remove_file(&path).map_err(|source| Error::io(&path, "remove", source))?;
        }
    }
    Ok(())
}

/// Returns the number of the shard in a file, and whether it is staged.
fn shard_of_name(name: &str) -> Option<(usize, bool)> {
    let plain = name.strip_suffix(STAGED);
    let number = plain.unwrap_or(name).strip_prefix("shard-")?.strip_suffix(".umbel")?;
    let is_number = number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit());
    Some((number.parse().ok().filter(|_| is_number)?, plain.is_some()))
}
