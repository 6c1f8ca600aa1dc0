//! What is done with hostile input, one module for each target: `run` takes any bytes, and panics if a promise is broken.
//! [`seeds`] has the inputs to begin with.

pub mod blocklist_state;
pub mod capture;
pub mod filter_file;
pub mod seal;
pub mod seeds;
pub mod store;

use umbel::{Hasher, KeyRing};

/// The secrets of the files that are begun with.
pub fn ring() -> KeyRing {
    let keyed = Hasher::keyed(*b"sixteen letters!");
    let sealed = Hasher::sealed(*b"thirty-two letters make a secret");
    [keyed, sealed].into_iter().collect()
}
