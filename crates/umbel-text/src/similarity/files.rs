//! Lists the files of directories, and reads many files at once.

use crate::walk::{join, walk};
use rayon::prelude::*;
use std::io;
use std::path::{Path, PathBuf};

/// A path that could not be read, and the reason.
pub type Unreached = (PathBuf, io::Error);

/// Returns the files among the paths, and the files under the directories among them in the order
/// of their names. Links in directories are not followed. Pipes, devices and the like are skipped.
pub fn files_of(paths: &[PathBuf]) -> (Vec<PathBuf>, Vec<Unreached>) {
    let (mut files, mut unreached) = (Vec::new(), Vec::new());
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let walked = walk(path, None);
        files.extend(walked.files.iter().map(|file| join(path, &file.path)));
        unreached.extend(walked.failed);
    }
    (files, unreached)
}

/// Reads files on all processors. Returns one result per file, in order.
pub fn each_file<T: Send>(paths: &[PathBuf], read: impl Fn(&Path) -> T + Sync) -> Vec<T> {
    paths.par_iter().map(|path| read(path)).collect()
}
