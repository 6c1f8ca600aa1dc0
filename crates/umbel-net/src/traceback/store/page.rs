//! Pages: the digests of the packets that a router forwarded in a period of time.

use crate::capture::Timestamp;
use crate::traceback::spie::Transform;
use crate::{Error, Result};
use std::ops::RangeInclusive;
use std::sync::OnceLock;
use umbel::internals::TILE;
use umbel::sizing::Given;
use umbel::{AnyFilter, Digest, Hasher, Key, Kind, Spec};

/// The length of the longest name of a router in bytes.
pub const MAX_NAME_BYTES: usize = 255;

/// A description of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageInfo {
    /// The name of the router.
    pub router: String,
    /// The number that all pages of one recording share.
    pub run: u64,
    /// The number of the page within its recording, from 0.
    pub number: u64,
    /// The time of the first packet.
    pub first: Timestamp,
    /// The time of the last packet.
    pub last: Timestamp,
    /// The number of recorded packets.
    pub packets: u64,
    /// The number of packets that the router changed.
    pub changes: u64,
}

impl PageInfo {
    /// Returns whether packets of these times may be in the page.
    pub fn overlaps(&self, times: &RangeInclusive<Timestamp>) -> bool {
        self.first <= *times.end() && *times.start() <= self.last
    }
}

/// A packet that the router changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Note {
    /// The packet that left.
    pub after: Digest,
    /// When it left.
    pub time: Timestamp,
    /// The packet that entered.
    pub before: Digest,
    pub how: Transform,
}

/// The packets that a router forwarded in a period of time: a filter of their digests, and a list of
/// those that it changed.
#[derive(Debug)]
pub struct Page {
    pub(super) about: PageInfo,
    /// The changes, in order.
    pub(super) notes: Vec<Note>,
    pub(super) filter: AnyFilter,
    /// See [`Page::rate`].
    rate: OnceLock<f64>,
}

impl Page {
    /// Builds a page from the digests of packets. The filter is as large as their number needs for
    /// this rate.
    pub(super) fn build(
        about: PageInfo,
        mut digests: Vec<Digest>,
        mut notes: Vec<Note>,
        rate: f64,
        seed: u64,
    ) -> Result<Page> {
        digests.sort_unstable();
        digests.dedup();
        notes.sort_unstable();
        notes.dedup();
        let hasher = Hasher::fast(seed);
        let given = Given { n: Some(digests.len().max(1) as u64), p: Some(rate), ..Given::default() };
        let spec = Spec::from_given(given)?.with_hasher(hasher.clone());
        let mut filter = AnyFilter::build(Kind::Standard, &spec)?;
        digests.iter_mut().for_each(|digest| *digest = key(*digest, &hasher));
        digests.chunks(TILE).try_for_each(|tile| filter.insert_tile(tile))?;
        let about = PageInfo { changes: notes.len() as u64, ..about };
        Ok(Page::from_parts(about, notes, filter))
    }

    pub(super) fn from_parts(about: PageInfo, notes: Vec<Note>, filter: AnyFilter) -> Page {
        Page { about, notes, filter, rate: OnceLock::new() }
    }

    /// Returns the description of the page.
    pub fn about(&self) -> &PageInfo {
        &self.about
    }

    /// Returns the false-positive rate of the filter. The first call reads the whole filter.
    pub fn rate(&self) -> f64 {
        *self.rate.get_or_init(|| self.filter.stats().rate_now)
    }

    /// Returns whether the router may have received this packet, and forwarded it unchanged.
    pub fn contains(&self, packet: Digest) -> bool {
        self.filter.contains_digest(key(packet, self.filter.hasher()))
    }

    /// Returns the packets that left as this one within these times, and their transformations.
    pub fn before(
        &self,
        packet: Digest,
        times: &RangeInclusive<Timestamp>,
    ) -> impl Iterator<Item = (Digest, Transform)> {
        let start = self.notes.partition_point(|note| note.after < packet);
        let notes = self.notes.iter().skip(start).take_while(move |note| note.after == packet);
        notes.filter(|note| times.contains(&note.time)).map(|note| (note.before, note.how))
    }
}

/// Returns the digest in a page of a packet: pages have hash functions of their own, so that false
/// positives are independent between routers and times.
fn key(packet: Digest, hasher: &Hasher) -> Digest {
    packet.get().digest(hasher)
}

/// Checks the name of a router.
pub(super) fn check_name(name: &str) -> Result<()> {
    let is_valid =
        (1..=MAX_NAME_BYTES).contains(&name.len()) && name.trim() == name && !name.contains(char::is_control);
    let needs = || format!("1 to {MAX_NAME_BYTES} bytes without control characters or spaces around it");
    if is_valid { Ok(()) } else { Err(Error::parameter("router", format!("{name:?}"), needs())) }
}
