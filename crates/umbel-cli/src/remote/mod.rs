//! Filters on Redis and Valkey servers that have loaded umbel's module: their addresses, and
//! connections to the servers.
//!
//! A server may be hostile, or not the one it seems to be: its responses have bounded sizes and
//! times, its text is never printed unchecked, and no other host gets the password unless it was
//! named.

mod address;
mod client;
mod connection;
mod endpoint;
mod error;
pub mod percent;
mod process_list;
mod record;
mod redirect;
mod response;
mod server;
mod sharded_filter;
mod socket;
mod tls;
mod unfinished;

pub use address::{Address, HELP};
pub use client::Client;
pub use endpoint::ConnectionArgs;
pub use error::{Interrupted, refused};
pub use process_list::hide_password;
pub use record::Record;
pub use response::{Command, Value, command};
pub use sharded_filter::{NotCreated, ShardedFilter, check_name, server_of};
pub use unfinished::Unfinished;

/// Number of bytes of a filter that are sent or fetched with one command.
pub const PIECE_BYTES: u64 = 4 << 20;
