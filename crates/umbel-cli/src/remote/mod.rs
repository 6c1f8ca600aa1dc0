//! Servers that have the module: where a filter is on them, and how to speak to them.

mod address;
mod client;
mod percent;

pub use address::{Address, HELP};
pub use client::{Answer, Client, Command, Interrupted, refused};

/// How much of a filter goes over the line at once.
pub const PIECE: u64 = 4 << 20;
