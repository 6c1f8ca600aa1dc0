//! The Bloom filter of Apache DataSketches.
//!
//! ```text
//!  0   u8   the number of 64-bit words before the bits: 3 if the filter is empty, otherwise 4
//!  1   u8   1, the version         all numbers are little-endian
//!  2   u8   21, the family
//!  3   u8   flags: 4 if the filter is empty
//!  4   u16  k
//!  6   u16  unused
//!  8   u64  the seed
//! 16   i32  the number of 64-bit words of bits
//! 20   u32  unused
//! 24   u64  the number of bits that are set, or 2^64 - 1 if they were not counted
//! 32   the words
//! ```
//!
//! A file of an empty filter ends before the number at 24.
//!
//! # References
//!
//! * Apache Software Foundation. *Apache DataSketches.* Documentation of the package
//!   `filters.bloomfilter`. DataSketches

use super::bits::{Bits, Order};
use super::filter::{Details, One};
use super::guava::java_words;
use super::scattered::{self, Rules, Scattered};
use super::sizing;
use super::source::Source;
use crate::file::FormatError;
use crate::{Design, Error, Result};
use std::f64::consts::LN_2;

const VERSION: u8 = 1;
const FAMILY: u8 = 21;
const EMPTY: u8 = 4;
const NOT_COUNTED: u64 = u64::MAX;

/// The seed that the libraries use if none is given and results are to be comparable.
pub(super) const DEFAULT_SEED: u64 = 9001;

/// Returns whether bytes begin as a file does.
pub(super) fn is_start(start: &[u8]) -> bool {
    matches!(start, [3 | 4, VERSION, FAMILY, flags, ..] if flags & !EMPTY == 0)
}

pub(super) fn read(source: &mut Source<'_>) -> Result<One> {
    let [preamble, version, family, flags, k0, k1, _, _]: [u8; 8] = source.array()?;
    if family != FAMILY {
        let what =
            format!("it is of family {family} of DataSketches, and a Bloom filter is of family {FAMILY}");
        return Err(FormatError::invalid(what).into());
    }
    let unknown = |what| Err(FormatError::Unknown { what }.into());
    if version != VERSION {
        return unknown(format!("version {version} of the Bloom filter of DataSketches"));
    }
    if flags & !EMPTY != 0 {
        return unknown(format!("the flags {flags:#04x} of DataSketches"));
    }
    let is_empty = flags & EMPTY != 0;
    if preamble != if is_empty { 3 } else { 4 } {
        let (filter, needs) = if is_empty { ("an empty", 3) } else { ("a", 4) };
        let what = format!("its preamble has {preamble} words, and that of {filter} filter has {needs}");
        return Err(FormatError::invalid(what).into());
    }
    let seed = u64::from_le_bytes(source.array()?);
    let bytes = java_words(i32::from_le_bytes(source.array()?))?;
    let _unused: [u8; 4] = source.array()?;
    let (_, hashes) = scattered::check(bytes * 8, u16::from_le_bytes([k0, k1]).into())?;
    let (count, bits) = match is_empty {
        true => (0, Bits::zero(usize::try_from(bytes).unwrap_or(usize::MAX), Order::Little)),
        false => (u64::from_le_bytes(source.array()?), source.bits(bytes, Order::Little)?),
    };
    let set = Scattered::from_parts(bytes * 8, hashes, bits);
    Ok(One { rules: Rules::Xx64 { seed }, set, details: Details::DataSketches { count } })
}

/// Checks the count of bits of a file against its bits, all of which it reads.
pub(super) fn check_count(set: &Scattered, count: u64) -> Result<()> {
    let found = set.bits.count_ones();
    if [found, NOT_COUNTED].contains(&count) {
        return Ok(());
    }
    let what = format!("{found} of its bits are set, and {count} should be: copy or build it again");
    Err(FormatError::invalid(what).into())
}

/// Makes an empty filter of the size that the library chooses by accuracy.
pub(super) fn create(design: Design, seed: u64) -> Result<One> {
    let bits = sizing::ideal_bits(design).ceil();
    let hashes = (bits / design.capacity as f64 * LN_2).ceil().max(1.0);
    if hashes > u16::MAX.into() {
        return Err(Error::parameter("p", design.rate, "a rate that takes at most 65535 hash functions"));
    }
    let set = Scattered::empty(sizing::to_java_words(bits)?, hashes as u64, Order::Little)?;
    Ok(One { rules: Rules::Xx64 { seed }, set, details: Details::DataSketches { count: NOT_COUNTED } })
}

/// Returns the header, and whether the bits follow it.
pub(super) fn header(set: &Scattered, seed: u64, count: u64) -> (Vec<u8>, bool) {
    let is_empty = set.bits.count_ones() == 0;
    let (preamble, flags) = if is_empty { (3, EMPTY) } else { (4, 0) };
    let mut header = vec![preamble, VERSION, FAMILY, flags];
    header.extend((set.hashes as u16).to_le_bytes());
    header.extend([0; 2]);
    header.extend(seed.to_le_bytes());
    header.extend(((set.bits.len() / 8) as u64).to_le_bytes());
    if !is_empty {
        header.extend(count.to_le_bytes());
    }
    (header, !is_empty)
}

/// The count of a filter that has changed: the library counts the bits again when they are needed.
pub(super) const CHANGED: u64 = NOT_COUNTED;
