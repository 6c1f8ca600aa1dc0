//! Chains of ordinary filters that are queried one after the other: the stages of a
//! [`Scalable`](crate::Scalable) filter and the generations of an [`Aging`](crate::Aging) one.
//!
//! A lookup of an absent key queries every link, so a chain of t links takes up to t times as long
//! as one filter. Its rate is at most the sum of the rates of its links.
//!
//! All links take the same digest. This does not tie their errors together: links hold different
//! keys, so the bits that a non-member finds set in one link say nothing about its bits in another.
//!
//! # References
//!
//! * P. S. Almeida, C. Baquero, N. Preguiça and D. Hutchison. *Scalable Bloom filters.* Information
//!   Processing Letters 101(6), 2007. `ABPH07`

use crate::arch::{Kernel, Simd};
use crate::bloom::{AnyOf, Bits};
use crate::file::FormatError;
use crate::memory::{LINE_BYTES, Mover, relocate_box};
use crate::sizing::{Decimal, Given, MAX_KEYS, Shape, greatest, scalable};
use crate::structure::{Head, Parts, Probe, small};
use crate::tile::{self, CHUNK, low_bits, ones};
use crate::{
    Answers, Batch, Blocked, Bloom, BloomFilter, Digest, Error, Hashed, Kind, Layout, Level, Partitioned,
    Result, Spec, Standard, Stats, TILE,
};
use std::convert::Infallible;

/// One filter of a chain.
#[derive(Debug)]
pub(crate) struct Link {
    pub shape: Shape,
    pub size: Size,
    /// A standard, partitioned or blocked filter. Boxed, because a filter of any kind may itself be
    /// a chain.
    pub filter: Box<BloomFilter>,
    /// The number of keys that were new to this filter when they were inserted.
    pub keys: u64,
}

impl Link {
    /// Makes an empty link for a chain with this head.
    pub fn new(shape: Shape, head: &Head) -> Result<Link> {
        let head = Head { design: None, ..head.emptied() };
        let filter: BloomFilter = match shape {
            Shape::Standard { bits, hashes } => Bloom::with_head(Standard::new(bits, hashes)?, head)?.into(),
            Shape::Partitioned { slice_bits, hashes } => {
                Bloom::with_head(Partitioned::new(slice_bits, hashes)?, head)?.into()
            }
            Shape::Blocked { lines, lines_per_key } => {
                Bloom::with_head(Blocked::new(lines, lines_per_key)?, head)?.into()
            }
        };
        Ok(Link { shape, size: measure(shape)?, filter: Box::new(filter), keys: 0 })
    }

    /// Restores a link from the next section of a file.
    pub fn restore(parts: &mut Parts, numbers: [u64; 3], keys: u64) -> Result<Link> {
        let shape = shape_of(numbers)?;
        let size = measure(shape)?;
        let section = parts.sections.next().ok_or_else(|| FormatError::invalid("a section is missing"))?;
        let parts = Parts {
            head: Head { design: None, ..parts.head.clone() },
            params: numbers[1..].to_vec(),
            sections: vec![section].into_iter(),
        };
        Ok(Link { shape, size, filter: Box::new(BloomFilter::restore(kind(shape), parts)?), keys })
    }

    pub fn try_clone(&self) -> Result<Link> {
        Ok(Link { filter: Box::new(self.filter.try_clone()?), ..*self })
    }

    pub fn clear(&mut self) {
        self.filter.clear();
        self.keys = 0;
    }

    /// Lets `mover` move the memory of this link.
    pub fn relocate(&mut self, mover: &mut dyn Mover) {
        self.filter.relocate(mover);
        relocate_box(&mut self.filter, mover);
    }

    /// Inserts digests in order until `room` of them were new. Calls `new` with the index of each
    /// new digest and returns how many digests were processed.
    pub fn fill(&mut self, digests: &[Digest], room: u64, mut new: impl FnMut(usize)) -> usize {
        let (mut done, mut room) = (0, room);
        while done < digests.len() && room > 0 {
            let end = digests.len().min(done + TILE.min(usize::try_from(room).unwrap_or(TILE)));
            let answers = self.filter.insert_tile_new(&digests[done..end]);
            let taken = u64::from(answers.count_ones());
            self.keys = self.keys.saturating_add(taken);
            room -= taken;
            ones(answers).for_each(|i| new(done + i));
            done = end;
        }
        done
    }

    /// Returns the numbers that describe this link in a file.
    pub fn numbers(&self) -> [u64; 3] {
        let [a, b] = match self.shape {
            Shape::Standard { bits, hashes } => [bits, hashes.into()],
            Shape::Partitioned { slice_bits, hashes } => [slice_bits, hashes.into()],
            Shape::Blocked { lines, lines_per_key } => [lines, lines_per_key.into()],
        };
        [kind(self.shape).number().into(), a, b]
    }
}

pub(crate) fn kind(shape: Shape) -> Kind {
    match shape {
        Shape::Standard { .. } => Kind::Standard,
        Shape::Partitioned { .. } => Kind::Partitioned,
        Shape::Blocked { .. } => Kind::Blocked,
    }
}

/// Returns the shape that three numbers in a file describe. The layout validates them later.
fn shape_of([number, a, b]: [u64; 3]) -> Result<Shape> {
    match u16::try_from(number).ok().and_then(Kind::from_number) {
        Some(Kind::Standard) => Ok(Shape::Standard { bits: a, hashes: small(b) }),
        Some(Kind::Partitioned) => Ok(Shape::Partitioned { slice_bits: a, hashes: small(b) }),
        Some(Kind::Blocked) => Ok(Shape::Blocked { lines: a, lines_per_key: small(b) }),
        _ => Err(FormatError::Unknown { what: format!("a part of kind {number}") }.into()),
    }
}

/// Returns the bits, bytes, hashes and lines touched per lookup of a filter of this shape.
pub(crate) fn measure(shape: Shape) -> Result<Size> {
    fn size<L: Layout>(layout: L, lines_touched: u32) -> Size {
        let bytes = layout.lines() * LINE_BYTES as u64;
        Size { bits: layout.bits(), bytes, hashes: layout.hashes(), lines_touched }
    }
    Ok(match shape {
        Shape::Standard { bits, hashes } => size(Standard::new(bits, hashes)?, hashes),
        Shape::Partitioned { slice_bits, hashes } => size(Partitioned::new(slice_bits, hashes)?, hashes),
        Shape::Blocked { lines, lines_per_key } => size(Blocked::new(lines, lines_per_key)?, lines_per_key),
    })
}

/// The result of [`measure`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub bits: u64,
    pub bytes: u64,
    pub hashes: u32,
    pub lines_touched: u32,
}

/// Derives the number of keys and the rate from a specification, for a chain that needs `bits(n,
/// p)` bits for n keys at rate p.
pub(crate) fn keys_and_rate(spec: &Spec, bits: impl Fn(u64, f64) -> Result<u64>) -> Result<(u64, f64)> {
    let Given { n, p, m, k } = spec.given();
    if let Some(k) = k {
        let needs = "to be left out: it follows from the rate of each part of the filter; use p or m";
        return Err(Error::parameter("k", k, needs));
    }
    let fits = |n, p, m| bits(n, p).is_ok_and(|needed| needed <= m);
    match (n, p, m) {
        (Some(n), Some(p), None) => Ok((n, p)),
        (Some(n), Some(p), Some(m)) => {
            let needed = bits(n, p)?;
            let needs = || format!("at least {needed} bits for n = {n} at p = {}", Decimal(p));
            if needed <= m { Ok((n, p)) } else { Err(Error::parameter("m", m, needs())) }
        }
        (Some(n), None, Some(m)) => {
            // Search for the lowest rate that m bits allow, in steps of 2^(-1/256): fine enough to
            // make no difference.
            let rate = |step: u64| (-(step as f64) / 256.0).exp2();
            let too_few = || {
                Error::parameter("m", m, format!("more bits for {n} keys: it would say yes to everything"))
            };
            bits(n, rate(1))?;
            greatest(1..=256 * 60, |step| fits(n, rate(step), m))
                .map(|step| (n, rate(step)))
                .ok_or_else(too_few)
        }
        (None, Some(p), Some(m)) => {
            bits(1, p)?;
            let no_room =
                || Error::parameter("m", m, format!("room for at least one key at p = {}", Decimal(p)));
            greatest(1..=MAX_KEYS, |n| fits(n, p, m)).map(|n| (n, p)).ok_or_else(no_room)
        }
        _ => spec.given().solve(spec.policy()).map(|params| (params.capacity, params.rate)),
    }
}

/// Found digests are dropped before the next filter is queried if they are more than one in eight.
const WORTH_MOVING: usize = 8;

/// Keys that are looked up together. Digests drop out once a filter contains them.
pub(crate) struct Group {
    /// The digests that have not dropped out, in order.
    digests: Vec<Digest>,
    /// One bit per remaining digest: whether it was found.
    found: Vec<u64>,
    /// The `found` bits of each earlier round, with the bits beyond the last digest set. A 0 bit is
    /// a digest that was kept for the next round.
    dropped: Vec<Vec<u64>>,
    len: usize,
    level: Level,
}

impl Group {
    fn new(level: Level) -> Group {
        Group { digests: Vec::new(), found: Vec::new(), dropped: Vec::new(), len: 0, level }
    }

    /// Hashes a batch and passes it to `visit`, group by group.
    pub fn each<B: Batch + ?Sized, E>(
        head: &Head,
        keys: &B,
        mut visit: impl FnMut(&mut Group) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut group = Group::new(head.level);
        for start in (0..keys.len()).step_by(CHUNK) {
            group.digests.resize(CHUNK.min(keys.len() - start), Digest::default());
            tile::hash(head.level, keys, start, &head.hasher, &mut group.digests);
            group.start();
            visit(&mut group)?;
        }
        Ok(())
    }

    /// Makes a group of digests.
    pub fn from_digests(level: Level, digests: &[Digest]) -> Group {
        let mut group = Group { digests: digests.to_vec(), ..Group::new(level) };
        group.start();
        group
    }

    fn start(&mut self) {
        self.len = self.digests.len();
        self.dropped.clear();
        self.found = vec![0; self.len.div_ceil(TILE)];
    }

    /// Returns the number of keys, found or not.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the remaining digests in order, after found ones were [dropped](Group::drop_found).
    pub fn missing(&self) -> &[Digest] {
        &self.digests
    }

    /// Maps an index into the remaining digests to the index of the key in the group.
    pub fn place(&self, i: usize) -> usize {
        self.dropped.iter().rev().fold(i, |mut rank, dropped| {
            let goes_on = |(_, word): &(usize, &u64)| {
                let here = word.count_zeros() as usize;
                let found = rank < here;
                rank -= if found { 0 } else { here };
                found
            };
            let (tile, word) = dropped.iter().enumerate().find(goes_on).unwrap_or((0, &0));
            tile * TILE + ones(!word).nth(rank).unwrap_or(0)
        })
    }

    /// Drops the first digests as if they had been found.
    pub fn skip(&mut self, count: usize) {
        (0..count).for_each(|i| self.found[i / TILE] |= 1 << (i % TILE));
        self.drop_found();
    }

    /// Looks up the remaining digests in one filter after the other.
    ///
    /// While a filter contains many of them, filters are queried one by one, and found digests drop
    /// out. Once a filter contains few, most of the remaining digests are in none of the filters.
    /// They have to be looked up everywhere, so the remaining filters are queried together.
    pub fn query<'a>(&mut self, filters: impl Iterator<Item = &'a BloomFilter>) {
        let mut filters = filters.peekable();
        while let Some(filter) = filters.next() {
            if self.digests.is_empty() {
                return;
            }
            let found = self.query_one(filter);
            if found * WORTH_MOVING <= self.digests.len() {
                return self.query_all(filters);
            }
            // There is no next filter after the last, so its found digests need not be dropped.
            if filters.peek().is_some() {
                self.drop_found();
            }
        }
    }

    /// Queries one filter and returns how many digests it contains.
    fn query_one(&mut self, filter: &BloomFilter) -> usize {
        let before = self.count_found();
        self.query_all(std::iter::once(filter));
        self.count_found() - before
    }

    fn count_found(&self) -> usize {
        self.found.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn query_all<'a>(&mut self, filters: impl Iterator<Item = &'a BloomFilter>) {
        let mut blocked = AnyOf::new();
        for filter in filters {
            match filter {
                BloomFilter(Bits::Blocked(filter)) if blocked.push(filter) => {}
                filter => self.query_alone(filter),
            }
        }
        blocked.query(self.level, &self.digests, &mut self.found);
    }

    /// Queries one filter with its own loops. Not generic, so that these loops are compiled once
    /// here and not in every caller.
    fn query_alone(&mut self, filter: &BloomFilter) {
        let answers = filter.contains_batch(&Hashed(&self.digests));
        self.found.iter_mut().zip(answers.as_words()).for_each(|(found, word)| *found |= word);
    }

    /// Drops the digests that were found.
    pub fn drop_found(&mut self) {
        if self.found.iter().all(|word| *word == 0) {
            return;
        }
        let len = self.digests.len();
        // Pad the last tile with digests that count as found.
        self.digests.resize(len.next_multiple_of(TILE), Digest::default());
        if let Some(last) = self.found.last_mut().filter(|_| !len.is_multiple_of(TILE)) {
            *last |= !0 << (len % TILE);
        }
        let kept = self.level.run(Sift { digests: &mut self.digests, found: &self.found });
        self.digests.truncate(kept);
        self.dropped.push(std::mem::replace(&mut self.found, vec![0; kept.div_ceil(TILE)]));
    }

    /// Returns one bit per key of the group: whether it was found.
    fn answers(&self) -> Vec<u64> {
        let below = self.found.clone();
        let mut answers = self.dropped.iter().rev().fold(below, |below, dropped| {
            let mut all = dropped.clone();
            self.level.run(Spread { below: &below, all: &mut all });
            all
        });
        if let Some(last) = answers.last_mut().filter(|_| !self.len.is_multiple_of(TILE)) {
            *last &= (1 << (self.len % TILE)) - 1;
        }
        answers
    }
}

/// A kernel that moves the digests whose bit is clear to the front, eight at a time, and returns
/// their number.
struct Sift<'a> {
    digests: &'a mut [Digest],
    found: &'a [u64],
}

impl Kernel for Sift<'_> {
    type Output = usize;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> usize {
        let Sift { digests, found } = self;
        let mut kept = 0;
        for at in (0..digests.len()).step_by(8) {
            let keep = !(found[at / TILE] >> (at % TILE)) as u8;
            // In place: `kept <= at`, so only digests that were already read are overwritten.
            let values = std::array::from_fn(|i| digests[at + i].get());
            let moved = simd.compress(values, keep);
            (0..8).for_each(|i| digests[kept + i] = Digest::from_hash(moved[i]));
            kept += keep.count_ones() as usize;
        }
        kept
    }
}

/// A kernel that deposits consecutive bits of `below` into the zero bits of `all`.
struct Spread<'a> {
    below: &'a [u64],
    all: &'a mut [u64],
}

impl Kernel for Spread<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut taken = 0;
        for word in self.all {
            let (at, shift) = (taken / TILE, taken % TILE);
            let low = self.below.get(at).map_or(0, |bits| bits >> shift);
            let high = self.below.get(at + 1).map_or(0, |bits| bits << 1 << (63 - shift));
            let zeros = !*word;
            *word |= simd.deposit(low | high, zeros);
            taken += zeros.count_ones() as usize;
        }
    }
}

/// Looks up a batch in a chain, in the order of `filters`.
pub(crate) fn contains_batch<'a, B: Batch + ?Sized>(
    head: &Head,
    filters: impl Iterator<Item = &'a BloomFilter> + Clone,
    keys: &B,
) -> Answers {
    let mut answers = Answers::with_capacity(keys.len());
    let Ok(()) = Group::each(head, keys, |group| {
        group.query(filters.clone());
        for (tile, found) in group.answers().into_iter().enumerate() {
            answers.push_tile(found, TILE.min(group.len - tile * TILE));
        }
        Ok::<(), Infallible>(())
    });
    answers
}

/// Looks up one digest in a chain, in the order of `filters`.
pub(crate) fn contains_digest<'a>(
    level: Level,
    filters: impl Iterator<Item = &'a BloomFilter>,
    digest: Digest,
) -> bool {
    level.run(ContainsDigest { filters, digest })
}

/// A kernel that looks up one digest. The SIMD code of every link is inlined into one loop, so that
/// the processor can overlap the memory accesses of several links.
struct ContainsDigest<I> {
    filters: I,
    digest: Digest,
}

impl<'a, I: Iterator<Item = &'a BloomFilter>> Kernel for ContainsDigest<I> {
    type Output = bool;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> bool {
        let ContainsDigest { filters, digest } = self;
        // A plain loop: the closure of `any` would be compiled as a separate function.
        for filter in filters {
            let found = match &filter.0 {
                Bits::Standard(filter) => filter.contains_with(simd, digest),
                Bits::Partitioned(filter) => filter.contains_with(simd, digest),
                Bits::Blocked(filter) => filter.contains_with(simd, digest),
            };
            if found {
                return true;
            }
        }
        false
    }
}

/// Looks up at most 64 digests in a chain.
pub(crate) fn contains_tile<'a>(filters: impl Iterator<Item = &'a BloomFilter>, tile: &[Digest]) -> u64 {
    let tile = &tile[..tile.len().min(TILE)];
    let all = low_bits(tile.len());
    let mut found = 0;
    for filter in filters {
        if found == all {
            break;
        }
        found |= filter.contains_tile(tile);
    }
    found
}

/// Traces a lookup through one link after the other, each given with the index of its section; see
/// `Structure::trace`.
pub(crate) fn trace<'a>(
    filters: impl Iterator<Item = (usize, &'a BloomFilter)>,
    digest: Digest,
    probe: &mut dyn FnMut(Probe) -> Result<()>,
) -> Result<bool> {
    for (section, filter) in filters {
        if filter.trace(digest, &mut |at| probe(Probe { section, ..at }))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns `stats` with the cells and rates of these links added up.
pub(crate) fn sum_up(stats: Stats, links: &[Stats]) -> Stats {
    Stats {
        used_cells: links.iter().map(|link| link.used_cells).sum(),
        rate_now: scalable::compound(links.iter().map(|link| link.rate_now)),
        ..stats
    }
}

mod offered;
pub(crate) use offered::Offered;
