//! The source path isolation engine: routers that remember the packets they forwarded (Snoeren et
//! al. 2001, "SPIE").
//!
//! The part of a packet that does not change on its way, most of its header and the first eight
//! bytes of its payload, is hashed once ([`Invariant`]). Each router inserts the digest into its
//! current page, a Bloom filter with its own seed ([`Agent`]). A page is closed when it is full or
//! its time is over, and the memory of the oldest page is reused. Where a packet is changed on
//! purpose, by address translation, a tunnel or fragmentation, the router notes which digest became
//! which. Later a victim who has the packet and knows roughly when it arrived queries router after
//! router ([`trace`]).
//!
//! ```
//! use umbel_net::traceback::spie::{Agent, Invariant, Span};
//!
//! let packet = b"\x45\0\0\x22\x12\x34\0\0\x40\x11\0\0\x0a\0\0\x01\x0a\0\0\x02\x04\xd2\0\x35\0\x0e\0\0secret";
//! let digest = Invariant::from_packet(packet)?.digest();
//! let mut agent = Agent::new(7, 1000, 0.001, Span { length: 60, pages: 4 })?;
//! agent.forward(digest, 100)?;
//! assert_eq!(agent.query(digest, 90..=110), Some(digest));
//! assert_eq!(agent.query(digest, 200..=300), None, "not at that time");
//!
//! // One hop later the time to live and the checksum differ, but it is the same packet.
//! let mut later = *packet;
//! later[8] -= 1;
//! later[10] ^= 0x55;
//! assert_eq!(Invariant::from_packet(&later)?.digest(), digest);
//! # Ok::<(), umbel_net::Error>(())
//! ```
//!
//! # References
//!
//! * A. C. Snoeren, C. Partridge, L. A. Sanchez, C. E. Jones, F. Tchakountio, S. T. Kent and W. T.
//!   Strayer. *Hash-based IP traceback.* SIGCOMM 2001. `Snoeren01`

mod invariant;
mod transforms;

pub use invariant::Invariant;
pub use transforms::Transform;

use super::{Trace, walk};
use crate::topology::Graph;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use transforms::Transforms;

use crate::{Error, Result};
use umbel::{Bloom, Digest, Standard};

/// The time span that a router remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The longest time for which a page is written, in the caller's unit of time.
    pub length: u64,
    /// The number of pages, including the current one.
    pub pages: usize,
}

/// A page: the digests of a period of time.
#[derive(Debug)]
struct Page {
    filter: Bloom<Standard>,
    /// The salt of the digests in this page.
    salt: u64,
    from: u64,
    to: u64,
}

/// The memory of a router: the packets that it has forwarded.
#[derive(Debug)]
pub struct Agent {
    seed: Digest,
    capacity: u64,
    span: Span,
    /// The pages, newest last.
    pages: VecDeque<Page>,
    /// Unused pages. All memory is allocated at the start, and none while packets are forwarded.
    blank: Vec<Bloom<Standard>>,
    opened: u64,
    transforms: Transforms,
}

impl Agent {
    /// Returns an agent whose pages hold `capacity` packets, with a false-positive rate of `rate`
    /// when they are full. The seed should be secret and different for each router. Then nobody can
    /// craft packets that collide, and false positives are independent between routers.
    ///
    /// # Errors
    ///
    /// Fails if the span has a length of 0, or not 1 to 65536 pages, or if a page cannot be built.
    pub fn new(seed: u64, capacity: u64, rate: f64, span: Span) -> Result<Agent> {
        if span.length == 0 {
            return Err(Error::parameter("length", 0, "at least 1"));
        }
        if !(1..=1 << 16).contains(&span.pages) {
            return Err(Error::parameter("pages", span.pages, "a number from 1 to 65536"));
        }
        let seed = Digest::from_hash(seed).salted(0x5350_4945);
        let blank = (0..span.pages).map(|_| Bloom::with_capacity(capacity, rate));
        let mut agent = Agent {
            seed,
            capacity,
            span,
            pages: VecDeque::with_capacity(span.pages),
            blank: blank.collect::<umbel::Result<_>>()?,
            opened: 0,
            transforms: Transforms::default(),
        };
        agent.open(0)?;
        Ok(agent)
    }

    /// Opens a page, in the memory of the oldest one if no page is unused.
    fn open(&mut self, now: u64) -> Result<()> {
        let oldest = |pages: &mut VecDeque<Page>| pages.pop_front().map(|page| page.filter);
        let Some(mut filter) = self.blank.pop().or_else(|| oldest(&mut self.pages)) else { return Ok(()) };
        filter.clear();
        let salt = self.seed.salted(self.opened).get();
        self.opened += 1;
        self.pages.push_back(Page { filter, salt, from: now, to: now });
        Ok(())
    }

    /// Records a packet that is forwarded unchanged.
    ///
    /// # Errors
    ///
    /// Never fails at present.
    pub fn forward(&mut self, packet: Digest, now: u64) -> Result<()> {
        let over = |page: &Page| {
            page.filter.inserted().is_none_or(|inserted| inserted >= self.capacity)
                || now.saturating_sub(page.from) >= self.span.length
        };
        if self.pages.back().is_none_or(over) {
            self.open(now)?;
            self.transforms.forget_before(self.pages.front().map_or(0, |page| page.from));
        }
        let Some(page) = self.pages.back_mut() else { return Ok(()) };
        // A page begins with its first packet. If the clock goes back, the span of the page covers
        // both times.
        let first = page.filter.inserted() == Some(0);
        page.from = if first { now } else { page.from.min(now) };
        page.to = if first { now } else { page.to.max(now) };
        page.filter.insert_digest(packet.salted(page.salt));
        Ok(())
    }

    /// Records a packet that is forwarded as another one. Each fragment is recorded separately. The
    /// note is dropped with the page of that time, or after a million others.
    ///
    /// # Errors
    ///
    /// Never fails at present.
    pub fn transform(&mut self, before: Digest, after: Digest, how: Transform, now: u64) -> Result<()> {
        self.forward(before, now)?;
        self.transforms.note(before, after, how, now);
        Ok(())
    }

    /// Returns the packet as it came in, if a packet that arrived downstream may have been
    /// forwarded here within these times: the packet itself, or its form before it was changed
    /// here. If several packets became the same one in that time, as in a tunnel whose outer
    /// headers are all alike, returns the last of them.
    pub fn query(&self, packet: Digest, times: RangeInclusive<u64>) -> Option<Digest> {
        let before = self.transforms.before(packet, &times).map_or(packet, |(before, _)| before);
        let overlaps = |page: &&Page| page.from <= *times.end() && *times.start() <= page.to;
        let holds = |page: &Page| page.filter.contains_digest(before.salted(page.salt));
        self.pages.iter().filter(overlaps).any(holds).then_some(before)
    }

    /// Returns the earlier form of a packet and its transformation, if it was changed here.
    pub fn transformed(&self, packet: Digest, times: RangeInclusive<u64>) -> Option<(Digest, Transform)> {
        self.transforms.before(packet, &times)
    }

    /// Returns the number of pages.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Returns the memory of the pages in bytes.
    pub fn bytes(&self) -> u64 {
        let written = self.pages.iter().map(|page| &page.filter);
        written.chain(&self.blank).map(|filter| filter.stats().bytes).sum()
    }
}

/// Traces a packet upstream from a victim's router, through routers that have an agent.
pub fn trace(
    graph: &Graph,
    agents: &[Agent],
    victim: usize,
    packet: Digest,
    times: RangeInclusive<u64>,
) -> Trace {
    walk(graph, victim, packet, |node, packet| agents.get(node)?.query(*packet, times.clone()))
}

/// Returns the expected number of routers queried in vain per router of the path: each leads to
/// `degree` others, each of which matches by chance with rate `p`. From p = 1/`degree` on, the
/// search does not end, and the result is `None`.
///
/// ```
/// use umbel_net::traceback::spie::false_branches;
/// assert_eq!(false_branches(4, 0.05), Some(0.25));
/// assert_eq!(false_branches(4, 0.25), None);
/// ```
pub fn false_branches(degree: u32, p: f64) -> Option<f64> {
    let yes = f64::from(degree) * p;
    (yes < 1.0).then(|| yes / (1.0 - yes))
}
