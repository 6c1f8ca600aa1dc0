//! Bloom filters for documents.
//!
//! [`content`] tells what a file is by its first bytes, and decompresses it. [`spelling`] finds words that are in no
//! dictionary. [`similarity`] tells how much documents have in common.

pub mod content;
pub mod similarity;
pub mod spelling;
