//! The chunks of RedisBloom, as `BF.SCANDUMP` returns them and `BF.LOADCHUNK` takes them.
//!
//! [`ForeignFilter`](super::ForeignFilter) reads them from a file, and [`Dump`] from a client of a
//! server. A file is a sequence of records, one for each reply, in order:
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
//! The first link has half the rate of the chain, unless the chain does not grow. A key is added to
//! the last link if no link contains it. A link is full at its capacity, and then a further one
//! follows, with `growth` times its capacity and half its rate. At `b` bits per key, it has
//! `capacity b` bits, rounded down, and then up to words of 64 bits. Without the option of exact
//! sizes it has the next power of two instead, and its capacity is increased by one for each `b` bits
//! more.
//!
//! # References
//!
//! * Redis. *RedisBloom.* Documentation of `BF.SCANDUMP`, `BF.LOADCHUNK` and `BF.RESERVE`.
//!   RedisBloom

use super::bits::{Bits, Order};
use super::scandump::{self, Dump};
use super::scattered::{self, Rules, Scattered};
use super::sizing;
use super::source::Source;
use crate::file::FormatError;
use crate::file::fields::Fields;
use crate::memory::{Mover, Words, relocate_vec};
use crate::{Answers, Batch, Design, Error, Result};
use std::io::{self, Read, Write};

const COUNTS_BYTES: usize = 20;
const LINK_BYTES: usize = 53;
const RECORD_BYTES: u64 = 16;

const EXACT_SIZES: u32 = 1;
const CAPACITIES_IN_BITS: u32 = 2;
const HASHES_OF_64_BITS: u32 = 4;
const NO_GROWTH: u32 = 8;

/// The factor by which each further link is larger, if nothing else is set.
const DEFAULT_GROWTH: u32 = 2;
/// The factor by which the rate of each further link is lower.
const TIGHTENING: f64 = 0.5;

/// The most links of a chain. The rate of a further one would be 0 as a `double`.
const MAX_LINKS: u32 = 1075;

const RULES: Rules = Rules::Murmur64;

/// The Bloom filter of RedisBloom: a chain of links, which grows as it would there. A key is a member
/// if one of the links contains it. With equal commands, both have equal bytes.
///
/// It is loaded with [`Dump::load`].
///
/// ```
/// use umbel::foreign::{Dump, RedisBloomChain};
/// # let header: &[u8] = &[
/// #     1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0,
/// #     8, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
/// #     154, 153, 153, 153, 153, 153, 169, 63, 155, 232, 213, 74, 241, 240, 24, 64,
/// #     5, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0,
/// # ];
/// # let data: &[u8] = &[0; 8];
/// // Two chunks of a `BF.SCANDUMP`.
/// let mut chain = RedisBloomChain::load(header, data)?;
/// assert!(chain.insert(b"apple")? && chain.contains(b"apple"));
/// assert_eq!((chain.keys(), chain.links().count()), (2, 1));
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Debug)]
pub struct Chain {
    pub(super) links: Vec<Link>,
    /// The number of keys.
    pub(super) keys: u64,
    options: u32,
    growth: u32,
}

/// What the header of a chain tells about a link.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LinkFacts {
    /// The number of bytes of its bits.
    pub bytes: u64,
    /// The number of bits (m).
    pub bits: u64,
    /// The number of bits per key (k).
    pub hashes: u32,
    /// The number of keys at which it is full.
    pub capacity: u64,
    /// The number of keys in it.
    pub keys: u64,
    /// The rate at its capacity.
    pub rate: f64,
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
    fn create(design: Design, exact: bool) -> Result<Link> {
        // Its own constants for ln 2 and its square, which are not the nearest ones.
        #[expect(clippy::approx_constant)]
        const LN_2: f64 = 0.693147180559945;
        const LN_2_SQUARED: f64 = 0.480453013918201;
        sizing::check(design)?;
        let Design { mut capacity, rate } = design;
        let bits_per_key = -rate.ln() / LN_2_SQUARED;
        let hashes = (LN_2 * bits_per_key).ceil() as u64;
        let wanted = capacity as f64 * bits_per_key;
        let (set, log2_bits) = if exact {
            let bits = sizing::to_bits(wanted.floor().max(1.0))?;
            (Scattered::empty(bits.div_ceil(64) * 64, hashes, Order::Little)?, 0)
        } else {
            let bits = sizing::to_bits(wanted.floor() + 1.0)?.next_power_of_two().max(64);
            capacity += ((bits as f64 - wanted.ceil()) / bits_per_key) as u64;
            let (_, hashes) = scattered::check(bits, hashes)?;
            let set = Scattered::from_parts(bits, hashes, Bits::zero(bits as usize / 8, Order::Little));
            (set, bits.ilog2() as u8)
        };
        Ok(Link { set, keys: 0, design: Design { capacity, rate }, bits_per_key, log2_bits })
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
    pub(super) fn read(source: &mut Source<'_>) -> Result<Chain> {
        let mut records = Records { source, left: 0, iterator: i64::MIN };
        let len = records.next()?.unwrap_or_default();
        records.source.expect(len)?;
        let mut header = vec![0; len as usize];
        records.read(&mut header)?;
        let mut chain = Chain::parse(&header)?;
        // No memory is taken before all of the bits are known to be there.
        records.source.expect(chain.bytes())?;
        for link in &mut chain.links {
            records.read(link.set.bits.bytes_mut()?)?;
        }
        records.finish()?;
        Ok(chain)
    }

    /// Parses a header. The bits of the links are zeros that take no memory yet.
    fn parse(header: &[u8]) -> Result<Chain> {
        let mut fields = Fields(header);
        let keys = fields.u64().unwrap_or_default();
        let [count, options, growth] = [(); 3].map(|()| fields.u32().unwrap_or_default());
        let links = fields.0.chunks_exact(LINK_BYTES);
        if count == 0 || links.len() as u64 != u64::from(count) || !links.remainder().is_empty() {
            let what =
                format!("its header of {} bytes is not that of a chain of {count} links", header.len());
            return Err(FormatError::invalid(what).into());
        }
        if count > MAX_LINKS {
            let what = format!("it has {count} links, and RedisBloom makes at most {MAX_LINKS}");
            return Err(FormatError::invalid(what).into());
        }
        if options & HASHES_OF_64_BITS == 0 {
            let what = "the 32-bit hashes of RedisBloom before version 2".to_string();
            return Err(FormatError::Unknown { what }.into());
        }
        let links = links.map(|link| Link::decode(&mut Fields(link))).collect::<Result<Vec<Link>>>()?;
        Ok(Chain { links, keys, options, growth })
    }

    /// Returns the number of bytes of all bits.
    fn bytes(&self) -> u64 {
        self.links.iter().fold(0, |sum, link| sum.saturating_add(link.set.bits.len() as u64))
    }

    /// Makes an empty chain as `BF.RESERVE` does.
    pub(super) fn create(design: Design, growing: bool) -> Result<Chain> {
        sizing::check(design)?;
        let rate = if growing { design.rate * TIGHTENING } else { design.rate };
        let link = Link::create(Design { rate, ..design }, true)?;
        let options = EXACT_SIZES | HASHES_OF_64_BITS | if growing { 0 } else { NO_GROWTH };
        Ok(Chain { links: vec![link], keys: 0, options, growth: DEFAULT_GROWTH })
    }

    /// Returns whether a key may be a member.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.links.iter().any(|link| link.set.contains(RULES, key))
    }

    /// Adds a key if it is new, and returns whether it was. A full chain grows first.
    ///
    /// # Errors
    ///
    /// If the chain is full and cannot grow, or there is not enough memory. It is unchanged then.
    pub fn insert(&mut self, key: &[u8]) -> Result<bool> {
        if self.contains(key) {
            return Ok(false);
        }
        if self.is_full() {
            let needs = "more capacity: the chain is full, and was made not to grow";
            return Err(Error::parameter("n", self.keys, needs));
        }
        if let Some(Design { capacity, rate }) = self.next_design() {
            if self.options & CAPACITIES_IN_BITS != 0 {
                let what = "a chain that counts its capacity in bits, and is full".to_string();
                return Err(FormatError::Unknown { what }.into());
            }
            let mut link = Link::create(Design { capacity, rate }, self.options & EXACT_SIZES != 0)?;
            link.set.bits.bytes_mut()?;
            self.links.push(link);
        }
        if let Some(last) = self.links.last_mut() {
            last.set.insert(RULES, key)?;
            last.keys = last.keys.saturating_add(1);
        }
        self.keys = self.keys.saturating_add(1);
        Ok(true)
    }

    /// Returns the capacity and the rate of the link that has to follow, if the last one is full.
    fn next_design(&self) -> Option<Design> {
        let Link { design, .. } = self.links.last().filter(|last| last.keys >= last.design.capacity)?;
        let capacity = design.capacity.saturating_mul(self.growth.max(1).into());
        Some(Design { capacity, rate: design.rate * TIGHTENING })
    }

    /// Returns whether the chain takes no further key, since it was reserved not to grow.
    pub fn is_full(&self) -> bool {
        self.growth() == 0 && self.next_design().is_some()
    }

    /// Returns the number of keys.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Returns the factor from the capacity of one link to the next; 0 if the chain does not grow.
    pub fn growth(&self) -> u32 {
        if self.options & NO_GROWTH == 0 { self.growth.max(1) } else { 0 }
    }

    /// Returns what the header tells about each link.
    pub fn links(&self) -> impl Iterator<Item = LinkFacts> {
        self.links.iter().map(|link| LinkFacts {
            bytes: link.set.bits.len() as u64,
            bits: link.set.modulus.bits(),
            hashes: link.set.hashes,
            capacity: link.design.capacity,
            keys: link.keys,
            rate: link.design.rate,
        })
    }

    /// Looks up many keys; the fast way.
    pub fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        let mut links = self.links.iter().map(|link| link.set.contains_batch(RULES, keys));
        let first = links.next().unwrap_or_default();
        links.fold(first, |mut all, link| {
            all.unite(&link);
            all
        })
    }

    /// Returns the bits of a key in each link.
    pub(super) fn bit_numbers(&self, key: &[u8]) -> impl Iterator<Item = (&Link, Vec<u64>)> {
        self.links.iter().map(|link| (link, link.set.bit_numbers(RULES, key)))
    }

    /// Returns the rate now: of a key that is in none of the links to be found in one.
    pub(super) fn rate_now(&self) -> f64 {
        let passes = |link: &Link| link.set.fill().powi(link.set.hashes as i32);
        -self.links.iter().map(|link| (-passes(link)).ln_1p()).sum::<f64>().exp_m1()
    }

    /// Returns the capacity and the rate for which it was reserved.
    pub(super) fn design(&self) -> Option<Design> {
        let first = self.links.first()?.design;
        let tightened = self.options & NO_GROWTH == 0;
        Some(if tightened { Design { rate: first.rate / TIGHTENING, ..first } } else { first })
    }

    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut iterator = 0;
        loop {
            let (next, chunk) = self.chunk(iterator);
            if next == 0 {
                return Ok(());
            }
            to.write_all(&next.to_le_bytes())?;
            to.write_all(&(chunk.len() as u64).to_le_bytes())?;
            to.write_all(&chunk)?;
            iterator = next;
        }
    }
}

impl Dump for Chain {
    fn data_bytes(header: &[u8]) -> Result<u64> {
        let links = header.len().checked_sub(COUNTS_BYTES);
        if links.is_none_or(|bytes| bytes == 0 || !bytes.is_multiple_of(LINK_BYTES)) {
            return Err(FormatError::NotAFilter.into());
        }
        Chain::parse(header).map(|chain| chain.bytes())
    }

    fn load(header: &[u8], mut data: impl Read) -> Result<Chain> {
        let mut chain = Chain::parse(header)?;
        for link in &mut chain.links {
            link.set.bits = scandump::read_array(&mut data, link.set.bits.len() as u64)?;
        }
        Ok(chain)
    }

    fn header(&self) -> Vec<u8> {
        let mut header = self.keys.to_le_bytes().to_vec();
        let numbers = [self.links.len() as u32, self.options, self.growth];
        numbers.iter().for_each(|number| header.extend(number.to_le_bytes()));
        self.links.iter().for_each(|link| link.encode(&mut header));
        header
    }

    fn chunk(&self, iterator: u64) -> (u64, Vec<u8>) {
        scandump::chunk(|| self.header(), self.links.iter().map(|link| &link.set.bits), iterator)
    }

    fn sections(&self) -> Vec<&Words> {
        self.links.iter().filter_map(|link| link.set.bits.words()).collect()
    }

    fn try_clone(&self) -> Result<Chain> {
        let copy = |link: &Link| Ok(Link { set: link.set.try_clone()?, ..*link });
        let links = self.links.iter().map(copy).collect::<Result<Vec<Link>>>()?;
        Ok(Chain { links, ..*self })
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.links.iter_mut().for_each(|link| link.set.bits.relocate(mover));
        relocate_vec(&mut self.links, mover);
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
