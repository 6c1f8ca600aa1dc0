//! The chunks of RedisBloom, as `BF.SCANDUMP` returns them and `BF.LOADCHUNK` takes them.
//!
//! A file is a sequence of records, one for each reply, in order:
//!
//! ```text
//!  0   i64  the iterator           all numbers are little-endian
//!  8   u64  the number of bytes of the chunk
//! 16   the chunk
//! ```
//!
//! The first chunk is the header of the chain, and the others, put together, are the bits of its
//! links, one after the other. A last record with the iterator 0 and no bytes may follow.
//!
//! ```text
//!  0   u64  the number of keys          20   for each link, 53 bytes:
//!  8   u32  the number of links              u64  the number of bytes of its bits
//! 12   u32  options: 1 exact sizes,          u64  m, the number of bits
//!           4 hashes of 64 bits,             u64  the number of keys in it
//!           8 the chain does not grow        f64  its rate
//! 16   u32  the growth                       f64  bits per key
//!                                            u32  k
//!                                            u64  its capacity
//!                                            u8   log2 m if m is a power of two, or 0
//! ```
//!
//! # References
//!
//! * Redis. *RedisBloom.* Documentation of `BF.SCANDUMP`, `BF.LOADCHUNK` and `BF.RESERVE`.
//!   RedisBloom

use super::bits::{Bits, Order};
use super::scattered::{self, Rules, Scattered};
use super::sizing;
use super::source::Source;
use crate::file::FormatError;
use crate::file::fields::Fields;
use crate::{Answers, Batch, Design, Error, Result};
use std::io::{self, Write};

const HEADER_BYTES: usize = 20;
const LINK_BYTES: usize = 53;
const RECORD_BYTES: u64 = 16;
/// The most bytes of bits in a chunk.
const CHUNK_BYTES: usize = 16 << 20;

const EXACT_SIZES: u32 = 1;
const HASHES_OF_64_BITS: u32 = 4;
const NO_GROWTH: u32 = 8;

/// The factor by which each further link is larger, if nothing else is set.
const DEFAULT_GROWTH: u32 = 2;
/// The factor by which the rate of each further link is lower.
const TIGHTENING: f64 = 0.5;

const RULES: Rules = Rules::Murmur64;

/// A chain of filters. A key is a member if one of them contains it.
#[derive(Debug)]
pub(super) struct Chain {
    pub links: Vec<Link>,
    /// The number of keys.
    pub keys: u64,
    options: u32,
    growth: u32,
}

#[derive(Debug)]
pub(super) struct Link {
    pub set: Scattered,
    pub keys: u64,
    pub design: Design,
    bits_per_key: f64,
    log2_bits: u8,
}

impl Link {
    /// Makes an empty link of the size that RedisBloom chooses.
    fn create(design: Design) -> Result<Link> {
        // Its own constants for ln 2 and its square, which are not the nearest ones.
        #[expect(clippy::approx_constant)]
        const LN_2: f64 = 0.693147180559945;
        const LN_2_SQUARED: f64 = 0.480453013918201;
        sizing::check(design)?;
        let bits_per_key = -design.rate.ln() / LN_2_SQUARED;
        let bits = sizing::to_bits((design.capacity as f64 * bits_per_key).floor().max(1.0))?;
        let hashes = (LN_2 * bits_per_key).ceil() as u64;
        let set = Scattered::empty(bits.div_ceil(64) * 64, hashes, Order::Little)?;
        Ok(Link { set, keys: 0, design, bits_per_key, log2_bits: 0 })
    }

    fn decode(fields: &mut Fields<'_>) -> Result<Link> {
        let mut number = || fields.u64().unwrap_or_default();
        let (bytes, bits, keys) = (number(), number(), number());
        let (rate, bits_per_key) = (f64::from_bits(number()), f64::from_bits(number()));
        let hashes = fields.u32().unwrap_or_default();
        let capacity = fields.u64().unwrap_or_default();
        let [log2_bits] = fields.array().unwrap_or_default();
        let (_, hashes) = scattered::check(bits, hashes.into())?;
        if bits.div_ceil(8) > bytes {
            let what = format!("a link has {bits} bits in {bytes} bytes");
            return Err(FormatError::invalid(what).into());
        }
        if log2_bits != 0 && 1u64.checked_shl(log2_bits.into()) != Some(bits) {
            let what = format!("a link has {bits} bits, which are not 2^{log2_bits}");
            return Err(FormatError::invalid(what).into());
        }
        let len = usize::try_from(bytes).map_err(|_| Error::OutOfMemory { bytes })?;
        let set = Scattered::from_parts(bits, hashes, Bits::zero(len, Order::Little));
        Ok(Link { set, keys, design: Design { capacity, rate }, bits_per_key, log2_bits })
    }

    fn encode(&self, header: &mut Vec<u8>) {
        let bytes = self.set.bits.len() as u64;
        [bytes, self.set.modulus.bits(), self.keys].iter().for_each(|n| header.extend(n.to_le_bytes()));
        [self.design.rate, self.bits_per_key].iter().for_each(|x| header.extend(x.to_le_bytes()));
        header.extend(self.set.hashes.to_le_bytes());
        header.extend(self.design.capacity.to_le_bytes());
        header.push(self.log2_bits);
    }
}

impl Chain {
    pub fn read(source: &mut Source<'_>) -> Result<Chain> {
        let mut records = Records { source, left: 0, iterator: i64::MIN };
        let len = records.next()?.unwrap_or_default();
        let (mut header, links) =
            ([0; HEADER_BYTES], len.saturating_sub(HEADER_BYTES as u64) / LINK_BYTES as u64);
        records.source.expect(len)?;
        records.read(&mut header)?;
        let mut fields = Fields(&header);
        let keys = fields.u64().unwrap_or_default();
        let mut number = || fields.u32().unwrap_or_default();
        let (count, options, growth) = (number(), number(), number());
        if count == 0 || u64::from(count) != links || len != HEADER_BYTES as u64 + links * LINK_BYTES as u64 {
            let what = format!("its header of {len} bytes is not that of a chain of {count} links");
            return Err(FormatError::invalid(what).into());
        }
        if options & HASHES_OF_64_BITS == 0 {
            let what = "the 32-bit hashes of RedisBloom before version 2".to_string();
            return Err(FormatError::Unknown { what }.into());
        }
        let mut chain = Chain { links: Vec::new(), keys, options, growth };
        let mut total = 0u64;
        for _ in 0..count {
            let mut link = [0; LINK_BYTES];
            records.read(&mut link)?;
            let link = Link::decode(&mut Fields(&link))?;
            total = total.saturating_add(link.set.bits.len() as u64);
            chain.links.push(link);
        }
        // No memory is taken before all of the bits are known to be there.
        records.source.expect(total)?;
        for link in &mut chain.links {
            records.read(link.set.bits.bytes_mut()?)?;
        }
        records.finish()?;
        Ok(chain)
    }

    /// Makes an empty chain as `BF.RESERVE` does.
    pub fn create(design: Design, growing: bool) -> Result<Chain> {
        sizing::check(design)?;
        let rate = if growing { design.rate * TIGHTENING } else { design.rate };
        let link = Link::create(Design { rate, ..design })?;
        let (options, growth) = if growing { (0, DEFAULT_GROWTH) } else { (NO_GROWTH, 0) };
        Ok(Chain { links: vec![link], keys: 0, options: options | EXACT_SIZES | HASHES_OF_64_BITS, growth })
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        self.links.iter().any(|link| link.set.contains(RULES, key))
    }

    /// Adds a key if it is new; a full chain grows first.
    pub fn insert(&mut self, key: &[u8]) -> Result<bool> {
        if self.contains(key) {
            return Ok(false);
        }
        let last = self.links.last().ok_or_else(|| FormatError::invalid("a chain without links"))?;
        if last.keys >= last.design.capacity {
            if self.options & NO_GROWTH != 0 {
                let needs = "more capacity: the chain is full, and was made not to grow";
                return Err(Error::parameter("n", self.keys, needs));
            }
            let capacity = last.design.capacity.saturating_mul(self.growth.max(1).into());
            let rate = last.design.rate * TIGHTENING;
            self.links.push(Link::create(Design { capacity, rate })?);
        }
        if let Some(last) = self.links.last_mut() {
            last.set.insert(RULES, key)?;
            last.keys += 1;
        }
        self.keys += 1;
        Ok(true)
    }

    pub fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        let mut links = self.links.iter().map(|link| link.set.contains_batch(RULES, keys));
        let first = links.next().unwrap_or_default();
        links.fold(first, |mut all, link| {
            all.unite(&link);
            all
        })
    }

    /// Returns the bits of a key in each link.
    pub fn bit_numbers(&self, key: &[u8]) -> impl Iterator<Item = (&Link, Vec<u64>)> {
        self.links.iter().map(|link| (link, link.set.bit_numbers(RULES, key)))
    }

    /// Returns the rate now: of a key that is in none of the links to be found in one.
    pub fn rate_now(&self) -> f64 {
        let passes = |link: &Link| link.set.fill().powi(link.set.hashes as i32);
        -self.links.iter().map(|link| (-passes(link)).ln_1p()).sum::<f64>().exp_m1()
    }

    /// Returns the capacity and the rate for which it was reserved.
    pub fn design(&self) -> Option<Design> {
        let first = self.links.first()?.design;
        let tightened = self.options & NO_GROWTH == 0;
        Some(if tightened { Design { rate: first.rate / TIGHTENING, ..first } } else { first })
    }

    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut header = self.keys.to_le_bytes().to_vec();
        let numbers = [self.links.len() as u32, self.options, self.growth];
        numbers.iter().for_each(|number| header.extend(number.to_le_bytes()));
        self.links.iter().for_each(|link| link.encode(&mut header));
        let mut iterator = 1u64;
        let mut record = |iterator: u64, chunk: &[u8]| {
            to.write_all(&iterator.to_le_bytes())?;
            to.write_all(&(chunk.len() as u64).to_le_bytes())?;
            to.write_all(chunk)
        };
        record(iterator, &header)?;
        for link in &self.links {
            let zeros = vec![0; if link.set.bits.bytes().is_none() { link.set.bits.len() } else { 0 }];
            for chunk in link.set.bits.bytes().unwrap_or(&zeros).chunks(CHUNK_BYTES) {
                iterator += chunk.len() as u64;
                record(iterator, chunk)?;
            }
        }
        Ok(())
    }
}

/// The records of a file.
struct Records<'s, 'a> {
    source: &'s mut Source<'a>,
    /// The number of bytes that are left of this chunk.
    left: u64,
    iterator: i64,
}

impl Records<'_, '_> {
    /// Reads the head of the next record and returns the length of its chunk; `None` at the end.
    fn next(&mut self) -> Result<Option<u64>> {
        if self.source.is_at_end()? {
            return Ok(None);
        }
        self.source.expect(RECORD_BYTES)?;
        let iterator = i64::from_le_bytes(self.source.array()?);
        self.left = u64::from_le_bytes(self.source.array()?);
        if iterator == 0 && self.left == 0 {
            return Ok(None);
        }
        if iterator <= self.iterator {
            let what =
                format!("the chunk with the iterator {iterator} stands after that with {}", self.iterator);
            return Err(FormatError::invalid(what).into());
        }
        self.iterator = iterator;
        self.source.expect(self.left)?;
        Ok(Some(self.left))
    }

    /// Fills a buffer from this chunk and those after it.
    fn read(&mut self, mut to: &mut [u8]) -> Result<()> {
        while !to.is_empty() {
            if self.left == 0 {
                if self.next()?.is_none() {
                    return Err(FormatError::invalid("chunks are missing at its end: dump it again").into());
                }
                continue;
            }
            let len = usize::try_from(self.left).unwrap_or(usize::MAX).min(to.len());
            let (now, rest) = to.split_at_mut(len);
            self.source.read(now)?;
            self.left -= len as u64;
            to = rest;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        if self.left > 0 || self.next()?.is_some() {
            return Err(FormatError::invalid("it has more chunks than its header announces").into());
        }
        Ok(())
    }
}
