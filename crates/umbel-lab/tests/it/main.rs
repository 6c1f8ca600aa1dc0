//! The integration tests of `umbel-lab`, linked into one binary.
//!
//! `cargo test -p umbel-lab --test it promises::` runs the tests of one module.

mod errors;
mod promises;
