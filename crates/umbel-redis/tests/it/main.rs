//! The integration tests of `umbel-redis`, linked into one binary: a module for each promise, and
//! the fixtures they share.
//!
//! `cargo test -p umbel-redis --test it cluster::` runs the tests of one module.

// Fixtures.
mod support;

// Fixtures of other crates.
#[path = "../../../umbel-net/tests/it/debian.rs"]
mod debian;

// Promises.
mod cluster;
mod command_table;
mod commands;
mod faults;
mod hostile;
mod limits;
mod redisbloom;
mod secrets;
mod server;
mod umbel;
