//! Values of options as people write them: numbers and sizes, names of kinds and hashes, entries of metadata.

pub mod meta;
pub mod names;
pub mod number;
