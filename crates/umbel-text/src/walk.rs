//! Walks a directory like `grep -r`: lists regular files in the order of their names and does not
//! follow links.

use crate::stamp::Stamp;
use rayon::prelude::*;
use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file under a root, and its stamp when it was found.
#[derive(Clone, Debug)]
pub(crate) struct FoundFile {
    /// The path from the root; empty if the root is the file.
    pub path: PathBuf,
    pub stamp: Stamp,
}

/// The files under a root, and the paths that could not be read.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    pub files: Vec<FoundFile>,
    pub failed: Vec<(PathBuf, io::Error)>,
}

/// The device and the inode of a file, which identify it under any name.
pub(crate) type Identity = (u64, u64);

/// Returns the identity of the file at a path, if there is one.
pub(crate) fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Returns the regular files under a root, or the root itself, in the order of their paths. Skips
/// `without`, the file of the index.
pub(crate) fn walk(root: &Path, without: Option<Identity>) -> Walked {
    let mut walked = Walked::default();
    // A root that is a link is followed, because the caller asked for it.
    match fs::metadata(root) {
        Err(error) => walked.failed.push((root.to_owned(), error)),
        Ok(metadata) if metadata.is_file() => {
            walked.files.push(FoundFile { path: PathBuf::new(), stamp: Stamp::from_metadata(&metadata) });
        }
        Ok(metadata) if metadata.is_dir() => directory(root, without, &mut walked),
        Ok(_) => {
            let neither = io::Error::new(io::ErrorKind::InvalidInput, "neither a file nor a directory");
            walked.failed.push((root.to_owned(), neither));
        }
    }
    walked
}

/// Walks the directories one after the other, and examines the files of each on all processors,
/// because system calls take most of the time.
fn directory(root: &Path, without: Option<Identity>, walked: &mut Walked) {
    // Paths from the root, each with a trailing slash.
    let mut folders = vec![Vec::new()];
    while let Some(folder) = folders.pop() {
        let place = join(root, Path::new(OsStr::from_bytes(&folder)));
        let entries = match fs::read_dir(&place).and_then(Iterator::collect::<io::Result<Vec<DirEntry>>>) {
            Ok(entries) => entries,
            // The directory was removed after its parent was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !folder.is_empty() => continue,
            Err(error) => {
                walked.failed.push((place, error));
                continue;
            }
        };
        let look = |entry: &DirEntry| {
            let path = [&folder, entry.file_name().as_bytes()].concat();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => Ok(Some(Seen::Folder(path))),
                Ok(kind) if kind.is_file() => entry.metadata().map(|metadata| {
                    let file = FoundFile {
                        path: OsString::from_vec(path).into(),
                        stamp: Stamp::from_metadata(&metadata),
                    };
                    (without != Some((metadata.dev(), metadata.ino()))).then_some(Seen::File(file))
                }),
                result => result.map(|_| None),
            }
        };
        let seen: Vec<_> = entries.par_iter().with_min_len(MIN_FILES_PER_THREAD).map(look).collect();
        for (entry, seen) in entries.iter().zip(seen) {
            match seen {
                Ok(Some(Seen::File(file))) => walked.files.push(file),
                Ok(Some(Seen::Folder(mut path))) => {
                    path.push(b'/');
                    folders.push(path);
                }
                Ok(None) => {}
                // The file was removed after the directory was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => walked.failed.push((entry.path(), error)),
            }
        }
    }
    walked.files.sort_unstable_by(|a, b| in_order(&a.path, &b.path));
}

/// Joins a root and a path under it. An empty path stands for the root itself, which may be a file.
pub(crate) fn join(root: &Path, path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() { root.to_owned() } else { root.join(path) }
}

/// The number of files that justifies another thread.
const MIN_FILES_PER_THREAD: usize = 256;

/// An entry of a directory, by its path from the root.
enum Seen {
    File(FoundFile),
    Folder(Vec<u8>),
}

/// Compares paths by their bytes, which takes a tenth of the time of comparing components.
pub(crate) fn in_order(a: &Path, b: &Path) -> Ordering {
    a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes())
}
