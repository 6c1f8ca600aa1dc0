//! The file of an unfinished transfer, `OUTPUT.part`, which a later command continues.
//!
//! Its name is known in advance, and others may be able to create files beside it, as in /tmp. They
//! must not be able to choose where the filter is written, nor to change it on the way. A file that
//! someone else could have put there is refused, not removed: it may be precious.

use crate::filters::{already_exists, folder};
use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, statvfs};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// The bits of a mode by which others may write.
const OTHERS_WRITE: u32 = 0o022;

/// The file of an unfinished transfer.
pub struct Unfinished {
    path: PathBuf,
    /// The file, if it exists. It is locked.
    file: Option<File>,
    len: u64,
}

impl Unfinished {
    /// Opens the file beside an output, if there is one.
    ///
    /// # Errors
    /// Fails for a file that another user may have put there or can change, and while another
    /// process writes to it.
    pub fn beside(output: &Path) -> Result<Unfinished> {
        let mut path = output.to_owned().into_os_string();
        path.push(".part");
        let path = PathBuf::from(path);
        // A pipe would wait for a writer, and a device could do anything.
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let name = path.display();
        let found = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Unfinished { path, file: None, len: 0 });
            }
            found => found.with_context(|| format!("cannot examine {name}"))?,
        };
        check(&path, &found)?;
        let file = File::from(
            rustix::fs::open(&path, flags, Mode::empty())
                .map_err(io::Error::from)
                .with_context(|| format!("cannot open {name}"))?,
        );
        let found = file.metadata().with_context(|| format!("cannot examine {name}"))?;
        check(&path, &found)?;
        let unfinished = Unfinished { path, len: found.len(), file: Some(file) };
        unfinished.lock()?;
        Ok(unfinished)
    }

    /// Returns the name of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of bytes that have come.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the file begins with these bytes, or they with the file.
    pub fn has_start(&self, start: &[u8]) -> Result<bool> {
        let Some(file) = &self.file else { return Ok(true) };
        let common = start.len().min(usize::try_from(self.len)?);
        let mut bytes = vec![0; common];
        file.read_exact_at(&mut bytes, 0).with_context(|| format!("cannot read {}", self.path.display()))?;
        Ok(bytes == start[..common])
    }

    /// Appends bytes to the file, which is created for the first of them.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let len = self.len;
        let written = self.open()?.write_all_at(bytes, len);
        written.with_context(|| format!("cannot write to {}", self.path.display()))?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Fails unless there is space for a file of this length.
    pub fn check_space(&self, total: u64) -> Result<()> {
        // A file system that does not report its space may have enough.
        let Ok(system) = statvfs(folder(&self.path)) else { return Ok(()) };
        let (missing, free) =
            (total.saturating_sub(self.len), system.f_bavail.saturating_mul(system.f_frsize));
        if system.f_blocks > 0 && missing > free {
            bail!(
                "the filter takes {missing} more bytes, but there is space for {free}: name an output on another disk"
            );
        }
        Ok(())
    }

    /// Discards what has come.
    pub fn clear(&mut self) -> Result<()> {
        self.len = 0;
        match &self.file {
            Some(file) => file.set_len(0).with_context(|| format!("cannot write to {}", self.path.display())),
            None => Ok(()),
        }
    }

    /// Writes the file to the disk.
    pub fn sync(&self) -> Result<()> {
        let synced = self.file.as_ref().map_or(Ok(()), File::sync_all);
        synced.with_context(|| format!("cannot write to {}", self.path.display()))
    }

    /// Moves the complete file to its final name. `replace` allows an existing file to be replaced,
    /// whose permissions the new one gets.
    pub fn persist(&self, output: &Path, replace: bool) -> Result<()> {
        let failed = || format!("cannot rename {} to its final name", self.path.display());
        self.check_in_place(&self.path)?;
        let mode = match fs::metadata(output) {
            Ok(replaced) if replace => replaced.mode() & 0o777,
            _ => 0o666 & !umask(),
        };
        if let Some(file) = &self.file {
            file.set_permissions(Permissions::from_mode(mode)).with_context(failed)?;
        }
        if replace {
            fs::rename(&self.path, output).with_context(failed)?;
        } else {
            persist_new(&self.path, output).with_context(failed)?;
        }
        // Where everyone may rename files, another one may have taken its place just before.
        self.check_in_place(output)
    }

    /// Returns the file, and creates it if there is none.
    fn open(&mut self) -> Result<&File> {
        if self.file.is_none() {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::open(&self.path, flags, Mode::RUSR | Mode::WUSR)
                .map_err(io::Error::from)
                .with_context(|| format!("cannot create {}", self.path.display()))?;
            self.file = Some(file.into());
            self.lock()?;
        }
        self.file.as_ref().context("there is no file")
    }

    fn lock(&self) -> Result<()> {
        // There are file systems without locks.
        if let Some(file) = &self.file
            && let Err(Errno::WOULDBLOCK) = flock(file, FlockOperation::NonBlockingLockExclusive)
        {
            bail!(
                "another umbel writes to {}: wait for its end, or name another output",
                self.path.display()
            );
        }
        // Another process may have finished the file, which has its final name then.
        self.check_in_place(&self.path)
    }

    /// Fails if the file with this name is another one.
    fn check_in_place(&self, path: &Path) -> Result<()> {
        let identity = |metadata: &Metadata| (metadata.dev(), metadata.ino());
        let named = fs::symlink_metadata(path).as_ref().map(identity).ok();
        let ours = self.file.as_ref().and_then(|file| file.metadata().ok()).as_ref().map(identity);
        if named.is_some() && named == ours {
            return Ok(());
        }
        bail!(
            "{} was replaced by another process: use an output in a directory that only you can write to",
            path.display()
        )
    }
}

impl Drop for Unfinished {
    /// Removes a file without contents, from which nothing could be continued.
    fn drop(&mut self) {
        if self.file.is_some() && self.len == 0 && self.check_in_place(&self.path).is_ok() {
            // It does no harm if it stays.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Fails for a file that another user may have put there or can change.
fn check(path: &Path, found: &Metadata) -> Result<()> {
    let kind = found.file_type();
    let problem = if kind.is_symlink() {
        "is a symbolic link"
    } else if !kind.is_file() {
        "is not a regular file"
    } else if found.uid() != geteuid().as_raw() {
        "belongs to another user"
    } else if found.nlink() > 1 {
        "has another name, too (a hard link)"
    } else if found.mode() & OTHERS_WRITE != 0 {
        "can be written to by others"
    } else {
        return Ok(());
    };
    let name = path.display();
    bail!("{name} {problem}, so no transfer is continued in it: remove it, or name another output")
}

/// Renames a file unless the new name exists.
fn persist_new(from: &Path, to: &Path) -> Result<()> {
    TempPath::try_from_path(from)?.persist_noclobber(to).or_else(|error| {
        // Not a temporary file: it stays when its handle is dropped.
        error.path.keep().map_err(|error| error.error)?;
        match error.error.kind() {
            io::ErrorKind::AlreadyExists => bail!("{}", already_exists(to)),
            _ => Err(error.error.into()),
        }
    })
}

/// Returns the permissions that new files do not get.
fn umask() -> u32 {
    // The mask can only be read by setting it.
    let mask = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    rustix::process::umask(mask);
    mask.as_raw_mode()
}
