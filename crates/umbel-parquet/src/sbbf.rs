//! Split-block Bloom filters: the header before the blocks, and the test of one block.
//!
//! A filter is a number of blocks of 256 bits. The high half of a hash selects the block, and the low
//! half one bit in each of its eight words of 32 bits.
//!
//! # References
//!
//! - Parquet Bloom filters, <https://github.com/apache/parquet-format/blob/master/BloomFilter.md>.

use crate::thrift::{Cursor, Wire};

/// The length of a block.
pub const BLOCK_BYTES: u64 = 32;

/// The odd factors that spread the low half of a hash over the words of a block.
const SALT: [u32; 8] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// A block of a filter, as it is stored.
pub type Block = [u8; BLOCK_BYTES as usize];

/// Returns the hash of a value.
pub fn hash(value: &[u8]) -> u64 {
    xxhash_rust::xxh64::xxh64(value, 0)
}

/// Returns the block of a hash in a filter with this number of blocks.
pub fn block_of(hash: u64, blocks: u64) -> u64 {
    ((hash >> 32) * blocks) >> 32
}

/// Returns whether the eight bits of a hash are set in its block.
pub fn contains(block: &Block, hash: u64) -> bool {
    words(block).zip(SALT).all(|(word, salt)| word >> ((hash as u32).wrapping_mul(salt) >> 27) & 1 == 1)
}

/// Returns the words of a block.
pub fn words(block: &Block) -> impl Iterator<Item = u32> {
    block.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
}

/// The longest header that is read. A header of a writer has 16 to 20 bytes.
pub const MAX_HEADER_BYTES: u64 = 64;

/// Parses the header at the start of these bytes. Returns its length and that of the blocks.
pub fn parse_header(bytes: &[u8]) -> Result<(u64, u64), String> {
    let mut cursor = Cursor(bytes);
    let (mut length, mut unions, mut before) = (None, 0_u8, 0);
    while let Some((number, wire)) = cursor.field(before)? {
        match (number, wire) {
            (1, Wire::I32) => length = Some(cursor.signed()?),
            // The algorithm, the hash and the compression: unions, whose first variant is an empty struct.
            (2..=4, Wire::Struct) => {
                let first = cursor.field(0)?;
                if first != Some((1, Wire::Struct)) || cursor.bytes(2)? != [0, 0] {
                    return Err("it uses an algorithm, a hash or a compression that is not known".to_string());
                }
                unions |= 1 << number;
            }
            _ => return Err("its header has an unknown field".to_string()),
        }
        before = number;
    }
    let length = length.filter(|_| unions == 0b1_1100).ok_or("its header is incomplete")?;
    match u64::try_from(length) {
        Ok(length) if length > 0 && length % BLOCK_BYTES == 0 => {
            Ok(((bytes.len() - cursor.0.len()) as u64, length))
        }
        _ => Err(format!("it has {length} bytes, and not a multiple of {BLOCK_BYTES}")),
    }
}
