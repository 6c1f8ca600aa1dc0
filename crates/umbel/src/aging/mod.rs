//! Aging Bloom filters: sets that forget old keys.
//!
//! A key is found for a while after its last insertion and is then forgotten. The window is a
//! number of keys or a time span. The filter is a ring of generations: new keys go into the newest
//! one, and the oldest one is dropped.
//!
//! ```
//! use std::time::Duration;
//! use umbel::aging::{Aging, Options, Timestamp, Window};
//! use umbel::spec::KindOptions;
//! use umbel::Spec;
//!
//! // Addresses that sent too much in the last hour: up to a million of them.
//! let mut options = KindOptions::default();
//! options.aging = Options { window: Some(Window::Time(Duration::from_secs(3600))), ..Options::default() };
//! let mut banned = Aging::build(&Spec::new(1_000_000, 0.001)?.with_options(options))?;
//!
//! let start = Timestamp::from_millis(1_800_000_000_000);
//! let later = |minutes: u64| Timestamp::from_millis(start.millis() + minutes * 60_000);
//! banned.advance(start)?;
//! banned.insert("192.0.2.7");
//! banned.advance(later(50))?;
//! assert!(banned.contains("192.0.2.7"));
//! banned.advance(later(60))?;
//! assert!(!banned.contains("192.0.2.7"));
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # The window
//!
//! ```text
//! generation    [  g-1  ][  ...  ][   1   ][   0   ]
//!                   ^                          ^
//!                   dropped next               takes the keys
//! ```
//!
//! With g generations and a window of T, a key is found for more than T - T/g and at most T after
//! its last insertion; inserting it again restarts its window. Without a clock, the window is
//! counted in distinct keys: with a window of W, the last W - W/g keys are found, and a key that
//! was followed by W others is not. W is the capacity unless the options set another value.
//!
//! Each generation has 1/g of the memory. With a window of time, the rate holds as long as at most
//! 1/g of the capacity arrives in 1/g of the window. [`Aging::rate_of_held`] reports the rate after
//! a burst.
//!
//! # When to use it
//!
//! Use it to find out whether a key was seen *recently*: rate limits, bans, deduplication of a
//! stream. It costs 15.1 bits per key at 1 % with the default of eight generations. A lookup of an
//! absent key reads one cache line in every generation.
//!
//! # References
//!
//! * M. Yoon. *Aging Bloom filter with two active buffers for dynamic sets.* IEEE Transactions on
//!   Knowledge and Data Engineering 22(1), 2010. `Yoon10`

use crate::algebra::{Algebra, Mismatch};
use crate::chain::{self, Group, Link};
use crate::file::FormatError;
use crate::memory::{Mover, Words, relocate_vec};
use crate::methods::{insert_methods, set_methods, structure_methods};
use crate::sizing::{MAX_KEYS, Shape, aging, scalable};
use crate::structure::{self, BITS, Head, Parts, Probe, small};
pub use crate::timestamp::Timestamp;
use crate::{
    Answers, Batch, BloomFilter, Capabilities, Digest, Error, Filter, Hasher, Insert, Kind, Level, Plan,
    Result, Set, Spec, Stats, Structure,
};
use std::convert::Infallible;
use std::time::Duration;

/// The options of an aging filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// How long, or for how many keys, a key is remembered. `None` means a window of as many keys
    /// as the capacity.
    pub window: Option<Window>,
    /// The number of generations, g. More generations make the end of the window sharper and
    /// lookups slower.
    pub generations: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { window: None, generations: 8 }
    }
}

/// How long a key is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Window {
    /// A key is forgotten after this many other keys, rounded up to whole generations. Inserting a
    /// key that the newest generation already holds does not count.
    Keys(u64),
    /// A key is forgotten after this time, in whole milliseconds. No key is refused or dropped
    /// early, so the rate holds only as long as none of the g generations receives more than 1/g of
    /// the capacity. If all keys may arrive in one burst, plan for g times as many keys.
    Time(Duration),
}

/// The latest time that a filter can represent: files store the time in milliseconds plus 1, and 0
/// for no time.
const LAST: Timestamp = Timestamp::from_millis(u64::MAX - 1);

/// A set that forgets old keys; see the [module documentation](self).
pub struct Aging {
    head: Head,
    window: Window,
    /// The number of keys that each generation is planned for.
    planned: u64,
    ring: Vec<Generation>,
    /// The index in `ring` of the generation with the latest keys.
    newest: usize,
    /// The number of the generation that takes the next key. Generations that are `ring.len()` or
    /// more behind it are forgotten.
    current: u64,
    /// The latest time passed to [`advance`](Aging::advance).
    now: Option<Timestamp>,
}

#[derive(Debug)]
struct Generation {
    link: Link,
    /// The number of this generation; `None` if it was never used. Going around the ring from the
    /// generation after the newest to the newest, the numbers increase.
    number: Option<u64>,
}

impl Aging {
    /// Creates an empty filter that remembers the last `capacity` keys with a false-positive rate
    /// of at most `rate`.
    ///
    /// # Errors
    ///
    /// Returns an error if `capacity` or `rate` is out of range, or if there is not enough memory.
    pub fn with_capacity(capacity: u64, rate: f64) -> Result<Aging> {
        Aging::build(&Spec::new(capacity, rate)?)
    }

    /// Returns the window after which a key is forgotten.
    pub fn window(&self) -> Window {
        self.window
    }

    /// Returns the number of generations that the window is divided into.
    pub fn generations(&self) -> usize {
        self.ring.len()
    }

    /// Returns the number of keys that are not forgotten. A key that was inserted again counts once
    /// in each generation that holds it.
    pub fn held(&self) -> u64 {
        // A file may claim any number of keys.
        self.at_current().live().fold(0, |held, (_, link)| held.saturating_add(link.keys))
    }

    /// Returns the false-positive rate the theory predicts for the keys that each generation holds
    /// now.
    ///
    /// With a window of time, a burst of keys goes into a single generation, far beyond its share.
    /// The rate is then higher than [`Structure::predicted_rate`] returns for the same number of
    /// keys spread evenly. Keys that were taken for repeated ones are not counted as held, so the
    /// result is too low where there are many of them.
    ///
    /// # Errors
    ///
    /// Returns an error if the rate of a generation cannot be computed.
    pub fn rate_of_held(&self) -> Result<f64> {
        let rate = |(_, link): (usize, &Link)| scalable::shape_rate(link.shape, link.keys.min(MAX_KEYS));
        Ok(scalable::compound(self.at_current().live().map(rate).collect::<Result<Vec<f64>>>()?))
    }

    /// Returns the latest time passed to [`Aging::advance`], if any.
    pub fn now(&self) -> Option<Timestamp> {
        self.now
    }

    /// Sets the time and forgets the keys whose window has ended by then. Only the time itself is
    /// written, so this also works for filters in mapped files.
    ///
    /// Keys that were inserted before the first call count as inserted at the time of that call.
    ///
    /// # Errors
    ///
    /// Returns an error if `now` is before the latest time, or if the window is a number of keys.
    pub fn advance(&mut self, now: Timestamp) -> Result<()> {
        let Window::Time(time) = self.window else {
            let why = "its window is a number of keys; build it with a window of time";
            return Err(Error::cannot(Kind::Aging, "follow a clock", why));
        };
        // Filters count time in whole milliseconds.
        let now = Timestamp::from_millis(now.millis()).min(LAST);
        match self.now {
            Some(last) if now < last => return Err(Error::Clock { last, got: now }),
            Some(_) => self.current = period(now, time, self.ring.len()),
            None => {
                self.current = period(now, time, self.ring.len());
                let newest = &mut self.ring[self.newest];
                newest.number = newest.number.map(|_| self.current);
            }
        }
        self.now = Some(now);
        Ok(())
    }

    /// Returns a view of the filter at the given time without changing the filter, for callers that
    /// may only read it. A time before the latest one counts as the latest one. If no time was set
    /// yet, or the window is a number of keys, the view is of the filter as it is now.
    ///
    /// ```
    /// use std::time::Duration;
    /// use umbel::aging::{Aging, Options, Timestamp, Window};
    /// use umbel::spec::KindOptions;
    /// use umbel::Spec;
    ///
    /// let mut options = KindOptions::default();
    /// options.aging = Options { window: Some(Window::Time(Duration::from_secs(60))), ..Options::default() };
    /// let mut seen = Aging::build(&Spec::new(1000, 0.001)?.with_options(options))?;
    /// seen.advance(Timestamp::from_millis(1_800_000_000_000))?;
    /// seen.insert("apple");
    /// assert_eq!(seen.at(Timestamp::from_millis(1_800_000_030_000)).contains_batch(&["apple"]).count(), 1);
    /// assert_eq!(seen.at(Timestamp::from_millis(1_800_000_060_000)).contains_batch(&["apple"]).count(), 0);
    /// assert!(seen.contains("apple"));
    /// # Ok::<(), umbel::Error>(())
    /// ```
    pub fn at(&self, now: Timestamp) -> At<'_> {
        let current = match (self.window, self.now) {
            (Window::Time(time), Some(last)) => period(now.clamp(last, LAST), time, self.ring.len()),
            _ => self.current,
        };
        At { filter: self, current }
    }

    /// Returns a view of the filter at the time it was last advanced to.
    fn at_current(&self) -> At<'_> {
        At { filter: self, current: self.current }
    }

    /// Returns the newest generation if it takes the next key.
    fn open(&self) -> Option<&Link> {
        let Generation { link, number } = &self.ring[self.newest];
        (*number == Some(self.current)).then_some(link)
    }

    /// Returns how many new keys the current generation still takes.
    fn room(&self) -> u64 {
        match self.window {
            Window::Keys(keys) => {
                keys.div_ceil(self.ring.len() as u64) - self.open().map_or(0, |newest| newest.keys)
            }
            Window::Time(_) => u64::MAX,
        }
    }

    /// Returns the generation that takes the next key. A new generation replaces the oldest one in
    /// the ring, which is forgotten by then.
    fn turn(&mut self) -> &mut Link {
        if self.open().is_none() {
            // A ring that was never used starts at its current slot instead of the next one.
            let step = usize::from(self.ring[self.newest].number.is_some());
            let next = (self.newest + step) % self.ring.len();
            let Generation { link, number } = &mut self.ring[next];
            if number.is_some() {
                link.clear();
            }
            // A file may claim keys in a generation that was never used.
            (link.keys, *number, self.newest) = (0, Some(self.current), next);
        }
        &mut self.ring[self.newest].link
    }

    /// Inserts digests in order and skips those that the newest generation already holds. Older
    /// generations are not checked, because a key that only they hold must be refreshed.
    fn insert_all(&mut self, digests: &[Digest]) {
        let mut rest = digests;
        while !rest.is_empty() {
            if self.room() == 0 {
                let newest = &self.ring[self.newest].link.filter;
                let known = rest.iter().take_while(|digest| newest.contains_digest(**digest)).count();
                rest = &rest[known..];
                // The first digest that is not in the newest generation starts the next one.
                self.current += u64::from(!rest.is_empty());
            } else {
                let room = self.room();
                let done = self.turn().fill(rest, room, |_| ());
                rest = &rest[done..];
            }
        }
        self.head.count_inserted(digests.len());
    }

    fn empty(head: Head, window: Window, planned: u64, shape: Shape, generations: usize) -> Result<Aging> {
        let generation = |_| Ok(Generation { link: Link::new(shape, &head)?, number: None });
        let ring = (0..generations).map(generation).collect::<Result<_>>()?;
        Ok(Aging { head, window, planned, ring, newest: 0, current: 0, now: None })
    }

    fn shape(&self) -> Shape {
        self.ring[0].link.shape
    }
}

/// Returns the number of the generation that `now` falls into. Each generation lasts a
/// `generations`-th of the window, and they are counted from the start of 1970.
fn period(now: Timestamp, window: Duration, generations: usize) -> u64 {
    // The quotient is at most `now`, since every generation lasts at least a millisecond.
    (u128::from(now.millis()) * generations as u128 / window.as_millis().max(1)) as u64
}

fn check_window(window: Window, capacity: u64, generations: u32) -> Result<()> {
    match window {
        Window::Keys(keys) if !(1..=capacity).contains(&keys) => {
            let needs = format!("1 to {capacity} keys, the capacity for which it is planned");
            Err(Error::parameter("window", keys, needs))
        }
        Window::Time(time) if time.as_millis() < generations.into() => {
            let needs = format!("at least a millisecond for each of {generations} generations");
            Err(Error::parameter("window", format!("{time:?}"), needs))
        }
        Window::Time(time) if u64::try_from(time.as_millis()).is_err() => {
            Err(Error::parameter("window", format!("{time:?}"), "less than 2^64 milliseconds"))
        }
        _ => Ok(()),
    }
}

/// A read-only view of a filter at a given time; see [`Aging::at`].
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    filter: &'a Aging,
    /// The number of the generation that would take a key at that time.
    current: u64,
}

impl<'a> At<'a> {
    /// Returns which of the keys the filter may hold at that time.
    pub fn contains_batch<B: Batch + ?Sized>(self, keys: &B) -> Answers {
        chain::contains_batch(&self.filter.head, self.filters(), keys)
    }

    /// Returns statistics of the filter at that time. The estimate counts keys that were inserted
    /// again once, as far as the generations can be told apart; its error covers the rest.
    pub fn stats(self) -> Stats {
        let (size, ring) = (self.filter.ring[0].link.size, self.filter.ring.len() as u64);
        let stats = Stats {
            cells: size.bits * ring,
            bits: size.bits * ring,
            hashes: size.hashes,
            bytes: size.bytes * ring,
            details: vec![("generations", ring as f64), ("live generations", self.live().count() as f64)],
            ..Stats::from_structure(self.filter)
        };
        let live: Vec<Stats> = self.live().map(|(_, link)| link.filter.stats()).collect();
        chain::sum_up(Stats { estimate: self.cardinality(&live), ..stats }, &live)
    }

    /// Iterates over the generations that are not forgotten, newest first, with their indices in
    /// the ring.
    fn live(self) -> impl Iterator<Item = (usize, &'a Link)> + Clone {
        let Aging { ring, newest, .. } = self.filter;
        let around = (0..ring.len()).map(move |age| (newest + ring.len() - age) % ring.len());
        around.filter_map(move |i| self.is_live(ring[i].number?).then_some((i, &ring[i].link)))
    }

    fn is_live(self, number: u64) -> bool {
        self.current.saturating_sub(number) < self.filter.ring.len() as u64
    }

    fn filters(self) -> impl Iterator<Item = &'a BloomFilter> + Clone {
        self.live().map(|(_, link)| &*link.filter)
    }
}

structure_methods!([] Aging);
set_methods!([] Aging);
insert_methods!([] Aging);

impl structure::sealed::Sealed for Aging {}

/// The number of parameters in a file before those of the generations.
const FIXED_PARAMS: usize = 9;
/// The number of parameters in a file for each generation.
const GENERATION_PARAMS: usize = 2;

impl Structure for Aging {
    const KIND: Kind = Kind::Aging;

    const CAPABILITIES: Capabilities = Capabilities { forget: true, multiset: true, ..Capabilities::NOTHING };

    fn plan(spec: &Spec) -> Result<Plan> {
        let Options { window, generations } = spec.options().aging;
        aging::check_generations(generations)?;
        let ring = u64::from(generations);
        let bits = |n, p| Ok(chain::measure(aging::generation(n, p, generations)?)?.bits * ring);
        let (n, p) = chain::keys_and_rate(spec, bits)?;
        let shape = aging::generation(n, p, generations)?;
        check_window(window.unwrap_or(Window::Keys(n)), n, generations)?;
        let size = chain::measure(shape)?;
        spec.finish(Plan {
            kind: Kind::Aging,
            capacity: n,
            bits: size.bits * ring,
            stored_bits: size.bits * ring,
            bytes: size.bytes * ring,
            hashes: size.hashes,
            lines_touched: size.lines_touched * generations,
            rate_asked: p,
            rate: aging::rate(shape, n.div_ceil(ring), generations, n)?,
        })
    }

    /// Predicts the rate with `n` keys in the window.
    fn predicted_rate(&self, n: u64) -> Result<f64> {
        aging::rate(self.shape(), self.planned, self.ring.len() as u32, n)
    }

    fn try_clone(&self) -> Result<Aging> {
        let copy = |generation: &Generation| {
            Ok(Generation { link: generation.link.try_clone()?, number: generation.number })
        };
        let ring = self.ring.iter().map(copy).collect::<Result<_>>()?;
        Ok(Aging { head: self.head.clone(), ring, ..*self })
    }

    fn trace(&self, digest: Digest, probe: &mut dyn FnMut(Probe) -> Result<()>) -> Result<bool> {
        chain::trace(self.at_current().live().map(|(i, link)| (i, &*link.filter)), digest, probe)
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn head_mut(&mut self) -> &mut Head {
        &mut self.head
    }

    /// The parameters of a file:
    ///
    /// * the kind of a generation, the two numbers of its layout, and the keys it is planned for;
    /// * the window: 0 and its number of keys, or 1 and its milliseconds;
    /// * the time plus 1, or 0 if none was set;
    /// * the number of the current generation, and the section of the newest one;
    /// * for each generation, its number plus 1 (0 if it was never used) and its keys.
    fn params(&self) -> Vec<u64> {
        let [kind, a, b] = self.ring[0].link.numbers();
        let (type_of_window, length) = match self.window {
            Window::Keys(keys) => (0, keys),
            Window::Time(time) => (1, time.as_millis() as u64),
        };
        let now = self.now.map_or(0, |now| now.millis() + 1);
        let mut params =
            vec![kind, a, b, self.planned, type_of_window, length, now, self.current, self.newest as u64];
        for Generation { link, number } in &self.ring {
            params.extend([number.map_or(0, |number| number + 1), link.keys]);
        }
        params
    }

    fn sections(&self) -> Vec<(u32, &Words)> {
        let words = self.ring.iter().map(|generation| generation.link.filter.words());
        words.map(|words| (BITS, words)).collect()
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.ring.iter_mut().for_each(|generation| generation.link.relocate(mover));
        relocate_vec(&mut self.ring, mover);
    }

    fn restore(mut parts: Parts) -> Result<Aging> {
        let invalid = |what: String| Error::from(FormatError::invalid(what));
        let params = std::mem::take(&mut parts.params);
        let Some((fixed, generations)) = params.split_first_chunk::<FIXED_PARAMS>() else {
            return Err(invalid("there are too few parameters".into()));
        };
        let &[kind, a, b, planned, type_of_window, length, now, current, newest] = fixed;
        let (generations, rest) = generations.as_chunks::<GENERATION_PARAMS>();
        let (claimed, sections) = (generations.len(), parts.sections.len());
        if !rest.is_empty() || claimed != sections {
            return Err(invalid(format!("it claims {claimed} generations, and has {sections} sections")));
        }
        aging::check_generations(small(claimed as u64))?;
        let window = match type_of_window {
            0 => Window::Keys(length),
            1 => Window::Time(Duration::from_millis(length)),
            other => return Err(FormatError::Unknown { what: format!("a window of type {other}") }.into()),
        };
        check_window(window, planned.saturating_mul(claimed as u64), claimed as u32)?;
        let now = now.checked_sub(1).map(Timestamp::from_millis);
        let expected = match (window, now) {
            (Window::Time(time), Some(now)) => period(now, time, claimed),
            (Window::Time(_), None) => 0,
            // No filter has ever counted further than this, and as many numbers are left to count.
            (Window::Keys(_), _) => current.min(u64::MAX / 2),
        };
        let newest = usize::try_from(newest).ok().filter(|newest| *newest < claimed);
        let (Some(newest), true) = (newest, expected == current) else {
            return Err(invalid(format!(
                "generation {current} does not match its time, or its newest generation is missing"
            )));
        };
        let mut ring = Vec::new();
        for &[number, keys] in generations {
            let link = Link::restore(&mut parts, [kind, a, b], keys)?;
            ring.push(Generation { link, number: number.checked_sub(1) });
        }
        let around = (1..=claimed).filter_map(|step| ring[(newest + step) % claimed].number);
        let newer = |last: Option<u64>| last.is_some_and(|last| last > current);
        if !around.clone().is_sorted_by(|a, b| a < b) || newer(around.max()) {
            return Err(invalid("its generations are not in order".into()));
        }
        let filter = Aging { head: parts.finish()?, window, planned, ring, newest, current, now };
        // `room` subtracts the keys of the newest generation from its share of the window, so a
        // larger claim would underflow.
        match (window, filter.open()) {
            (Window::Keys(keys), Some(open)) if open.keys > keys.div_ceil(claimed as u64) => {
                Err(invalid(format!("its newest generation claims {} keys", open.keys)))
            }
            _ => Ok(filter),
        }
    }

    fn check_contents(&self) -> Result<(), FormatError> {
        self.ring.iter().try_for_each(|generation| generation.link.filter.check_contents())
    }

    fn set_level(&mut self, level: Level) {
        self.head.level = level;
        self.ring.iter_mut().for_each(|generation| generation.link.filter.set_level(level));
    }
}

impl Set for Aging {
    fn build(spec: &Spec) -> Result<Aging> {
        let plan = Aging::plan(spec)?;
        let Options { window, generations } = spec.options().aging;
        let shape = aging::generation(plan.capacity, plan.rate_asked, generations)?;
        let planned = plan.capacity.div_ceil(generations.into());
        let window = window.unwrap_or(Window::Keys(plan.capacity));
        Aging::empty(Head::planned(spec, &plan), window, planned, shape, generations as usize)
    }

    /// Forgets all keys, but keeps the time.
    fn clear(&mut self) {
        for generation in &mut self.ring {
            generation.link.clear();
            generation.number = None;
        }
        self.newest = 0;
        self.head = self.head.emptied();
    }

    fn try_clone_empty(&self) -> Result<Aging> {
        let head = self.head.emptied();
        let empty = Aging::empty(head, self.window, self.planned, self.shape(), self.ring.len())?;
        Ok(Aging { current: self.current, now: self.now, ..empty })
    }
}

impl Filter for Aging {
    fn kind(&self) -> Kind {
        Kind::Aging
    }

    fn hasher(&self) -> &Hasher {
        &self.head.hasher
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        chain::contains_digest(self.head.level, self.at_current().filters(), digest)
    }

    fn contains_tile(&self, tile: &[Digest]) -> u64 {
        chain::contains_tile(self.at_current().filters(), tile)
    }

    fn stats(&self) -> Stats {
        self.at_current().stats()
    }

    fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        self.at_current().contains_batch(keys)
    }
}

impl Insert for Aging {
    type Error = Infallible;

    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Infallible> {
        let new = !self.contains_digest(digest);
        self.insert_all(&[digest]);
        Ok(new)
    }

    fn insert_tile(&mut self, tile: &[Digest]) -> Result<(), Infallible> {
        self.insert_all(tile);
        Ok(())
    }

    fn insert_batch<B: Batch + ?Sized>(&mut self, keys: &B) -> Result<(), Infallible> {
        let head = self.head.clone();
        Group::each(&head, keys, |group| {
            self.insert_all(group.missing());
            Ok(())
        })
    }
}

impl Algebra for Aging {
    fn mismatch(&self, other: &Aging) -> Option<Mismatch> {
        let window = |filter: &Aging| format!("{:?}", filter.window);
        Mismatch::between("number of generations", self.ring.len(), other.ring.len())
            .or_else(|| Mismatch::between("window", window(self), window(other)))
            .or_else(|| self.ring[0].link.filter.mismatch(&other.ring[0].link.filter))
    }

    fn union(&mut self, _: &Aging) -> Result<()> {
        let why = "their generations do not begin at the same keys; insert the keys of one into the other";
        Err(Error::cannot(Kind::Aging, "be united", why))
    }
}

mod estimate;

#[cfg(test)]
mod tests;
