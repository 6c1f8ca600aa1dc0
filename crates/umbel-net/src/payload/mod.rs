//! Filters of payloads that answer whether an excerpt has passed: block-based and hierarchical
//! Bloom filters (Shanmugasundaram, Brönnimann and Memon 2004).
//!
//! A payload is cut into blocks of equal size. A *block-based* filter holds each block together
//! with its number, so that an excerpt of several blocks is found only where they follow each
//! other. Blocks of different payloads can still be recombined: if one payload has S2 as its third
//! block and another S1 as its fourth, S2 S1 appears to have passed. A *hierarchical* filter also
//! holds pairs of blocks, pairs of pairs and so on, which excludes most recombinations, for twice
//! as many records.
//!
//! An excerpt need not begin at a block boundary, so every alignment is tried. With blocks of s
//! bytes, an excerpt of at least 2s - 1 bytes has a whole block in every alignment. The bytes
//! before the first and after the last whole block are not compared; [`Hit::prefix`] and
//! [`Hit::suffix`] count them.
//!
//! The better method depends on the threat. Against chance alone, a hierarchical filter is never
//! better in the same memory: it holds nearly twice as many records, while an excerpt of t blocks
//! has less than twice as many to check ([`noise`]). Its strength is recombined blocks.
//!
//! [`winnowing`] cuts payloads at boundaries determined by their content, which requires neither
//! alignments nor block numbers.
//!
//! # References
//!
//! * K. Shanmugasundaram, H. Brönnimann and N. Memon. *Payload attribution via hierarchical Bloom
//!   filters.* CCS 2004. `SBM04`

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
    /// They are not recorded.
    #[default]
    Dropped,
    /// They are recorded as a shorter block, so that an excerpt that reaches the end of a payload
    /// is recognized.
    Recorded,
}

/// A place in a payload where an excerpt may have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hit {
    /// The byte of the payload at which the excerpt begins.
    pub position: u64,
    /// The number of the payload's block that matches the first whole block of the excerpt.
    pub block: u64,
    /// The number of whole blocks that match.
    pub blocks: u64,
    /// The number of bytes of the excerpt before these blocks, which were not compared.
    pub prefix: usize,
    /// The number of bytes after these blocks, which were not compared.
    pub suffix: usize,
    /// Whether the bytes after these blocks are the recorded end of a payload.
    pub tail: bool,
}

/// A filter that holds records of the blocks of payloads.
///
/// ```
/// use umbel::{Bloom, Standard};
/// use umbel_net::payload::{Method, PayloadFilter};
///
/// let filter = Bloom::<Standard>::with_capacity(100, 1e-6)?;
/// let mut seen = PayloadFilter::new(filter, 3, Method::BlockBased)?;
/// seen.record(b"ABRACADABRACADARACABA")?;
/// let hits: Vec<_> = seen.find(b"BRACADAB")?.iter().map(|hit| (hit.prefix, hit.block, hit.position)).collect();
/// // The second hit is right. The first is wrong: its last byte, which is not compared, is an R.
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
    /// Returns a payload filter on top of an empty filter, for blocks of `size` bytes.
    ///
    /// # Errors
    ///
    /// Fails if `size` is 0, and for [`Method::Winnowing`], whose blocks have no positions.
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

    /// Numbers blocks modulo `blocks`, a power of two, so that an endless stream has a bounded
    /// number of places. Positions are then known up to a multiple of the window.
    ///
    /// # Errors
    ///
    /// Fails if `blocks` is not a power of two, or is less than 2.
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
    ///
    /// # Errors
    ///
    /// Fails if the filter refuses an insertion, for example because it is full.
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
    /// Returns a payload filter on top of a filter with existing records. The longest payload had
    /// `longest` blocks.
    pub(crate) fn restored(filter: F, size: usize, scheme: Scheme, longest: u64) -> PayloadFilter<F> {
        PayloadFilter { filter, size, scheme, tail: Tail::Dropped, longest, scratch: Vec::new() }
    }

    /// Returns the underlying filter.
    pub fn filter(&self) -> &F {
        &self.filter
    }

    /// Returns the size of a block in bytes.
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

    /// Returns the places where an excerpt may have been, ordered by alignment and then by block.
    ///
    /// # Errors
    ///
    /// Fails for an excerpt of fewer than 2s - 1 bytes, since some alignments would leave no whole
    /// block.
    pub fn find(&self, excerpt: &[u8]) -> Result<Vec<Hit>> {
        self.find_where(excerpt, |_| true)
    }

    /// Returns the same places, except in the alignments whose blocks `admits` excludes.
    pub(crate) fn find_where(&self, excerpt: &[u8], admits: impl Fn(&[Digest]) -> bool) -> Result<Vec<Hit>> {
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
        Ok((0..self.size).flat_map(|prefix| self.find_admitted(excerpt, prefix, &admits)).collect())
    }

    /// Returns the places where an excerpt may have been if its first whole block begins after
    /// `prefix` bytes. An excerpt without a whole block has none.
    pub fn find_aligned(&self, excerpt: &[u8], prefix: usize) -> Vec<Hit> {
        self.find_admitted(excerpt, prefix, |_| true)
    }

    fn find_admitted(&self, excerpt: &[u8], prefix: usize, admits: impl Fn(&[Digest]) -> bool) -> Vec<Hit> {
        let compared = excerpt.get(prefix..).unwrap_or_default().chunks_exact(self.size);
        let rest = compared.remainder();
        let blocks: Vec<Digest> = compared.map(|block| block.digest(self.filter.hasher())).collect();
        let count = blocks.len() as u64;
        let Some((first, (start, last))) = blocks.first().zip(self.places(prefix, count)) else {
            return Vec::new();
        };
        if !admits(&blocks) {
            return Vec::new();
        }
        let mut hits = Vec::new();
        let mut scratch = Vec::new();
        let mut at = start;
        while at <= last {
            // The first block alone excludes most places, so test many places at once.
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

    /// Returns the position of an excerpt whose first whole block has this number. With a window,
    /// the excerpt may begin in the window before.
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
        // No bytes precede the first block of a payload.
        Some((u64::from(prefix > 0), self.longest.checked_sub(count)?))
    }

    /// Returns whether the filter may have all records of these blocks, the first of which has this
    /// number.
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
