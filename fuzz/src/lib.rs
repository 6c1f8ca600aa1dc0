//! Tests with hostile input, one module per target: `run` takes any bytes, and panics if a promise
//! is broken. [`seeds`] provides the initial inputs.

pub mod address;
pub mod blocklist_state;
pub mod capture;
pub mod exact_list;
pub mod filter_file;
pub mod foreign;
pub mod index;
pub mod parquet;
pub mod password;
pub mod private_count;
pub mod seal;
pub mod seeds;
pub mod store;
pub mod summary;
pub mod tables;
pub mod topology;
pub mod trace_page;
pub mod vault;

use std::path::Path;
use tempfile::TempDir;
use umbel::Hasher;
use umbel::hash::KeyRing;

/// Returns the secrets of the seed files.
pub fn ring() -> KeyRing {
    let keyed = Hasher::keyed(*b"sixteen letters!");
    let sealed = Hasher::sealed(*b"thirty-two letters make a secret");
    [keyed, sealed].into_iter().collect()
}

/// Creates a folder for inputs that are read from files only. It is in memory if possible, because
/// every run would wait for a disk.
pub fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    folder.expect("a temporary folder")
}
