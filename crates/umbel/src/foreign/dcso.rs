//! Version 1 of the Bloom filter of DCSO's `bloom`.
//!
//! ```text
//!  0   u64  1, the version         all numbers are little-endian
//!  8   u64  n, the capacity
//! 16   f64  p, the rate
//! 24   u64  k
//! 32   u64  m, the number of bits
//! 40   u64  N, the number of keys that were new when they were added
//! 48   ceil(m / 64) words of bits
//!  .   data of the user, to the end of the file
//! ```
//!
//! The file may be compressed with gzip as a whole.
//!
//! # References
//!
//! * DCSO Deutsche Cyber-Sicherheitsorganisation. *bloom.* Documentation of the file format,
//!   repository `DCSO/bloom`. DCSO

use super::bits::Order;
use super::filter::{Details, One};
use super::scattered::{self, MAX_HASHES, Rules, Scattered};
use super::source::{self, Source};
use crate::file::FormatError;
use crate::file::fields::Fields;
use crate::{Design, Result};
use std::f64::consts::LN_2;

const HEADER_BYTES: usize = 48;

/// The most bytes of user data that are unpacked from gzip, which nothing in the header announces.
const MAX_UNPACKED_DATA: u64 = 1 << 20;
/// The most bytes of user data in a plain file, which may be sparse, so that its length justifies
/// nothing.
const MAX_PLAIN_DATA: u64 = 64 << 20;

/// The numbers of the header, in their order.
struct Header {
    version: u64,
    capacity: u64,
    rate: f64,
    hashes: u64,
    bits: u64,
    count: u64,
}

impl Header {
    fn decode(bytes: &[u8]) -> Option<Header> {
        let mut fields = Fields(bytes);
        let mut next = || fields.u64();
        Some(Header {
            version: next()?,
            capacity: next()?,
            rate: f64::from_bits(next()?),
            hashes: next()?,
            bits: next()?,
            count: next()?,
        })
    }
}

/// Returns whether bytes begin as a file does.
pub(super) fn is_start(start: &[u8]) -> bool {
    let mut unpacked = [0; HEADER_BYTES];
    let start = match source::is_gzip(start) {
        true => {
            let len = source::unpack_start(start, &mut unpacked);
            &unpacked[..len]
        }
        false => start,
    };
    Header::decode(start).is_some_and(|header| {
        // Chunks of RedisBloom may begin with the same version, but their next numbers are too small
        // to be a rate.
        let has_rate = header.rate.is_normal() && header.rate > 0.0 && header.rate < 1.0;
        header.version == 1 && has_rate && header.bits > 0 && (1..=MAX_HASHES).contains(&header.hashes)
    })
}

pub(super) fn read(source: &mut Source<'_>) -> Result<One> {
    let header: [u8; HEADER_BYTES] = source.array()?;
    let header = Header::decode(&header).expect("six numbers of eight bytes");
    if header.version != 1 {
        return Err(
            FormatError::Unknown { what: format!("version {} of the DCSO format", header.version) }.into()
        );
    }
    let (_, hashes) = scattered::check(header.bits, header.hashes)?;
    let bits = source.bits(header.bits.div_ceil(64).saturating_mul(8), Order::Little)?;
    let data = source.rest(MAX_PLAIN_DATA, MAX_UNPACKED_DATA)?;
    let set = Scattered::from_parts(header.bits, hashes, bits);
    let design = Design { capacity: header.capacity, rate: header.rate };
    Ok(One { rules: Rules::Dcso, set, details: Details::Dcso { design, count: header.count, data } })
}

/// Makes an empty filter of the size that `bloom create` chooses.
pub(super) fn create(design: Design) -> Result<One> {
    let bits = super::sizing::ideal_bits(design).floor();
    let hashes = (LN_2 * bits / design.capacity as f64).ceil();
    let set = Scattered::empty(super::sizing::to_bits(bits)?, hashes as u64, Order::Little)?;
    Ok(One { rules: Rules::Dcso, set, details: Details::Dcso { design, count: 0, data: Vec::new() } })
}

pub(super) fn header(set: &Scattered, design: Design, count: u64) -> Vec<u8> {
    let numbers = [1, design.capacity, design.rate.to_bits(), set.hashes.into(), set.modulus.bits(), count];
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn the_memory_of_user_data_is_limited() {
        let header = |data: &[u8]| {
            let design = Design { capacity: 1, rate: 0.5 };
            let set = Scattered::empty(64, 1, Order::Little).unwrap();
            [&super::header(&set, design, 0)[..], &[0; 8], data].concat()
        };
        let read = |bytes: Vec<u8>, more: u64| {
            let (len, more) = (bytes.len() as u64 + more, std::io::repeat(0).take(more));
            super::read(&mut Source::plain(std::io::Cursor::new(bytes).chain(more), len))
        };
        assert!(
            matches!(read(header(b"data"), 0).unwrap().details, Details::Dcso { data, .. } if data == b"data")
        );
        // A sparse file of 8 GiB.
        let error = read(header(b""), 8 << 30).expect_err("too much data");
        assert!(format!("{error:#}").contains("user data"), "{error:#}");
    }
}
