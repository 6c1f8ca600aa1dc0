//! Bloom filters and their relatives on one stem: key, digest, probes, bits.

mod error;

pub use error::{Error, Result};
