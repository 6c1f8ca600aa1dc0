//! Bloom filters for documents.
//!
//! [`content`] tells what a file is by its first bytes, and decompresses it.
//! [`tables`] is a small store of sorted tables on disk, of which a filter each tells which cannot hold a key.
//! [`guard`] puts a filter in front of any expensive lookup.

pub mod content;
mod fields;
pub mod guard;
pub mod tables;
