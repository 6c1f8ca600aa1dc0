//! Bloom filters and their relatives on one stem: key, digest, probes, bits.

mod error;
pub mod sizing;

pub use error::{Error, Result};
