//! The split-block Bloom filter of Parquet: its hash, its bit set, its header and its size.
//!
//! The bit set is an array of blocks of 256 bits, each of eight words of 32 bits. A key sets one bit
//! in each word of one block:
//!
//! ```text
//! hash   |        high half            |          low half           |
//!          times the number of blocks:    times a constant for each word:
//!          the high half of that is       the five highest bits of that
//!          the block                      are the bit in the word
//!
//! block  |..1.....|.....1..|1.......|....1...|......1.|.1......|...1....|.......1|
//! ```
//!
//! ```
//! use umbel::foreign::sbbf::{self, Blocks};
//!
//! let mut filter = Blocks::new(sbbf::blocks_for(1000, 0.01)?)?;
//! filter.insert_hash(sbbf::hash(b"apple"));
//! assert!(filter.contains_hash(sbbf::hash(b"apple")));
//!
//! // As it stands in a Parquet file: the header, and the bit set.
//! let mut bytes = sbbf::write_header(filter.as_bytes().len())?;
//! bytes.extend(filter.as_bytes());
//! let header = sbbf::parse_header(&bytes)?;
//! let again = Blocks::from_bytes(&bytes[header.len..][..header.bytes])?;
//! assert!(again.contains_hash(sbbf::hash(b"apple")) && !again.contains_hash(sbbf::hash(b"pear")));
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # References
//!
//! * Apache Software Foundation. *Apache Parquet: Bloom filter.* Format specification, repository
//!   `apache/parquet-format`. Parquet
//! * F. Putze, P. Sanders and J. Singler. *Cache-, hash- and space-efficient Bloom filters.* ACM
//!   Journal of Experimental Algorithmics 14, 2009. `PSS09`

mod blocks;
mod header;
mod sizing;

pub use blocks::{BLOCK_BYTES, Blocks, block_of};
pub use header::{Header, MAX_HEADER_BYTES, parse_header, write_header};
pub use sizing::{MAX_BLOCKS, blocks_for, rate};

pub(super) use blocks::bit_numbers;

use super::bits::Order;
use super::filter::Body;
use super::source::Source;
use crate::Result;
use crate::file::FormatError;
use xxhash_rust::xxh64::xxh64;

/// Returns the hash of a value: XXH64 with the seed 0 of its plain encoding.
///
/// The plain encoding of a string is its bytes, and that of a number its little-endian bytes.
///
/// ```
/// assert_eq!(umbel::foreign::sbbf::hash(b""), 0xef46_db37_51d8_e999);
/// ```
#[inline(always)]
pub fn hash(bytes: &[u8]) -> u64 {
    xxh64(bytes, 0)
}

/// Reads a header with its bit set, or a bit set alone.
pub(super) fn read(source: &mut Source<'_>) -> Result<Body> {
    let (start, left) = (source.peek::<MAX_HEADER_BYTES>()?, source.left());
    let parsed = parse_header(&start);
    let is_bare =
        parsed.is_err() && !header::is_start(&start) && left > 0 && left.is_multiple_of(BLOCK_BYTES as u64);
    let bytes = if is_bare {
        left
    } else if parsed.is_err() && !header::seems_start(&start) {
        let what =
            format!("without a header, a bit set has a multiple of {BLOCK_BYTES} bytes, and this has {left}");
        return Err(FormatError::invalid(what).into());
    } else {
        let header = parsed?;
        source.read(&mut vec![0; header.len])?;
        header.bytes as u64
    };
    let bits = source.bits(bytes, Order::Little)?;
    Ok(Body::Blocks { blocks: Blocks::from_bits(bits)?, has_header: !is_bare })
}
