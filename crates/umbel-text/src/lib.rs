//! Bloom filters for documents.
//!
//! [`content`] tells what a file is by its first bytes, and decompresses it. [`password`] keeps weak passwords in a filter
//! that does not give them away. [`address`] screens web addresses, and never blames one by a filter alone.

pub mod address;
pub mod content;
pub mod lines;
pub mod password;
