//! The integration tests of `umbel`, linked into one binary: one module per promise, and the
//! fixtures they share.
//!
//! `cargo test -p umbel --test it aging::` runs the tests of one module.

// Fixtures.
mod common;
mod second_reader;

// Promises.
mod aging;
mod algebra;
mod bad_parameters;
mod bloomier;
mod counting;
mod cuckoo;
mod damage;
mod deletable;
mod description;
mod description_sketch;
mod description_static;
mod double_hashing;
mod errors;
mod estimates;
mod floom;
#[cfg(feature = "foreign")]
mod foreign;
mod format;
mod fuse;
mod keys;
mod kinds;
mod large;
mod levels;
mod literature;
mod no_false_negatives;
mod pieces;
mod private_counts;
mod probe_floor;
mod quotient;
mod rates;
mod relocation;
mod scalable;
mod sharded;
mod sketch;
mod sketch_accuracy;
mod space_code;
mod variable_increment;
mod worked_examples;
