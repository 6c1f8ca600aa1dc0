//! The folder of a store: its files, and the lock on them.

use super::log::{self, Start};
use super::slot::{MAX_FLUSHES, Span};
use crate::{Error, Result};
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use umbel::internals::file_lock::{FileLockKind, lock_within};

const LOCK: &str = "lock";
const COUNTS: &str = "counts";
const SECRET: &str = "filters.key";

/// The files of a store in its folder.
#[derive(Debug, Default)]
pub(super) struct StoreFiles {
    pub spans: Vec<Span>,
    pub logs: Vec<u64>,
    has_lock: bool,
    has_counts: bool,
    has_secret: bool,
    /// Whether a log has at least the first bytes of one.
    has_log: bool,
    /// A file that has the name of a log, but is something else.
    not_a_log: Option<PathBuf>,
    has_others: bool,
}

impl StoreFiles {
    /// Lists the files of a folder.
    pub fn list(folder: &Path) -> Result<StoreFiles> {
        let io = |doing| Error::io(folder, doing);
        let mut files = StoreFiles::default();
        for entry in fs::read_dir(folder).map_err(io("read"))? {
            let path = entry.map_err(io("read"))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).filter(|_| path.is_file());
            let (span, log) = (name.and_then(Span::from_file_name), name.and_then(log_number));
            files.has_lock |= name == Some(LOCK);
            files.has_counts |= name == Some(COUNTS);
            files.has_secret |= name == Some(SECRET);
            let is_named = name.is_some_and(|name| [LOCK, COUNTS, SECRET].contains(&name) || is_part(name));
            files.has_others |= !is_named && span.is_none() && log.is_none();
            match log.map(|number| Start::read(&path, number)) {
                Some(Ok(Start::Foreign)) => files.not_a_log = Some(path.clone()),
                Some(Ok(Start::Log)) => files.has_log = true,
                // A writer that is not locked out yet has just removed it.
                Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => files.has_log = true,
                Some(Err(error)) => return Err(Error::io(&path, "read")(error)),
                Some(Ok(Start::Torn)) | None => {}
            }
            files.spans.extend(span);
            files.logs.extend(log);
        }
        Ok(files)
    }

    /// Lists the files of a store. Fails if there is none in the folder.
    pub fn check_store(folder: &Path) -> Result<StoreFiles> {
        match StoreFiles::list(folder) {
            Ok(files) if files.is_store() => Ok(files),
            Err(Error::Io { source, .. }) if source.kind() != io::ErrorKind::NotFound => {
                Err(Error::io(folder, "read")(source))
            }
            _ => Err(Error::NoStore { path: folder.to_owned() }),
        }
    }

    /// Returns whether the folder holds a store, with or without entries. Many programs lock a file
    /// named `lock`, so it proves nothing beside files that do not belong to a store.
    fn is_store(&self) -> bool {
        !self.spans.is_empty() || self.has_log || (self.has_lock && !self.has_others)
    }

    /// Fails if the folder holds other files, but no store.
    pub fn check_not_foreign(&self, folder: &Path) -> Result<()> {
        match &self.not_a_log {
            _ if self.is_store() => Ok(()),
            _ if self.has_others || self.has_counts || self.has_secret => {
                Err(Error::Occupied { path: folder.to_owned() })
            }
            Some(path) => Err(log::not_a_log(path)),
            None => Ok(()),
        }
    }
}

/// Returns the path of the file with the lock on a store.
pub fn lock_path(folder: &Path) -> PathBuf {
    folder.join(LOCK)
}

/// Opens a file of a store. Returns `None` if there is none, and the error `not_a_file` if it is not
/// a regular file. Does not wait for the other end of a pipe, and does not follow a link, which
/// could lead to a file that is not of the store.
pub(super) fn open_file(
    path: &Path,
    options: &mut OpenOptions,
    not_a_file: impl Fn() -> Error,
) -> Result<Option<File>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match options.custom_flags(flags.bits() as i32).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // The system's message is about a loop for a link, and about a device for a pipe.
        Err(_) if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) => return Err(not_a_file()),
        file => file.map_err(Error::io(path, "open"))?,
    };
    match file.metadata().map_err(Error::io(path, "read"))?.is_file() {
        true => Ok(Some(file)),
        false => Err(not_a_file()),
    }
}

/// Locks a store for one process that writes.
pub(super) fn lock(folder: &Path, wait: Duration) -> Result<File> {
    let path = lock_path(folder);
    let mut options = File::options();
    let file = open_file(&path, options.create(true).truncate(false).write(true), || not_a_lock(&path))?;
    let file = file.ok_or_else(|| Error::io(&path, "open")(io::ErrorKind::NotFound.into()))?;
    lock_within(&file, FileLockKind::Exclusive, wait).map_err(Error::lock(&path))?;
    Ok(file)
}

/// The error of something else than a file at the path of the lock.
fn not_a_lock(path: &Path) -> Error {
    Error::damaged(path, "it is not a regular file; remove it, and it is created again")
}

/// Locks a store for processes that read. Creates no file: a store without one, such as a copy, is
/// not locked.
pub(super) fn lock_shared(folder: &Path, wait: Duration) -> Result<Option<File>> {
    let path = lock_path(folder);
    let Some(file) = open_file(&path, File::options().read(true), || not_a_lock(&path))? else {
        return Ok(None);
    };
    lock_within(&file, FileLockKind::Shared, wait).map_err(Error::lock(&path))?;
    Ok(Some(file))
}

pub(super) fn log_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:08}.log"))
}

pub(super) fn counts_path(folder: &Path) -> PathBuf {
    folder.join(COUNTS)
}

pub(super) fn secret_path(folder: &Path) -> PathBuf {
    folder.join(SECRET)
}

/// Returns whether this is the name of an incomplete file, which a crash can leave.
fn is_part(name: &str) -> bool {
    name.starts_with(".umbel-") && name.ends_with(".part")
}

fn log_number(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".log")?.parse().ok()?;
    (number < MAX_FLUSHES && format!("{number:08}.log") == name).then_some(number)
}
