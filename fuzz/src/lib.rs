//! What is done with hostile input, one module for each target: `run` takes any bytes, and panics if a promise is broken.
//! [`seeds`] has the inputs to begin with.

pub mod address;
pub mod blocklist_state;
pub mod capture;
pub mod exact_list;
pub mod filter_file;
pub mod index;
pub mod password;
pub mod seal;
pub mod seeds;
pub mod store;
pub mod summary;
pub mod tables;
pub mod vault;

use std::path::Path;
use tempfile::TempDir;
use umbel::Hasher;
use umbel::hash::KeyRing;

/// The secrets of the files that are begun with.
pub fn ring() -> KeyRing {
    let keyed = Hasher::keyed(*b"sixteen letters!");
    let sealed = Hasher::sealed(*b"thirty-two letters make a secret");
    [keyed, sealed].into_iter().collect()
}

/// A folder for what is read from files alone. In memory where that can be had: a disk would be waited for at every run.
pub fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    folder.expect("a folder for a while")
}
