//! Guava's `BloomFilter.writeTo`.
//!
//! ```text
//!  0   u8   the strategy: 0 is MURMUR128_MITZ_32, 1 is MURMUR128_MITZ_64
//!  1   u8   k
//!  2   i32  the number of 64-bit words, big-endian
//!  6   the words, big-endian
//! ```
//!
//! # References
//!
//! * Google. *Guava: Google Core Libraries for Java.* Documentation of `BloomFilter`. Guava

use super::bits::Order;
use super::filter::{Details, One};
use super::scattered::{self, Rules, Scattered};
use super::sizing;
use super::source::Source;
use crate::file::FormatError;
use crate::{Design, Error, Result};

pub(super) fn read(source: &mut Source<'_>) -> Result<One> {
    let [strategy, hashes, longs @ ..]: [u8; 6] = source.array()?;
    let rules = match strategy {
        0 => Rules::Mitz32,
        1 => Rules::Mitz64,
        _ => return Err(FormatError::Unknown { what: format!("strategy {strategy} of Guava") }.into()),
    };
    let bytes = java_words(i32::from_be_bytes(longs))?;
    let (_, hashes) = scattered::check(bytes * 8, hashes.into())?;
    let set = Scattered::from_parts(bytes * 8, hashes, source.bits(bytes, Order::Big)?);
    Ok(One { rules, set, details: Details::None })
}

/// Returns the number of bytes of an array of 64-bit words, whose length a Java program wrote.
pub(super) fn java_words(longs: i32) -> Result<u64> {
    match u64::try_from(longs) {
        Ok(longs) if longs > 0 => Ok(longs * 8),
        _ => {
            let what = format!("its bit set has {longs} words, where 1 to 2147483647 make sense");
            Err(FormatError::invalid(what).into())
        }
    }
}

/// Makes an empty filter of the size that `BloomFilter.create` chooses.
pub(super) fn create(design: Design) -> Result<One> {
    let (bits, hashes) = sizing::java(design)?;
    if hashes > u8::MAX.into() {
        return Err(Error::parameter("p", design.rate, "a rate that takes at most 255 hash functions"));
    }
    let set = Scattered::empty(bits, hashes, Order::Big)?;
    Ok(One { rules: Rules::Mitz64, set, details: Details::None })
}

pub(super) fn header(set: &Scattered, strategy: u8) -> Vec<u8> {
    let mut header = vec![strategy, set.hashes as u8];
    header.extend(((set.bits.len() / 8) as u32).to_be_bytes());
    header
}
