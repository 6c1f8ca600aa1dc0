//! A folder as a store: the names of its files are the keys.

use super::{Change, Lookup};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};
use umbel::file::{Placing, save_bytes};

/// The files of a folder, under their names; folders in it are not looked into.
///
/// Its version is the time at which something in the folder was last added, removed or renamed, as the file system has it. Since
/// that time has steps, two changes can have the same one: a folder has no version until it is a little older than that. The
/// changes that are made here cannot be told from those of others.
///
/// It is for file systems on which a file has one name: where `A` and `a` are the same, ask for a name as the folder has it.
#[derive(Clone, Debug)]
pub struct Files {
    folder: PathBuf,
    settling: Duration,
}

impl Files {
    /// The files of this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Files {
        Files { folder: folder.into(), settling: Duration::from_secs(2) }
    }

    /// With another time after which a change can be told from the next one. Two seconds are enough for every file system that
    /// has times at all, if the clock of the machine that has the disk is right.
    pub fn settling(self, settling: Duration) -> Files {
        Files { settling, ..self }
    }

    /// The path of a file, if it is one in this folder.
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
        absent(fs::read(self.path(name)?))
    }

    fn version(&mut self) -> io::Result<Option<SystemTime>> {
        let changed = fs::metadata(&self.folder)?.modified()?;
        // A time in the future is not settled either.
        Ok(changed.elapsed().is_ok_and(|age| age >= self.settling).then_some(changed))
    }

    fn keys(&mut self, each: &mut dyn FnMut(&str)) -> io::Result<bool> {
        for entry in fs::read_dir(&self.folder)? {
            // A name that is no text cannot be asked for either.
            entry?.file_name().to_str().into_iter().for_each(&mut *each);
        }
        Ok(true)
    }
}

impl Change for Files {
    /// Writes the file wholly or not at all.
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

/// What is not there is no error.
fn absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
