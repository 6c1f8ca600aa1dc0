//! Hexadecimal digits.

pub use umbel::internals::hex::{decode, encode};
