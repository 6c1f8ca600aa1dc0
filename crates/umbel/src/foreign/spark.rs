//! Spark's `BloomFilterImpl` and `BloomFilterImplV2`, as `BloomFilter.writeTo` writes them.
//!
//! ```text
//!  0   i32  the version, 1 or 2    all numbers are big-endian
//!  4   i32  k
//!  8   i32  the seed               in version 2 only
//!  .   i32  the number of 64-bit words
//!  .   the words
//! ```
//!
//! # References
//!
//! * Apache Software Foundation. *Apache Spark.* Documentation of
//!   `org.apache.spark.util.sketch.BloomFilter`. Spark

use super::Format;
use super::bits::Order;
use super::filter::{Details, One};
use super::guava::java_words;
use super::scattered::{self, MAX_HASHES, Rules, Scattered};
use super::sizing;
use super::source::Source;
use crate::file::FormatError;
use crate::{Design, Error, Result};

/// Recognises both versions by the first bytes of a file.
pub(super) fn recognize(start: &[u8]) -> Option<Format> {
    let (words, _) = start.as_chunks::<4>();
    let number = |i: usize| words.get(i).map(|word| i32::from_be_bytes(*word));
    let (format, longs) = match number(0)? {
        1 => (Format::Spark, number(2)?),
        2 => (Format::Spark2, number(3)?),
        _ => return None,
    };
    let plausible = (1..=MAX_HASHES).contains(&u64::try_from(number(1)?).ok()?) && longs > 0;
    plausible.then_some(format)
}

pub(super) fn read(source: &mut Source<'_>) -> Result<One> {
    let mut number = || source.array().map(i32::from_be_bytes);
    let (version, hashes) = (number()?, number()?);
    let rules = match version {
        1 => Rules::Spark1,
        2 => Rules::Spark2 { seed: number()? as u32 },
        _ => return Err(FormatError::Unknown { what: format!("version {version} of Spark's format") }.into()),
    };
    let bytes = java_words(number()?)?;
    let (_, hashes) = scattered::check(bytes * 8, u64::try_from(hashes).unwrap_or_default())?;
    let set = Scattered::from_parts(bytes * 8, hashes, source.bits(bytes, Order::Big)?);
    Ok(One { rules, set, details: Details::None })
}

/// Makes an empty filter of the size that `BloomFilter.create` chooses.
pub(super) fn create(format: Format, design: Design, seed: u64) -> Result<One> {
    let (bits, hashes) = sizing::java(design)?;
    let rules = match format {
        Format::Spark2 => {
            let needs = "a number of 32 bits, as Spark stores it";
            Rules::Spark2 { seed: u32::try_from(seed).map_err(|_| Error::parameter("seed", seed, needs))? }
        }
        _ => Rules::Spark1,
    };
    Ok(One { rules, set: Scattered::empty(bits, hashes, Order::Big)?, details: Details::None })
}

pub(super) fn header(set: &Scattered, seed: Option<u32>) -> Vec<u8> {
    let words = (set.bits.len() / 8) as u32;
    let numbers = match seed {
        None => vec![1, set.hashes, words],
        Some(seed) => vec![2, set.hashes, seed, words],
    };
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}
