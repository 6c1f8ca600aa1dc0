//! The folder of the store: it belongs to one process, only a folder that was created for a store
//! is used as one, and other users have no access to it.
//!
//! Nothing in the folder is reached through a symbolic link: a user who could place one would choose
//! the files that the store deletes. The path of the folder itself may have links.

use crate::error::{Error, Result};
use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The permissions of folders.
const FOLDER_MODE: u32 = 0o700;
/// The permissions of files.
const FILE_MODE: u32 = 0o600;
/// The flag by which a symbolic link is not opened.
const NOFOLLOW: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// The file that marks a folder as a store. Opening a store deletes files, so no other folder may
/// be mistaken for one.
const MARKER_FILE: &str = "umbel-cache";

/// The number of attempts to lock a folder, as the process that holds the lock may be about to end.
const LOCK_ATTEMPTS: u32 = 20;
/// The pause between two attempts.
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Creates a folder and its parents, unless they exist.
pub(super) fn create(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)
}

/// Returns options to open a file for writing. Only its owner has access to a new file.
pub(super) fn writing() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(FILE_MODE).custom_flags(NOFOLLOW);
    options
}

/// Opens a file for reading.
pub(super) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(NOFOLLOW).open(path)
}

/// Marks an empty folder as a store, and takes the access of other users away.
///
/// # Errors
///
/// [`Error::NotACache`] if the folder has files but no marker, [`Error::NotOwned`] if it belongs to
/// another user.
pub(super) fn mark(folder: &Path) -> Result<()> {
    let (marker, failed) = (folder.join(MARKER_FILE), Error::store("open"));
    let is_marked = fs::symlink_metadata(&marker).is_ok_and(|metadata| metadata.is_file());
    if !is_marked && fs::read_dir(folder).map_err(&failed)?.next().is_some() {
        return Err(Error::NotACache { folder: folder.to_owned() });
    }
    let metadata = fs::metadata(folder).map_err(&failed)?;
    if metadata.uid() != geteuid().as_raw() {
        return Err(Error::NotOwned { folder: folder.to_owned() });
    }
    if metadata.permissions().mode() & 0o7777 != FOLDER_MODE {
        fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE)).map_err(&failed)?;
    }
    if is_marked {
        return Ok(());
    }
    let mut file = writing().create_new(true).open(marker).map_err(&failed)?;
    file.write_all(b"A cache of umbel is in this folder.\n").map_err(failed)
}

/// Creates a folder of the store, and fails if there is a symbolic link in its place.
pub(super) fn create_own(folder: &Path) -> io::Result<()> {
    create(folder)?;
    if fs::symlink_metadata(folder)?.is_dir() { Ok(()) } else { Err(is_link(folder)) }
}

/// Returns all files in the subfolders of a folder.
///
/// # Errors
///
/// Fails if a symbolic link is in the place of a subfolder, whose names have two digits. Other
/// links are left alone.
pub(super) fn nested_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for inner in fs::read_dir(folder)? {
        let inner = inner?;
        let file_type = inner.file_type()?;
        if file_type.is_dir() {
            for file in fs::read_dir(inner.path())? {
                let file = file?;
                if file.file_type()?.is_file() {
                    found.push(file.path());
                }
            }
        } else if file_type.is_symlink() && is_subfolder_name(&inner.file_name()) {
            return Err(is_link(&inner.path()));
        }
    }
    Ok(found)
}

/// Returns whether this is the name of a subfolder: two hexadecimal digits.
fn is_subfolder_name(name: &OsStr) -> bool {
    name.len() == 2 && name.as_encoded_bytes().iter().all(u8::is_ascii_hexdigit)
}

fn is_link(path: &Path) -> io::Error {
    io::Error::other(format!("{} is a symbolic link, which is not followed; remove it", path.display()))
}

/// Locks a folder for this process, for as long as the returned file is open.
///
/// # Errors
///
/// [`Error::InUse`] if another process has locked it.
pub(super) fn lock(folder: &Path) -> Result<File> {
    let failed = Error::store("open");
    let lock = writing().create(true).truncate(false).open(folder.join("lock"));
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
