//! A filter of any foreign format, in memory or in a mapped file.

use super::funnel::Funnel;
use super::redisbloom::Chain;
use super::sbbf::{self, Blocks};
use super::scattered::{Rules, Scattered};
use super::source::{self, Source};
use super::{Format, datasketches, dcso, guava, redisbloom, sizing, spark};
#[cfg(feature = "files")]
use crate::file::{self, Placing};
use crate::file::{FormatError, open};
#[cfg(feature = "mmap")]
use crate::memory::map_file;
use crate::tile::{CHUNK, TILE};
use crate::{Answers, Arena, Batch, Design, Error, Result};
use std::io::{self, Read, Write};
use std::path::Path;
#[cfg(feature = "mmap")]
use std::sync::Arc;

/// The facts about a file that its bytes do not tell, or that are known beforehand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// The format; `None` to [recognise](Format::recognize) it.
    pub format: Option<Format>,
    /// The funnel of the program that wrote the file; `None` for UTF-8. Guava's has to be given.
    pub funnel: Option<Funnel>,
}

/// Options of a new filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The funnel; `None` for UTF-8. Guava's has to be given.
    pub funnel: Option<Funnel>,
    /// The seed of DataSketches (9001 by default) or of version 2 of Spark (0 by default).
    pub seed: Option<u64>,
    /// Whether a chain of RedisBloom is full at its capacity, as with `NONSCALING`, and does not
    /// grow.
    pub fixed: bool,
}

/// One bit of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Probe {
    /// The link of the chain, for RedisBloom; 0 otherwise.
    pub link: usize,
    /// The number of the bit in the order of the format.
    pub bit: u64,
    /// Whether the bit is set.
    pub set: bool,
}

/// What is known about a filter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Facts {
    /// The format: for Spark, `Spark` or `Spark2` by the version of the file.
    pub format: Format,
    /// The funnel that turns lines into keys.
    pub funnel: Funnel,
    /// The number of bits (m), in all links of a chain.
    pub bits: u64,
    /// The number of bits that are set.
    pub bits_set: u64,
    /// The number of bits per key (k); in a chain, of its first link.
    pub hashes: u32,
    /// The share of bits that are set.
    pub fill: f64,
    /// The number of keys, if the format stores it.
    pub keys: Option<u64>,
    /// The false-positive rate with the bits that are set now.
    pub rate_now: f64,
    /// The capacity and the rate that the filter was made for, if the format stores them.
    pub design: Option<Design>,
    /// The seed, if the format stores one.
    pub seed: Option<u64>,
    /// The number of links of a chain; 1 otherwise.
    pub links: usize,
    /// A property that only this format has, in words: the strategy of Guava, the user data of DCSO.
    pub remark: Option<String>,
}

/// A filter in the format of another program.
///
/// Keys are lines of text, which the [`Funnel`] of the filter turns into the bytes that the other
/// program hashes.
///
/// ```
/// use umbel::foreign::{ForeignFilter, Format, Funnel, Given, Options};
///
/// let options = Options { funnel: Some(Funnel::Long), ..Options::default() };
/// let mut filter = ForeignFilter::with_capacity(Format::Guava, 1000, 0.01, &options)?;
/// filter.insert(b"42")?;
///
/// // Guava's `BloomFilter.readFrom` reads these bytes.
/// let bytes = filter.to_bytes();
/// let given = Given { format: Some(Format::Guava), funnel: Some(Funnel::Long) };
/// let again = ForeignFilter::from_bytes(&bytes, given)?;
/// assert!(again.contains(b"42")? && !again.contains(b"43")?);
/// assert!(again.contains(b"forty-two").is_err(), "not a number");
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Debug)]
pub struct ForeignFilter {
    format: Format,
    funnel: Funnel,
    body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    One(One),
    Chain(Chain),
    Blocks { blocks: Blocks, has_header: bool },
}

/// One bit set, and what its header says beside its size.
#[derive(Debug)]
pub(super) struct One {
    pub rules: Rules,
    pub set: Scattered,
    pub details: Details,
}

#[derive(Debug)]
pub(super) enum Details {
    None,
    Dcso { design: Design, count: u64, data: Vec<u8> },
    DataSketches { count: u64 },
}

impl ForeignFilter {
    /// Reads a file into memory and checks whatever can be checked.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, its format is neither given nor recognised, it is not valid, or
    /// the funnel does not suit the format.
    pub fn load(path: impl AsRef<Path>, given: Given) -> Result<ForeignFilter> {
        let path = path.as_ref();
        let (mut file, len) = open(path)?;
        let mut start = Vec::new();
        let failed = |source| Error::io(path, "read", source);
        (&mut file).take(Format::RECOGNIZE_BYTES as u64).read_to_end(&mut start).map_err(failed)?;
        let read = || {
            let format = find_format(&start, given)?;
            let funnel = Funnel::for_format(format, given.funnel)?;
            let from = io::Cursor::new(&start).chain(file);
            ForeignFilter::read(format, funnel, source(format, &start, from, len))
        };
        read().and_then(ForeignFilter::checked).map_err(|error| error.at(path))
    }

    /// Opens a file for lookups without reading its bits, which are used where they lie. A file that
    /// is compressed with gzip, and one of RedisBloom, is read into memory.
    ///
    /// The file must be neither changed nor shortened while it is mapped; see
    /// [`file::map`](crate::file::map()). An insertion copies the bits first, and never changes the
    /// file.
    ///
    /// # Errors
    ///
    /// As [`load`](ForeignFilter::load), but the bits are not checked.
    #[cfg(feature = "mmap")]
    pub fn map(path: impl AsRef<Path>, given: Given) -> Result<ForeignFilter> {
        let path = path.as_ref();
        let (file, len) = open(path)?;
        if len == 0 {
            return ForeignFilter::load(path, given);
        }
        let map = map_file(&file).map_err(|source| Error::io(path, "map", source))?;
        let start = &map[..map.len().min(Format::RECOGNIZE_BYTES)];
        let format = find_format(start, given).map_err(|error| error.at(path))?;
        if format == Format::RedisBloom || (format == Format::Dcso && source::is_gzip(start)) {
            return ForeignFilter::load(path, given);
        }
        let funnel = Funnel::for_format(format, given.funnel)?;
        let read = ForeignFilter::read(format, funnel, Source::mapped(Arc::new(map)));
        read.map_err(|error| error.at(path))
    }

    /// Reads the bytes of a file, and checks them as [`load`](ForeignFilter::load) does.
    ///
    /// # Errors
    ///
    /// As [`load`](ForeignFilter::load).
    pub fn from_bytes(bytes: &[u8], given: Given) -> Result<ForeignFilter> {
        let start = &bytes[..bytes.len().min(Format::RECOGNIZE_BYTES)];
        let format = find_format(start, given)?;
        let funnel = Funnel::for_format(format, given.funnel)?;
        let source = source(format, start, bytes, bytes.len() as u64);
        ForeignFilter::read(format, funnel, source)?.checked()
    }

    fn read(format: Format, funnel: Funnel, mut source: Source<'_>) -> Result<ForeignFilter> {
        let from = &mut source;
        let body = match format {
            Format::DataSketches => Body::One(datasketches::read(from)?),
            Format::Dcso => Body::One(dcso::read(from)?),
            Format::Guava => Body::One(guava::read(from)?),
            Format::RedisBloom => Body::Chain(redisbloom::Chain::read(from)?),
            Format::Sbbf => sbbf::read(from)?,
            Format::Spark | Format::Spark2 => Body::One(spark::read(from)?),
        };
        source.finish()?;
        let format = match &body {
            Body::One(One { rules: Rules::Spark1, .. }) => Format::Spark,
            Body::One(One { rules: Rules::Spark2 { .. }, .. }) => Format::Spark2,
            _ => format,
        };
        Ok(ForeignFilter { format, funnel, body })
    }

    /// Checks what takes reading all bits.
    fn checked(self) -> Result<ForeignFilter> {
        if let Body::One(One { set, details, .. }) = &self.body {
            if let Details::DataSketches { count } = details {
                datasketches::check_count(set, *count)?;
            }
            if set.bits.any_beyond(set.modulus.bits()) {
                let what = "bits are set beyond its last one: copy or build it again";
                return Err(FormatError::invalid(what).into());
            }
        }
        Ok(self)
    }

    /// Makes an empty filter for this many keys at this rate, of the size that the original program
    /// chooses.
    ///
    /// The seed of version 2 of Spark has 32 bits; a negative one is written as its complement to
    /// 2^32. [`Format::Spark`] writes version 1.
    ///
    /// # Errors
    ///
    /// If the number of keys, the rate or an option does not suit the format.
    pub fn with_capacity(format: Format, keys: u64, rate: f64, options: &Options) -> Result<ForeignFilter> {
        let design = Design { capacity: keys, rate };
        sizing::check(design)?;
        let funnel = Funnel::for_format(format, options.funnel)?;
        if let (Some(seed), false) = (options.seed, format.has_seed()) {
            let needs = format!("the format datasketches or spark2: {format} has no seed");
            return Err(Error::parameter("seed", seed, needs));
        }
        let body = match format {
            Format::DataSketches => {
                Body::One(datasketches::create(design, options.seed.unwrap_or(datasketches::DEFAULT_SEED))?)
            }
            Format::Dcso => Body::One(dcso::create(design)?),
            Format::Guava => Body::One(guava::create(design)?),
            Format::RedisBloom => Body::Chain(redisbloom::Chain::create(design, !options.fixed)?),
            Format::Sbbf => {
                Body::Blocks { blocks: Blocks::new(sbbf::blocks_for(keys, rate)?)?, has_header: true }
            }
            Format::Spark | Format::Spark2 => {
                Body::One(spark::create(format, design, options.seed.unwrap_or_default())?)
            }
        };
        Ok(ForeignFilter { format, funnel, body })
    }

    /// Returns the format: for Spark, by the version of the file.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the funnel that turns lines into keys.
    pub fn funnel(&self) -> Funnel {
        self.funnel
    }

    /// Inserts a line, and returns whether it was new.
    ///
    /// # Errors
    ///
    /// If the line does not suit the funnel, the filter is full and cannot grow, or there is not
    /// enough memory.
    pub fn insert(&mut self, line: &[u8]) -> Result<bool> {
        let mut key = Vec::new();
        self.funnel.push(self.format, line, &mut key)?;
        if self.ignores(&key) {
            return Ok(false);
        }
        match &mut self.body {
            Body::One(one) => {
                let new = one.set.insert(one.rules, &key)?;
                one.details.count_new(new.into());
                Ok(new)
            }
            Body::Chain(chain) => chain.insert(&key),
            Body::Blocks { blocks, .. } => blocks.insert_hash(sbbf::hash(&key)),
        }
    }

    /// Returns whether a line may be a member.
    ///
    /// # Errors
    ///
    /// If the line does not suit the funnel.
    pub fn contains(&self, line: &[u8]) -> Result<bool> {
        let mut key = Vec::new();
        self.funnel.push(self.format, line, &mut key)?;
        if self.ignores(&key) {
            return Ok(false);
        }
        Ok(match &self.body {
            Body::One(one) => one.set.contains(one.rules, &key),
            Body::Chain(chain) => chain.contains(&key),
            Body::Blocks { blocks, .. } => blocks.contains_hash(sbbf::hash(&key)),
        })
    }

    /// Inserts many lines, in order; the fast way. Returns which were new.
    ///
    /// ```
    /// use umbel::foreign::{ForeignFilter, Format, Options};
    /// let mut filter = ForeignFilter::with_capacity(Format::Dcso, 100, 0.001, &Options::default())?;
    /// assert!(filter.insert_batch(&["a", "b", "a"])?.iter().eq([true, true, false]));
    /// assert!(filter.contains_batch(&["c", "b"])?.iter().eq([false, true]));
    /// # Ok::<(), umbel::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`insert`](ForeignFilter::insert). Lines before the one that failed may have been
    /// inserted.
    pub fn insert_batch<B: Batch + ?Sized>(&mut self, lines: &B) -> Result<Answers> {
        if self.funnel.is_identity() {
            if self.ignores_one_of(lines) {
                return (0..lines.len()).map(|i| lines.with_bytes(i, |line| self.insert(line))).collect();
            }
            return self.insert_keys(lines);
        }
        let (format, funnel) = (self.format, self.funnel);
        funnelled(format, funnel, lines, |keys| self.insert_keys(&keys))
    }

    /// Looks up many lines; the fast way.
    ///
    /// # Errors
    ///
    /// As [`contains`](ForeignFilter::contains).
    pub fn contains_batch<B: Batch + ?Sized>(&self, lines: &B) -> Result<Answers> {
        if self.funnel.is_identity() {
            if self.ignores_one_of(lines) {
                return (0..lines.len()).map(|i| lines.with_bytes(i, |line| self.contains(line))).collect();
            }
            return Ok(self.contains_keys(lines));
        }
        funnelled(self.format, self.funnel, lines, |keys| Ok(self.contains_keys(&keys)))
    }

    /// Returns whether a key is neither inserted nor found, as in the original program: DataSketches
    /// ignores the empty text, but not the empty array of bytes.
    fn ignores(&self, key: &[u8]) -> bool {
        key.is_empty() && self.format == Format::DataSketches && self.funnel == Funnel::Utf8
    }

    /// Returns whether the original program would ignore one of these keys.
    fn ignores_one_of<B: Batch + ?Sized>(&self, keys: &B) -> bool {
        self.ignores(b"") && (0..keys.len()).any(|i| keys.with_bytes(i, <[u8]>::is_empty))
    }

    fn insert_keys<B: Batch + ?Sized>(&mut self, keys: &B) -> Result<Answers> {
        match &mut self.body {
            Body::One(one) => {
                let new = one.set.insert_batch(one.rules, keys)?;
                one.details.count_new(new.count());
                Ok(new)
            }
            Body::Chain(chain) => {
                (0..keys.len()).map(|i| keys.with_bytes(i, |key| chain.insert(key))).collect()
            }
            Body::Blocks { blocks, .. } => blocks.insert_batch(keys),
        }
    }

    fn contains_keys<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        match &self.body {
            Body::One(one) => one.set.contains_batch(one.rules, keys),
            Body::Chain(chain) => chain.contains_batch(keys),
            Body::Blocks { blocks, .. } => blocks.contains_batch(keys),
        }
    }

    /// Returns the bits of a line in the order in which the original program tests them. A line may
    /// be a member if all of its bits are set; in a chain, all of those in one link.
    ///
    /// # Errors
    ///
    /// If the line does not suit the funnel.
    pub fn probes(&self, line: &[u8]) -> Result<Vec<Probe>> {
        let mut key = Vec::new();
        self.funnel.push(self.format, line, &mut key)?;
        let probe = |bits: &super::bits::Bits, link, bit| Probe { link, bit, set: bits.is_set(bit) };
        Ok(match &self.body {
            Body::One(One { rules, set, .. }) => {
                let bits = set.bit_numbers(*rules, &key).into_iter();
                bits.map(|bit| probe(&set.bits, 0, bit)).collect()
            }
            Body::Chain(chain) => {
                let links = chain.bit_numbers(&key).enumerate();
                links
                    .flat_map(|(i, (link, bits))| {
                        bits.into_iter().map(move |bit| probe(&link.set.bits, i, bit))
                    })
                    .collect()
            }
            Body::Blocks { blocks, .. } => {
                let bits = sbbf::bit_numbers(blocks, sbbf::hash(&key));
                bits.map(|bit| Probe { link: 0, bit, set: blocks.is_set(bit) }).collect()
            }
        })
    }

    /// Counts the bits, and returns all that is known about the filter.
    pub fn facts(&self) -> Facts {
        let mut facts = Facts {
            format: self.format,
            funnel: self.funnel,
            bits: 0,
            bits_set: 0,
            hashes: 0,
            fill: 0.0,
            keys: None,
            rate_now: 0.0,
            design: None,
            seed: None,
            links: 1,
            remark: None,
        };
        match &self.body {
            Body::One(One { rules, set, details }) => {
                facts.add(set);
                facts.rate_now = set.fill().powi(set.hashes as i32);
                facts.remark = match (rules, details) {
                    (Rules::Mitz32, _) => Some("strategy MURMUR128_MITZ_32".into()),
                    (Rules::Mitz64, _) => Some("strategy MURMUR128_MITZ_64".into()),
                    (_, Details::Dcso { data, .. }) if !data.is_empty() => {
                        Some(format!("{} bytes of user data", data.len()))
                    }
                    _ => None,
                };
                if let Details::Dcso { design, count, .. } = details {
                    (facts.keys, facts.design) = (Some(*count), Some(*design));
                }
                facts.seed = match rules {
                    Rules::Spark2 { seed } => Some(u64::from(*seed)),
                    Rules::Xx64 { seed } => Some(*seed),
                    _ => None,
                };
            }
            Body::Chain(chain) => {
                chain.links.iter().for_each(|link| facts.add(&link.set));
                facts.links = chain.links.len();
                facts.keys = Some(chain.keys);
                facts.design = chain.design();
                facts.rate_now = chain.rate_now();
            }
            Body::Blocks { blocks, .. } => {
                (facts.bits, facts.bits_set) = (blocks.as_bytes().len() as u64 * 8, blocks.count_ones());
                (facts.hashes, facts.rate_now) = (8, blocks.rate_now());
            }
        }
        facts.fill = facts.bits_set as f64 / facts.bits as f64;
        facts
    }

    /// Returns the bytes of the file that the original program would write.
    ///
    /// A filter that was read and not changed has the bytes that were read; those of a file that was
    /// compressed, unpacked.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // A vector takes all bytes, and a bit set with a header has a length that fits into it.
        let _ = self.write(&mut bytes);
        bytes
    }

    /// Writes the bytes that [`to_bytes`](ForeignFilter::to_bytes) returns.
    ///
    /// # Errors
    ///
    /// If the writer fails.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match &self.body {
            Body::One(one) => one.write(to),
            Body::Chain(chain) => chain.write(to),
            Body::Blocks { blocks, has_header } => {
                if *has_header {
                    let header = sbbf::write_header(blocks.as_bytes().len());
                    to.write_all(
                        &header.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?,
                    )?;
                }
                to.write_all(blocks.as_bytes())
            }
        }
    }

    /// Writes the file of the original program, completely or not at all.
    ///
    /// # Errors
    ///
    /// If `path` exists and `placing` forbids replacing it, or the system cannot write the file.
    #[cfg(feature = "files")]
    pub fn save(&self, path: impl AsRef<Path>, placing: Placing) -> Result<()> {
        let path = path.as_ref();
        file::save_with(path, placing, |file| {
            let mut to = io::BufWriter::with_capacity(1 << 20, file);
            let written = self.write(&mut to).and_then(|()| to.flush());
            written.map_err(|source| Error::io(path, "write to", source))
        })
        .map(drop)
    }
}

impl Details {
    /// Counts keys that were new.
    fn count_new(&mut self, new: u64) {
        match self {
            Details::Dcso { count, .. } => *count = count.saturating_add(new),
            Details::DataSketches { count } if new > 0 => *count = datasketches::CHANGED,
            _ => {}
        }
    }
}

impl One {
    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let set = &self.set;
        let (header, has_bits) = match (&self.rules, &self.details) {
            (_, Details::Dcso { design, count, .. }) => (dcso::header(set, *design, *count), true),
            (Rules::Xx64 { seed }, Details::DataSketches { count }) => {
                datasketches::header(set, *seed, *count)
            }
            (Rules::Spark2 { seed }, _) => (spark::header(set, Some(*seed)), true),
            (Rules::Spark1, _) => (spark::header(set, None), true),
            (Rules::Mitz32, _) => (guava::header(set, 0), true),
            (_, _) => (guava::header(set, 1), true),
        };
        to.write_all(&header)?;
        match set.bits.bytes() {
            _ if !has_bits => {}
            Some(bytes) => to.write_all(bytes)?,
            None => drop(io::copy(&mut io::repeat(0).take(set.bits.len() as u64), to)?),
        }
        match &self.details {
            Details::Dcso { data, .. } => to.write_all(data),
            _ => Ok(()),
        }
    }
}

impl Facts {
    fn add(&mut self, set: &Scattered) {
        self.bits += set.modulus.bits();
        self.bits_set += set.bits.count_ones();
        self.hashes = if self.hashes == 0 { set.hashes } else { self.hashes };
    }
}

fn find_format(start: &[u8], given: Given) -> Result<Format> {
    given.format.or_else(|| Format::recognize(start)).ok_or_else(|| {
        let names: Vec<_> = Format::ALL.iter().map(|format| format.name()).collect();
        let needs = format!("the name of the format, which this file does not show: {}", names.join(", "));
        Error::parameter("format", "none", needs)
    })
}

fn source<'a>(format: Format, start: &[u8], from: impl Read + 'a, len: u64) -> Source<'a> {
    // Only DCSO's program compresses its files. The bits of another format may begin like gzip.
    match format == Format::Dcso && source::is_gzip(start) {
        true => Source::packed(from, len),
        false => Source::plain(from, len),
    }
}

/// Turns lines into keys, 16384 at a time, and puts the answers to them together.
fn funnelled<B: Batch + ?Sized>(
    format: Format,
    funnel: Funnel,
    lines: &B,
    mut work: impl FnMut(Arena<'_, usize>) -> Result<Answers>,
) -> Result<Answers> {
    const { assert!(CHUNK.is_multiple_of(TILE)) };
    let mut answers = Answers::with_capacity(lines.len());
    let (mut bytes, mut offsets) = (Vec::new(), Vec::new());
    for start in (0..lines.len()).step_by(CHUNK) {
        bytes.clear();
        offsets.clear();
        offsets.push(0);
        for line in start..lines.len().min(start + CHUNK) {
            lines.with_bytes(line, |line| funnel.push(format, line, &mut bytes))?;
            offsets.push(bytes.len());
        }
        answers.append(&work(Arena::new(&bytes, &offsets)?)?);
    }
    Ok(answers)
}
