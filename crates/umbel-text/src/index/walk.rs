//! The files under a directory, as `grep -r` sees them: regular ones, links not followed, in the order of their names.

use super::stamp::Stamp;
use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// A file that was found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// From the root on; empty if the root is the file.
    pub path: PathBuf,
    pub stamp: Stamp,
}

/// What is under a root, and what could not be read.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub found: Vec<Found>,
    pub failed: Vec<(PathBuf, io::Error)>,
}

/// What a file is whatever its name: its device and its inode.
pub(super) type Identity = (u64, u64);

/// What there is under a name, if anything.
pub(super) fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// The regular files under a root, or the root itself, by their paths from there; `without`, the index, is left out.
pub(super) fn walk(root: &Path, without: Option<Identity>) -> Walked {
    let mut walked = Walked::default();
    // A root that is a link is followed, as one that was asked for.
    match fs::metadata(root) {
        Err(error) => walked.failed.push((root.to_owned(), error)),
        Ok(metadata) if metadata.is_file() => {
            walked.found.push(Found { path: PathBuf::new(), stamp: Stamp::of(&metadata) });
        }
        Ok(metadata) if metadata.is_dir() => directory(root, without, &mut walked),
        Ok(_) => {
            let neither = io::Error::new(io::ErrorKind::InvalidInput, "neither a file nor a directory");
            walked.failed.push((root.to_owned(), neither));
        }
    }
    walked
}

fn directory(root: &Path, without: Option<Identity>, walked: &mut Walked) {
    for entry in WalkDir::new(root).min_depth(1) {
        let failed = |error: walkdir::Error| {
            let path = error.path().unwrap_or(root).to_owned();
            let source = error.into_io_error().unwrap_or_else(|| io::ErrorKind::Other.into());
            (path, source)
        };
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                walked.failed.push(failed(error));
                continue;
            }
        };
        if !entry.file_type().is_file() {
            continue;
        }
        match entry.metadata() {
            Ok(metadata) if without == Some((metadata.dev(), metadata.ino())) => {}
            Ok(metadata) => {
                let path = entry.path().strip_prefix(root).unwrap_or(entry.path()).to_owned();
                walked.found.push(Found { path, stamp: Stamp::of(&metadata) });
            }
            // It has gone since the directory was read: then it is not there.
            Err(error) if error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound) => {}
            Err(error) => walked.failed.push(failed(error)),
        }
    }
    walked.found.sort_unstable_by(|a, b| in_order(&a.path, &b.path));
}

/// How the paths of files are ordered: by their bytes, which takes a tenth of the time of comparing names one by one.
pub(super) fn in_order(a: &Path, b: &Path) -> Ordering {
    a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes())
}

/// Where the index of a directory is looked for: beside it, with `.idx` behind its name; else beside one of those it is
/// in.
pub fn beside(directory: &Path) -> Option<PathBuf> {
    let directory = fs::canonicalize(directory).ok()?;
    directory.ancestors().filter_map(default_index).find(|index| index.is_file())
}

/// The name of a directory's index: beside it, with `.idx` behind its name.
pub fn default_index(directory: &Path) -> Option<PathBuf> {
    let mut name = directory.file_name()?.to_owned();
    name.push(OsStr::new(".idx"));
    Some(directory.with_file_name(name))
}
