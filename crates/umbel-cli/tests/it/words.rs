//! Word lists of Debian, installed or unpacked from their packages.

use crate::debian;
use std::path::{Path, PathBuf};

/// Returns the word list of a package.
pub fn list(package: &str, name: &str) -> PathBuf {
    let installed = Path::new("/usr/share/dict").join(name);
    if installed.is_file() { installed } else { debian::unpacked(package, &format!("usr/share/dict/{name}")) }
}
