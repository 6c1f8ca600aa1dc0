//! Which payloads have passed: block-based and hierarchical Bloom filters (Shanmugasundaram, Brönnimann and Memon 2004).
//!
//! A payload is cut into blocks of equal size. A *block-based* filter holds each block together with its number, so that an
//! excerpt of several blocks is found only where they follow each other. Blocks of different payloads can still be recombined: if one
//! has S2 as its third block and another S1 as its fourth, S2 S1 seems to have been there. A *hierarchical* filter also holds
//! pairs of blocks, pairs of pairs and so on, which excludes most of that, for twice as many records.
//!
//! An excerpt need not begin where a block does, so every alignment is tried; of 2s - 1 bytes or more, where s is the size of
//! a block, at least one whole block is left whatever the alignment. The bytes before the first and after the last
//! whole block of an excerpt are not compared; [`Hit::prefix`] and [`Hit::suffix`] count them.
//!
//! Which of the two is better depends on the threat. Against mere chance, a hierarchical filter is never better at the same
//! memory, since its records are nearly twice as many and an excerpt of t blocks has less than twice as many to be checked
//! ([`noise`]). Its strength is recombined blocks.
//!
//! [`winnowing`] cuts payloads where their content says so, which needs neither alignments nor numbers.

mod chance;
mod method;
mod records;
pub mod winnowing;

use crate::{Error, Result};
pub use chance::{checks, noise, records_of};
pub use method::Method;
pub(crate) use records::{Climb, Scheme, each_record};
use std::ops::ControlFlow;
use umbel::internals::TILE;
use umbel::{Digest, Filter, Insert, Key};

/// The treatment of the bytes after a payload's last whole block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tail {
    /// They are left out.
    #[default]
    Dropped,
    /// They are recorded as a shorter block, so that an excerpt up to the end of a payload is recognised.
    Recorded,
}

/// A place in a payload where an excerpt may have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hit {
    /// The byte of the payload at which the excerpt begins.
    pub position: u64,
    /// The number of the payload's block that is the excerpt's first whole one.
    pub block: u64,
    /// The number of whole blocks that agree.
    pub blocks: u64,
    /// The number of bytes of the excerpt before them, which were not compared.
    pub prefix: usize,
    /// The number of bytes after them, which were not compared.
    pub suffix: usize,
    /// Whether the bytes after them are the recorded end of a payload.
    pub tail: bool,
}

/// A filter of payloads, which holds records of their blocks.
///
/// ```
/// use umbel::{Bloom, Standard};
/// use umbel_net::payload::{Method, PayloadFilter};
///
/// let filter = Bloom::<Standard>::with_capacity(100, 1e-6)?;
/// let mut seen = PayloadFilter::new(filter, 3, Method::BlockBased)?;
/// seen.record(b"ABRACADABRACADARACABA")?;
/// let hits: Vec<_> = seen.find(b"BRACADAB")?.iter().map(|hit| (hit.prefix, hit.block, hit.position)).collect();
/// // The second is where it is. The first is not: its last byte, which is not compared, is an R.
/// assert_eq!(hits, [(1, 3, 8), (2, 1, 1)]);
/// # Ok::<(), umbel_net::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PayloadFilter<F> {
    filter: F,
    size: usize,
    scheme: Scheme,
    tail: Tail,
    longest: u64,
    scratch: Vec<Digest>,
}

impl<F: Insert> PayloadFilter<F> {
    /// Returns a filter of payloads, which are cut into blocks of `size` bytes, in an empty filter.
    ///
    /// # Errors
    ///
    /// Fails for blocks of no bytes, and for [`Method::Winnowing`], whose blocks have no positions.
    pub fn new(filter: F, size: usize, method: Method) -> Result<PayloadFilter<F>> {
        if size == 0 {
            return Err(Error::parameter("block", size, "blocks of at least one byte"));
        }
        if method == Method::Winnowing {
            return Err(Error::parameter("method", method, "block or hierarchical"));
        }
        let scheme = Scheme { method, window: 0 };
        Ok(PayloadFilter { filter, size, scheme, tail: Tail::Dropped, longest: 0, scratch: Vec::new() })
    }

    /// Numbers blocks modulo `blocks`, a power of two, so that an endless stream has a bounded number of places. Positions are
    /// then known up to a multiple of it.
    pub fn with_window(mut self, blocks: u64) -> Result<PayloadFilter<F>> {
        if !blocks.is_power_of_two() || blocks < 2 {
            return Err(Error::parameter("window", blocks, "a power of two from 2"));
        }
        self.scheme.window = blocks;
        Ok(self)
    }

    /// Sets the treatment of the bytes after the last whole block.
    pub fn with_tail(self, tail: Tail) -> PayloadFilter<F> {
        PayloadFilter { tail, ..self }
    }

    /// Records a payload. A payload shorter than a block leaves no record.
    pub fn record(&mut self, payload: &[u8]) -> Result<()> {
        let PayloadFilter { filter, size, scheme, tail, longest, scratch } = self;
        let blocks = payload.chunks_exact(*size);
        let rest = blocks.remainder();
        scratch.clear();
        scratch.extend(blocks.map(|block| block.digest(filter.hasher())));
        let count = scratch.len() as u64;
        let mut tile = [Digest::default(); TILE];
        let mut filled = 0;
        let mut put = |record| {
            tile[filled] = record;
            filled += 1;
            if filled == TILE {
                filled = 0;
                return filter.insert_tile(&tile).map_or_else(
                    |error| ControlFlow::Break(Err::<(), umbel::Error>(error.into())),
                    ControlFlow::Continue,
                );
            }
            ControlFlow::Continue(())
        };
        if let ControlFlow::Break(refused) = each_record(scratch, 0, *scheme, &mut put) {
            return Ok(refused?);
        }
        filter.insert_tile(&tile[..filled]).map_err(Into::<umbel::Error>::into)?;
        if *tail == Tail::Recorded && !rest.is_empty() {
            filter
                .insert_digest(scheme.end(rest.digest(filter.hasher()), count))
                .map_err(Into::<umbel::Error>::into)?;
        }
        *longest = count.max(*longest);
        Ok(())
    }
}

impl<F: Filter> PayloadFilter<F> {
    /// Returns a filter that has the records of payloads already, of which the longest had `longest` blocks.
    pub(crate) fn restored(filter: F, size: usize, scheme: Scheme, longest: u64) -> PayloadFilter<F> {
        PayloadFilter { filter, size, scheme, tail: Tail::Dropped, longest, scratch: Vec::new() }
    }

    /// Returns the filter with the records.
    pub fn filter(&self) -> &F {
        &self.filter
    }

    /// Returns the number of bytes of a block.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the method.
    pub fn method(&self) -> Method {
        self.scheme.method
    }

    /// Returns the number of blocks of the longest payload.
    pub fn longest(&self) -> u64 {
        self.longest
    }

    /// Returns the places where an excerpt may have been, by alignment and then by block.
    ///
    /// # Errors
    ///
    /// Fails for an excerpt of fewer than 2s - 1 bytes, since some alignments would leave no whole block.
    pub fn find(&self, excerpt: &[u8]) -> Result<Vec<Hit>> {
        let needed = 2 * self.size - 1;
        if excerpt.len() < needed {
            return Err(Error::parameter(
                "excerpt",
                format!("{} bytes", excerpt.len()),
                format!(
                    "at least {needed} bytes, so that every alignment leaves a whole block of {}",
                    self.size
                ),
            ));
        }
        Ok((0..self.size).flat_map(|prefix| self.find_aligned(excerpt, prefix)).collect())
    }

    /// Returns the places where an excerpt may have been if its first whole block begins after `prefix` bytes. An excerpt
    /// without a whole block has none.
    pub fn find_aligned(&self, excerpt: &[u8], prefix: usize) -> Vec<Hit> {
        let compared = excerpt.get(prefix..).unwrap_or_default().chunks_exact(self.size);
        let rest = compared.remainder();
        let blocks: Vec<Digest> = compared.map(|block| block.digest(self.filter.hasher())).collect();
        let count = blocks.len() as u64;
        let Some((first, (start, last))) = blocks.first().zip(self.places(prefix, count)) else {
            return Vec::new();
        };
        let mut hits = Vec::new();
        let mut scratch = Vec::new();
        let mut at = start;
        while at <= last {
            // The first block alone excludes most places, so look up many of them at once.
            let many = (last - at + 1).min(TILE as u64);
            let mut tile = [Digest::default(); TILE];
            let places = &mut tile[..many as usize];
            for (place, number) in places.iter_mut().zip(at..) {
                *place = self.scheme.record(*first, number, 0);
            }
            let mut found = self.filter.contains_tile(places);
            while found != 0 {
                let block = at + u64::from(found.trailing_zeros());
                found &= found - 1;
                scratch.clone_from(&blocks);
                if !self.holds(&mut scratch, block) {
                    continue;
                }
                let end = || self.scheme.end(rest.digest(self.filter.hasher()), block + count);
                hits.push(Hit {
                    position: self.position(block, prefix),
                    block,
                    blocks: count,
                    prefix,
                    suffix: rest.len(),
                    tail: self.tail == Tail::Recorded
                        && !rest.is_empty()
                        && self.filter.contains_digest(end()),
                });
            }
            at += many;
        }
        hits
    }

    /// Returns the position of an excerpt whose first whole block has this number. In a window, it may begin before it.
    pub(crate) fn position(&self, block: u64, prefix: usize) -> u64 {
        let (size, prefix) = (self.size as u64, prefix as u64);
        (block * size).checked_sub(prefix).unwrap_or_else(|| self.scheme.window * size - prefix)
    }

    /// Returns the first and the last possible number of the first of `count` blocks.
    fn places(&self, prefix: usize, count: u64) -> Option<(u64, u64)> {
        let window = self.scheme.window;
        if window != 0 && self.longest > window {
            return (self.longest >= count).then_some((0, window - 1));
        }
        // Nothing comes before the first block of a payload.
        Some((u64::from(prefix > 0), self.longest.checked_sub(count)?))
    }

    /// Returns whether the filter may have all records of these blocks, of which the first has this number.
    fn holds(&self, blocks: &mut Vec<Digest>, first: u64) -> bool {
        let check = |record| {
            if self.filter.contains_digest(record) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        each_record(blocks, first, self.scheme, &mut { check }).is_continue()
    }
}
