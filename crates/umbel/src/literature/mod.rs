//! The hash families of the literature.
pub mod murmur;
