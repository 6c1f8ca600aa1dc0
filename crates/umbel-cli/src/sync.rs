//! Mutexes without poisoning.

pub use umbel::internals::sync::{into_inner as inner, lock};
