//! The location of the index of a directory.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the path of an existing index for a directory. It lies beside the directory, under its
/// name with `.idx` appended, or else beside one of its parents.
pub fn beside(directory: &Path) -> Option<PathBuf> {
    // The index of a link is beside the link, because it was built under that name.
    let given = std::path::absolute(directory).ok()?;
    let folder = given.parent().and_then(|folder| fs::canonicalize(folder).ok());
    let given = folder.zip(given.file_name()).map(|(folder, name)| folder.join(name));
    let directory = fs::canonicalize(directory).ok()?;
    let places = given.iter().map(PathBuf::as_path).chain(directory.ancestors());
    places.filter_map(default_index).find(|index| index.is_file())
}

/// Returns the default path of a directory's index: beside it, under its name with `.idx` appended.
pub fn default_index(directory: &Path) -> Option<PathBuf> {
    let mut name = directory.file_name()?.to_owned();
    name.push(OsStr::new(".idx"));
    Some(directory.with_file_name(name))
}
