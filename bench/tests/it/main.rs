//! The integration tests of the benchmark, linked into one binary: a module for each promise.

mod readme;
