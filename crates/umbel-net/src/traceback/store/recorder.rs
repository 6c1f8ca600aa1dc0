//! The recorder, which collects the digests of a router's packets and saves them page by page.

use super::page::{Note, check_name};
use super::{Page, PageInfo, Store};
use crate::capture::{Packet, Timestamp};
use crate::traceback::passage::{Change, Departure, Passage, Sighting};
use crate::traceback::spie::{Invariant, Transform};
use crate::{Error, Result};
use std::time::Duration;
use umbel::{Digest, Hasher};

/// The size of a page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The number of packets, or of changed packets, that fill a page.
    pub packets: usize,
    /// The false-positive rate of a page.
    pub rate: f64,
    /// The longest time that a page covers. Pages begin at multiples of it.
    pub length: Duration,
}

impl Default for Settings {
    /// Returns pages of a minute or a million packets, with a rate of one in a thousand.
    fn default() -> Settings {
        Settings { packets: 1_000_000, rate: 0.001, length: Duration::from_secs(60) }
    }
}

impl Settings {
    /// The largest number of packets in a page. They are in memory, eight bytes each, until the page
    /// is full.
    pub const MAX_PACKETS: usize = 1 << 28;

    fn check(&self) -> Result<()> {
        if !(1..=Settings::MAX_PACKETS).contains(&self.packets) {
            let needs = format!("a number from 1 to {}", Settings::MAX_PACKETS);
            return Err(Error::parameter("packets", self.packets, needs));
        }
        if self.rate.is_nan() || self.rate <= 0.0 || self.rate >= 1.0 {
            return Err(Error::parameter("rate", self.rate, "a number between 0 and 1"));
        }
        if self.length.is_zero() {
            return Err(Error::parameter("length", "0", "a time above 0"));
        }
        Ok(())
    }

    fn nanos(&self) -> u64 {
        u64::try_from(self.length.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Counts of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// Packets of the router, or packets that entered it.
    pub packets: u64,
    /// Packets that left it.
    pub left: u64,
    /// Packets that left, and were changed, by transformation.
    pub changed: [u64; Transform::ALL.len()],
    /// Packets that left and are not recognised as packets that entered.
    pub appeared: u64,
    /// Saved pages.
    pub pages: u64,
    /// The size of their files.
    pub bytes: u64,
}

/// Records the packets of a router in a store.
///
/// If the router changes packets, captures of both of its sides are needed: call
/// [`enter`](Recorder::enter) and [`leave`](Recorder::leave) in the order of time. Otherwise any
/// capture does, with [`forward`](Recorder::forward).
#[derive(Debug)]
pub struct Recorder {
    store: Store,
    router: String,
    settings: Settings,
    seed: Digest,
    open: Option<OpenPage>,
    passage: Passage,
    totals: Recorded,
}

/// The page that is being written.
#[derive(Debug)]
struct OpenPage {
    about: PageInfo,
    /// The multiple of the page's length at which it begins.
    start: Timestamp,
    digests: Vec<Digest>,
    notes: Vec<Note>,
}

impl Recorder {
    /// Returns a recorder for the router of this name. The seed should be secret and random: then
    /// nobody can craft packets that collide.
    ///
    /// # Errors
    ///
    /// Fails if the name or a setting is invalid.
    pub fn new(store: Store, router: &str, settings: Settings, seed: u64) -> Result<Recorder> {
        settings.check()?;
        check_name(router)?;
        // Routers that were given the same seed have different ones.
        let seed = Hasher::fast(seed).digest_bytes(router.as_bytes());
        let passage = Passage::default();
        let totals = Recorded::default();
        Ok(Recorder { store, router: router.to_owned(), settings, seed, open: None, passage, totals })
    }

    /// Records a packet that the router forwards.
    ///
    /// # Errors
    ///
    /// Fails if a full page cannot be saved.
    pub fn forward(&mut self, packet: &Packet<'_>) -> Result<()> {
        self.totals.packets += 1;
        self.insert(Invariant::from_packet(packet.ip)?.digest(), packet.time)
    }

    /// Records a packet that enters the router.
    ///
    /// # Errors
    ///
    /// Fails if a full page cannot be saved.
    pub fn enter(&mut self, packet: Sighting) -> Result<()> {
        self.totals.packets += 1;
        let (digest, time) = (packet.digest(), packet.time());
        self.passage.enter(packet);
        // Packets that left before belong to an earlier page.
        self.departures()?;
        self.insert(digest, time)
    }

    /// Records a packet that leaves the router.
    ///
    /// # Errors
    ///
    /// Fails if a full page cannot be saved.
    pub fn leave(&mut self, packet: Sighting) -> Result<()> {
        self.totals.left += 1;
        self.passage.leave(packet);
        self.departures()
    }

    /// Saves the last page.
    ///
    /// # Errors
    ///
    /// Fails if the page cannot be saved.
    pub fn finish(&mut self) -> Result<()> {
        self.passage.finish();
        self.departures()?;
        self.close()
    }

    /// Returns the counts so far.
    pub fn totals(&self) -> &Recorded {
        &self.totals
    }

    /// Records the packets that left, as soon as it is known which packets they were.
    fn departures(&mut self) -> Result<()> {
        while let Some(Departure { packet, is_unchanged, changes }) = self.passage.next() {
            let (after, time) = (packet.digest(), packet.time());
            if let Some(Change { how, .. }) = changes.first() {
                self.totals.changed[*how as usize] += 1;
            } else if !is_unchanged {
                // The router is the origin, as far as anyone can tell.
                self.totals.appeared += 1;
                self.insert(after, time)?;
            }
            for Change { before, how } in changes {
                self.page(time)?.notes.push(Note { after, time, before, how });
            }
        }
        Ok(())
    }

    fn insert(&mut self, packet: Digest, time: Timestamp) -> Result<()> {
        let page = self.page(time)?;
        page.digests.push(packet);
        page.about.packets += 1;
        Ok(())
    }

    /// Returns the page of this time. Saves the one before, if it is full or its time is over.
    fn page(&mut self, time: Timestamp) -> Result<&mut OpenPage> {
        let Settings { packets, .. } = self.settings;
        let length = self.settings.nanos();
        // Clocks may run backwards a little; packets stay in the page in which they were recorded.
        let is_over = |page: &OpenPage| {
            let full = page.digests.len() >= packets || page.notes.len() >= packets;
            full || time.nanos_since(page.start) >= length || page.start.nanos_since(time) > length
        };
        if self.open.as_ref().is_some_and(is_over) {
            self.close()?;
        }
        let (run, number) = (self.seed.get(), self.totals.pages);
        let page = self.open.get_or_insert_with(|| OpenPage {
            about: PageInfo {
                router: self.router.clone(),
                run,
                number,
                first: time,
                last: time,
                packets: 0,
                changes: 0,
            },
            start: Timestamp::from_nanos(time.nanos() - time.nanos() % length),
            digests: Vec::new(),
            notes: Vec::new(),
        });
        let about = &mut page.about;
        (about.first, about.last) = (about.first.min(time), about.last.max(time));
        Ok(page)
    }

    fn close(&mut self) -> Result<()> {
        let Some(OpenPage { about, digests, notes, .. }) = self.open.take() else { return Ok(()) };
        // Recordings that were given the same seed still differ by their times.
        let seed = self.seed.salted(about.number).salted(about.first.nanos()).get();
        let page = Page::build(about, digests, notes, self.settings.rate, seed)?;
        let path = self.store.add(&page)?;
        self.totals.pages += 1;
        self.totals.bytes += path.metadata().map_err(Error::io(&path, "examine"))?.len();
        Ok(())
    }
}
