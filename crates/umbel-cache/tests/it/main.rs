//! The integration tests of `umbel-cache`, linked into one binary: a module for each promise, and
//! the fixtures they share.
//!
//! `cargo test -p umbel-cache --test it proxy::` runs the tests of one module.

// Fixtures.
mod client;
mod origin;
mod running;

// Fixtures of other crates.
#[path = "../../../umbel-net/tests/it/debian.rs"]
mod debian;

// Promises.
mod proxy;
mod rules;
mod squid;
mod squid_sibling;
mod store;
mod summary;
