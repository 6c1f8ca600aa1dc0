//! The bytes of a piece.
//!
//! ```text
//!    0   checksum of everything after it
//!    8   fingerprint of the plan
//!   16   insertions that the piece stands for
//!   24   part
//!   28   version, content, two zeros
//!   32   first byte in the range, for bits
//!   40   payload
//! ```
//!
//! All numbers are little-endian. The checksum finds damage, and the fingerprint pieces of another
//! filter; neither is a secret, so [`Merge`](super::Merge) checks the payload, too.

use super::plan::PiecePlan;
use crate::{Error, Result};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The number of bytes before the payload.
pub(super) const HEADER_BYTES: usize = 40;
/// The largest payload: a whole number of lines, and of entries of every size.
pub(super) const MAX_PAYLOAD_BYTES: usize = 128 << 10;
/// The largest piece. Engines put thousands of rows into one message of at most 2 GiB.
pub const MAX_PIECE_BYTES: usize = HEADER_BYTES + MAX_PAYLOAD_BYTES;

const VERSION: u8 = 1;
/// "pieces" as a little-endian number.
const SUM_SEED: u64 = 0x73_65_63_65_69_70;

/// The content of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Numbers of 64 bits: digests for a shard; for a blocked filter, those that choose one line of
    /// a key and the bits in it.
    Numbers,
    /// Positions of bits in the range, of 32 bits each.
    Positions,
    /// Consecutive bytes of the range.
    Bits,
}

impl Content {
    const ALL: [Content; 3] = [Content::Numbers, Content::Positions, Content::Bits];

    /// Returns the number of bytes that the length of a payload is a multiple of.
    fn unit(self) -> usize {
        match self {
            Content::Numbers | Content::Bits => 8,
            Content::Positions => 4,
        }
    }
}

/// A piece whose checksum and fingerprint match.
#[derive(Debug)]
pub(super) struct Piece<'a> {
    pub part: u32,
    pub inserted: u64,
    pub content: Content,
    /// The byte in the range at which bits start; a multiple of 8.
    pub start: u64,
    pub payload: &'a [u8],
}

/// Completes a piece whose payload follows [`HEADER_BYTES`] of any content.
pub(super) fn seal(
    mut bytes: Vec<u8>,
    plan: &PiecePlan,
    part: u32,
    content: Content,
    start: u64,
    inserted: u64,
) -> Vec<u8> {
    let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
    put(8, &plan.fingerprint().to_le_bytes());
    put(16, &inserted.to_le_bytes());
    put(24, &part.to_le_bytes());
    put(28, &[VERSION, content as u8, 0, 0]);
    put(32, &start.to_le_bytes());
    let sum = sum(&bytes);
    bytes[..8].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn sum(bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(&bytes[8..], SUM_SEED)
}

impl Piece<'_> {
    /// Reads a piece, without looking at its payload.
    pub fn parse<'a>(bytes: &'a [u8], plan: &PiecePlan) -> Result<Piece<'a>> {
        let refused = |needs: &str| Err(refused(bytes, needs));
        if bytes.len() < HEADER_BYTES || bytes.len() > MAX_PIECE_BYTES {
            return refused("the bytes of a whole piece");
        }
        let number = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("within the header"));
        if number(0) != sum(bytes) {
            return refused("the bytes that a collector returned, unchanged");
        }
        let [version, content, 0, 0] = bytes[28..32] else { return refused("two zeros in its header") };
        if version != VERSION {
            return refused("the version of umbel that this process has: install one version everywhere");
        }
        if number(8) != plan.fingerprint() {
            return refused("the plan of this filter: it is a piece of another one");
        }
        let Some(content) = Content::ALL.into_iter().find(|known| *known as u8 == content) else {
            return refused("a content that this version knows");
        };
        let payload = &bytes[HEADER_BYTES..];
        if !payload.len().is_multiple_of(content.unit()) || !number(32).is_multiple_of(8) {
            return refused("a whole number of entries");
        }
        let part = number(24) as u32;
        Ok(Piece { part, inserted: number(16), content, start: number(32), payload })
    }

    /// Returns the payload as numbers of 64 bits.
    pub fn numbers(&self) -> impl ExactSizeIterator<Item = u64> + Clone {
        self.payload.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number))
    }

    /// Returns the payload as positions of 32 bits.
    pub fn positions(&self) -> impl ExactSizeIterator<Item = u32> + Clone {
        self.payload.as_chunks().0.iter().map(|position| u32::from_le_bytes(*position))
    }

    /// Returns the error for a payload that the checksum matches but that makes no sense.
    pub fn refused(&self, needs: &str) -> Error {
        Error::parameter("piece", format!("{} bytes for part {}", self.payload.len(), self.part), needs)
    }
}

fn refused(bytes: &[u8], needs: &str) -> Error {
    Error::parameter("piece", format!("{} bytes", bytes.len()), needs)
}
