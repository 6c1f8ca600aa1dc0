//! The header of a stream: the sizes of everything behind it.

use super::Persist;
use umbel::file::fields::{Fields, put_varint, sum};

const MAGIC: [u8; 4] = *b"UMBL";

/// The largest size of a header. The first chunk contains all of it.
pub const MAX_HEADER_BYTES: usize = 1 << 16;

/// A parsed header.
pub struct StreamHeader {
    /// The length of the header itself.
    pub len: usize,
    pub numbers: Vec<u64>,
    pub filter_lengths: Vec<u64>,
    /// The length of the extra bytes with their checksum.
    pub extra_length: u64,
}

impl StreamHeader {
    /// Returns the bytes of a header.
    pub fn encode<P: Persist>(numbers: &[u64], filter_lengths: &[u64], extra_length: u64) -> Vec<u8> {
        let mut header = MAGIC.to_vec();
        header.extend(P::NAME.to_bytes());
        for list in [numbers, filter_lengths] {
            put_varint(&mut header, list.len() as u64);
            list.iter().for_each(|number| put_varint(&mut header, *number));
        }
        put_varint(&mut header, extra_length);
        let checksum = sum(&header);
        header.extend(checksum.to_le_bytes());
        header
    }

    /// Parses the header at the start of a stream.
    pub fn parse<P: Persist>(bytes: &[u8]) -> Option<StreamHeader> {
        let bytes = &bytes[..bytes.len().min(MAX_HEADER_BYTES)];
        let mut fields = Fields(bytes);
        if fields.array()? != MAGIC || fields.bytes(P::NAME.count_bytes() as u64)? != P::NAME.to_bytes() {
            return None;
        }
        let mut list = || (0..fields.varint()?).map(|_| fields.varint()).collect::<Option<Vec<u64>>>();
        let (numbers, filter_lengths) = (list()?, list()?);
        let extra_length = fields.varint()?;
        let summed = &bytes[..bytes.len() - fields.0.len()];
        let is_intact = fields.u64()? == sum(summed);
        let header = StreamHeader { len: summed.len() + 8, numbers, filter_lengths, extra_length };
        (is_intact && header.stream_length().is_some()).then_some(header)
    }

    /// Returns the length of the stream, or `None` if it overflows.
    pub fn stream_length(&self) -> Option<u64> {
        let mut parts = self.filter_lengths.iter().chain([&self.extra_length]);
        parts.try_fold(self.len as u64, |total, part| total.checked_add(*part))
    }
}
