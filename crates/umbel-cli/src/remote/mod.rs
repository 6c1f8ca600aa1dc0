//! Filters on Redis and Valkey servers that have loaded umbel's module: their addresses, and
//! connections to the servers.

mod address;
mod client;
mod error;
mod percent;
mod tls;

pub use address::{Address, HELP};
pub use client::Client;
pub use error::{Interrupted, error_text, refused, was_signalled};
pub use tls::TlsArgs;

/// Number of bytes of a filter that are sent or fetched with one command.
pub const PIECE_BYTES: u64 = 4 << 20;
