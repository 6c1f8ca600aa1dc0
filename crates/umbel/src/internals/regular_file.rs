//! Opens regular files and nothing else: opening a pipe waits for its writer, and a device may never
//! end. The path may have been chosen by an attacker, who can also change the file behind it.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Opens a regular file for reading.
///
/// # Errors
///
/// Returns the system's error, or that of [`check`].
pub fn open(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path)
}

/// Opens a regular file as these options say.
///
/// # Errors
///
/// As [`open`].
pub fn open_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    // Before opening, which has effects on some devices.
    check(&fs::metadata(path)?)?;
    let file = open_without_waiting(options, path)?;
    // The path may lead to another file by now.
    check(&file.metadata()?)?;
    Ok(file)
}

/// Fails if this is not a regular file.
///
/// # Errors
///
/// An error that describes what it is instead.
pub fn check(metadata: &Metadata) -> io::Result<()> {
    match metadata {
        metadata if metadata.is_file() => Ok(()),
        metadata if metadata.is_dir() => Err(is_a_directory()),
        _ => Err(io::Error::other("it is not a regular file")),
    }
}

/// Returns the error for a directory in the place of a file.
pub(super) fn is_a_directory() -> io::Error {
    io::Error::new(ErrorKind::IsADirectory, "it is a directory")
}

/// Opens a folder, to lock or flush it. If the path is a pipe, locking it is useless but harmless.
///
/// # Errors
///
/// Returns the system's error.
pub fn open_folder(path: &Path) -> io::Result<File> {
    open_without_waiting(OpenOptions::new().read(true), path)
}

/// Opens a file, without waiting for the other end if it is a pipe.
pub(super) fn open_without_waiting(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(all(unix, feature = "files"))]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(OFlags::union(OFlags::NONBLOCK, OFlags::NOCTTY).bits().cast_signed());
    }
    options.open(path)
}
