//! Folders of numbered files, the parts of a store. Each file is either complete or absent, several
//! processes can add files to one folder, and old files can be deleted.

use crate::{Error, Result};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use umbel::file::{self, Placing};

/// Returns the numbered files with this extension, in order.
pub(crate) fn list(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let number = |path: &PathBuf| number(path, extension);
    let mut paths: Vec<PathBuf> = entries(folder)?.filter(|path| number(path).is_some()).collect();
    paths.sort_by_key(number);
    Ok(paths)
}

/// Adds a file after the last one, and returns its path.
pub(crate) fn add(folder: &Path, extension: &str, bytes: &[u8]) -> Result<PathBuf> {
    fs::create_dir_all(folder).map_err(Error::io(folder, "create the folder"))?;
    let last = list(folder, extension)?.pop().and_then(|path| number(&path, extension)).unwrap_or(0);
    for number in last.saturating_add(1)..=u64::MAX {
        let path = folder.join(format!("{number:08}")).with_extension(extension);
        let new = Placing { create_new: true, ..Placing::default() };
        match file::save_bytes(&path, bytes, new) {
            // Another process took this number.
            Err(umbel::Error::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
            Ok(_) => return Ok(path),
        }
    }
    Err(Error::FullStore { path: folder.to_owned() })
}

/// Fails if a folder holds other files but none of these.
pub(crate) fn check_is_store(folder: &Path, extension: &str) -> Result<()> {
    let is_other = list(folder, extension)?.is_empty() && entries(folder)?.next().is_some();
    if is_other { Err(Error::NotAStore { path: folder.to_owned() }) } else { Ok(()) }
}

fn entries(folder: &Path) -> Result<impl Iterator<Item = PathBuf>> {
    let entries = fs::read_dir(folder).map_err(Error::io(folder, "open the store"))?;
    Ok(entries.filter_map(|entry| entry.ok().map(|entry| entry.path())))
}

/// Returns the number in the name of a file.
fn number(path: &Path, extension: &str) -> Option<u64> {
    let is_numbered = path.extension().is_some_and(|own| own == extension);
    path.file_stem()?.to_str()?.parse().ok().filter(|_| is_numbered)
}
