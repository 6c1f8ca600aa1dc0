//! The integration tests of `umbel-text`, linked into one binary, with a module for each promise.
//!
//! `cargo test -p umbel-text --test it address::` runs the tests of one module.

mod address;
mod errors;
mod guard;
mod hyphenation;
mod index;
mod index_column;
mod index_corners;
mod index_format;
mod password;
mod short_reads;
mod similarity;
mod spelling;
mod tables;
mod tables_reader;
mod tables_secret;
mod vault;
mod vault_changes;
