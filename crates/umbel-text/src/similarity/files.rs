//! The files of directories, and many files at once.

use rayon::prelude::*;
use std::io;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// What a walk finds that it cannot go into or look at, and why.
pub type Unreached = (PathBuf, io::Error);

/// The files, and those in the directories, in the order of their names. Links in directories are not followed; pipes, devices
/// and the like in directories are left out.
pub fn files_of(paths: &[PathBuf]) -> (Vec<PathBuf>, Vec<Unreached>) {
    let (mut files, mut unreached) = (Vec::new(), Vec::new());
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        for entry in WalkDir::new(path).sort_by_file_name() {
            match entry {
                Ok(entry) if entry.file_type().is_file() => files.push(entry.into_path()),
                Ok(_) => {}
                Err(error) => {
                    let at = error.path().unwrap_or(path).to_owned();
                    let error =
                        error.into_io_error().unwrap_or_else(|| io::Error::other("it contains itself"));
                    unreached.push((at, error));
                }
            }
        }
    }
    (files, unreached)
}

/// Reads files on all processors, each by itself; what came of them is in their order.
pub fn each_file<T: Send>(paths: &[PathBuf], read: impl Fn(&Path) -> T + Sync) -> Vec<T> {
    paths.par_iter().map(|path| read(path)).collect()
}
