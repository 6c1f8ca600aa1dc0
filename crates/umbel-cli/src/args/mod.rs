//! Values of options as people write them: numbers and sizes, names of kinds and hashes, entries of
//! metadata. Also the groups of options in `--help`.

pub mod headings;
pub mod meta;
pub mod names;
pub mod number;
