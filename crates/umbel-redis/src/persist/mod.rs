//! Persistence: how values are written to snapshots, append-only files and clients, and read back.
//!
//! All three use the same stream of bytes, cut into chunks of [`CHUNK_BYTES`]:
//!
//! | bytes | contents |
//! | --- | --- |
//! | 4 | `UMBL` |
//! | 9 | the name of the type |
//! | varints | the number of numbers, and each of them; the number of filters, and the length of each; the length of the extra bytes |
//! | 8 | the checksum of all bytes before it |
//! | | the filters: files of the library, each with its own checksums |
//! | | the extra bytes, and 8 bytes with their checksum; absent if there are none |
//!
//! A stream from a client is stored under its key as it is until it is complete, and decoded only
//! then. So damaged, missing or invalid chunks change nothing.
//!
//! A value whose secret is that of a key file has the tag of the secret in its place.
//!
//! A value in the layout of RedisBloom is written to all three as RedisBloom dumps it: the header of
//! the dump, and pieces of the bytes behind it. A snapshot has a checksum behind each.
//!
//! [`header`] reads and writes the part before the filters, [`stream`] the whole. [`entry`] is the
//! value of a key, complete or not: the bytes that have arrived are [`received`]. [`value`] is the
//! interface of an entry to the server. [`layout`] joins values of both layouts in one type.

mod entry;
mod header;
mod layout;
mod received;
mod stream;
mod value;

pub use entry::Entry;
pub use layout::Layout;
pub use stream::{CHUNK_BYTES, Stream, cursor, words_from_bytes, words_to_bytes};

use crate::error::{Error, Result};
use crate::server::TypeHandle;
use std::ffi::CStr;
use std::io::Read;
use umbel::any::Stored;
use umbel::file::Storable;
use umbel::foreign::Dump;
use umbel::hash::HashId;
use umbel::memory::{Mover, Words};

/// A value that consists of numbers, filters and extra bytes, and can be rebuilt from them.
pub trait Persist: Sized + Send + 'static {
    /// The name of the type: nine letters, digits, `-` or `_`.
    const NAME: &'static CStr;

    /// The command that loads a chunk of the stream.
    const LOAD_COMMAND: &'static CStr;

    /// Returns the storage for the server's handle of the type.
    fn type_handle() -> &'static TypeHandle;

    /// Returns the identity of the hash function, if the value has one.
    fn hash_id(&self) -> Option<HashId>;

    /// Returns the numbers.
    fn numbers(&self) -> Vec<u64>;

    /// Returns the filters.
    fn filters(&self) -> Vec<&dyn Storable> {
        Vec::new()
    }

    /// Returns the memory of the filters and of the extra bytes, for the debug digest.
    fn sections(&self) -> Vec<&Words>;

    /// Returns the bytes that belong to neither a number nor a filter.
    fn extra(&self) -> umbel::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    /// Rebuilds a value from its parts.
    ///
    /// # Errors
    ///
    /// If the parts do not fit together, a secret is missing, or the value is too large.
    fn restore(numbers: &[u64], filters: Vec<Stored>, extra: &[u8]) -> Result<Self>;

    /// Checks the header of a dump of RedisBloom, and returns the number of bytes behind it.
    ///
    /// # Errors
    ///
    /// If it is not valid, or RedisBloom has no dumps that become values of this type.
    fn redisbloom_bytes(_header: &[u8]) -> Result<u64> {
        Err(Error::BAD_HEADER)
    }

    /// Rebuilds a value from a dump of RedisBloom: its header, and the bytes behind it.
    ///
    /// # Errors
    ///
    /// If they do not fit together, or there is not enough memory.
    fn restore_redisbloom(_header: &[u8], _data: &mut dyn Read) -> Result<Self> {
        Err(Error::BAD_HEADER)
    }

    /// Returns the value as RedisBloom dumps it, if it has that layout.
    fn redisbloom(&self) -> Option<&dyn Dump> {
        None
    }

    /// Returns the size of the value in memory.
    fn memory_bytes(&self) -> usize;

    /// Returns a copy of the value, if there is enough memory.
    fn copy(&self) -> umbel::Result<Self>;

    /// Lets the server move the memory of the value.
    fn relocate(&mut self, mover: &mut dyn Mover);
}
