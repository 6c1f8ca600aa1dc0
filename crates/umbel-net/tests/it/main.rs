//! The integration tests of `umbel-net`, linked into one binary: a module for each promise, and the
//! fixtures they share.
//!
//! `cargo test -p umbel-net --test it attribution::` runs the tests of one module.

// Fixtures.
mod common;
mod debian;

// Promises.
mod attribution;
mod attribution_streams;
mod blocklist;
mod capture;
mod errors;
mod flows;
mod loops;
mod passage;
mod payload;
mod picture;
mod privacy;
mod routing;
mod signature_streams;
mod signatures;
mod simulate;
mod streams;
mod topology;
mod topology_files;
mod trace_store;
mod traceback;
mod winnowing;
