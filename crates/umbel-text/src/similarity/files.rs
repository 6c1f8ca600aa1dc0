//! The files of directories, and many files at once.

use crate::walk::{Walked, join, walk};
use rayon::prelude::*;
use std::io;
use std::path::{Path, PathBuf};

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
        let Walked { found, failed } = walk(path, None);
        files.extend(found.iter().map(|found| join(path, &found.path)));
        unreached.extend(failed);
    }
    (files, unreached)
}

/// Reads files on all processors, each by itself; what came of them is in their order.
pub fn each_file<T: Send>(paths: &[PathBuf], read: impl Fn(&Path) -> T + Sync) -> Vec<T> {
    paths.par_iter().map(|path| read(path)).collect()
}
