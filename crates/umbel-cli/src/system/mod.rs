//! The clock, the limits, the locks, the signals and the random numbers of the operating system.

pub mod clock;
pub mod locks;
pub mod signals;

use anyhow::{Context, Result};
use rustix::process::{Resource, getrlimit, setrlimit};

/// Returns a random seed.
pub fn random_seed() -> Result<u64> {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).context("the system has no random numbers")?;
    Ok(u64::from_le_bytes(seed))
}

/// Raises the limit of open files as far as the system permits, and returns it; `None` if there is no
/// limit. The usual one, 1024, is too low for filters in many shards: each is an open file, or a
/// connection to a server.
pub fn raise_limit_of_files() -> Option<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current
}
