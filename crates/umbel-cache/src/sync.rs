//! Locks without poisoning.

pub use umbel::internals::sync::{lock, read, write};
