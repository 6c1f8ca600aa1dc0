//! Bloom filters and their relatives on one stem: key, digest, probes, bits.

mod error;
pub mod sizing;
pub mod literature;

pub use error::{Error, Result};
