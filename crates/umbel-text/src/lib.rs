//! Bloom filters for documents.
//!
//! [`content`] tells what a file is by its first bytes, and decompresses it.

pub mod content;
