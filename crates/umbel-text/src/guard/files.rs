//! A folder as a store, with the names of its files as keys.

use super::{Change, Lookup};
use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};
use umbel::file::{Placing, save_bytes};
use umbel::internals::regular_file;

/// The files of a folder, under their names. Subfolders are not searched.
///
/// The version is the time at which an entry of the folder was last added, removed or renamed, as
/// the file system reports it. Because that time has limited resolution, two changes can have the
/// same one. So a folder has no version until it has been unchanged for a little while. Changes
/// made through this value cannot be distinguished from those of others.
///
/// Use this store on file systems where a file has one name. Where `A` and `a` are the same file,
/// ask for a name in the folder's spelling.
#[derive(Clone, Debug)]
pub struct Files {
    folder: PathBuf,
    settling: Duration,
}

impl Files {
    /// Creates a store of the files in this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Files {
        Files { folder: folder.into(), settling: Duration::from_secs(2) }
    }

    /// Sets the time after which a change can be distinguished from the next one. The default of
    /// two seconds is enough for every file system that stores times, if the clock of the machine
    /// with the disk is right.
    pub fn settling(self, settling: Duration) -> Files {
        Files { settling, ..self }
    }

    /// Returns the path of a file, if the name is that of a file directly in this folder.
    fn path(&self, name: &str) -> io::Result<PathBuf> {
        let mut parts = Path::new(name).components();
        match (parts.next(), parts.next()) {
            (Some(Component::Normal(part)), None) if part == name => Ok(self.folder.join(name)),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{name:?} is not the name of a file"),
            )),
        }
    }
}

impl Lookup for Files {
    type Key = str;
    type Value = Vec<u8>;
    type Error = io::Error;
    type Version = SystemTime;

    fn get(&mut self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let mut contents = Vec::new();
        let read = regular_file::open(&self.path(name)?).and_then(|mut file| file.read_to_end(&mut contents));
        absent(read.map(|_| contents))
    }

    fn version(&mut self) -> io::Result<Option<SystemTime>> {
        let changed = fs::metadata(&self.folder)?.modified()?;
        // A time in the future has not settled, either.
        Ok(changed.elapsed().is_ok_and(|age| age >= self.settling).then_some(changed))
    }

    fn keys(&mut self, each: &mut dyn FnMut(&str)) -> io::Result<bool> {
        for entry in fs::read_dir(&self.folder)? {
            // A name that is not UTF-8 cannot be asked for, either.
            entry?.file_name().to_str().into_iter().for_each(&mut *each);
        }
        Ok(true)
    }
}

impl Change for Files {
    /// Writes the file completely or not at all.
    fn insert(&mut self, name: &str, value: Vec<u8>) -> io::Result<()> {
        save_bytes(self.path(name)?, &value, Placing::default()).map(drop).map_err(|error| match error {
            umbel::Error::Io { source, .. } => source,
            other => io::Error::other(other),
        })
    }

    fn remove(&mut self, name: &str) -> io::Result<bool> {
        absent(fs::remove_file(self.path(name)?)).map(|removed| removed.is_some())
    }
}

/// Turns a missing file into `None`.
fn absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
