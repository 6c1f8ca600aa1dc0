//! The clock, the locks, the signals and the random numbers of the operating system.

pub mod clock;
pub mod locks;
pub mod signals;

use anyhow::{Context, Result};

/// Returns a random seed.
pub fn random_seed() -> Result<u64> {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).context("the system has no random numbers")?;
    Ok(u64::from_le_bytes(seed))
}
