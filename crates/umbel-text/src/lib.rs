//! Bloom filters for documents.
//!
//! [`content`] tells what a file is by its first bytes, and decompresses it. [`vault`] keeps encrypted files that can be
//! searched where they lie.

pub mod content;
pub mod vault;
