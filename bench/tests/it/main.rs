//! The integration tests of the benchmark, linked into one binary.

mod readme;
