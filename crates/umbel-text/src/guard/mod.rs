//! A filter in front of any expensive lookup: what is certainly not there is not looked for.
//!
//! A [`Guard`] has a store and a filter of the store's keys. A lookup asks the filter first, and the store only if the filter
//! says maybe. The answers are those of the store, always; what the filter changes is how often the store is asked, and the
//! guard [counts](GuardStats) that.
//!
//! ```
//! use umbel_text::guard::{Files, Guard};
//! let folder = tempfile::tempdir()?;
//! for number in 0..100 {
//!     std::fs::write(folder.path().join(format!("{number}.txt")), "here")?;
//! }
//! // Files that are as new as that may be followed by others of the same age.
//! std::thread::sleep(std::time::Duration::from_millis(60));
//! let files = Files::new(folder.path()).settling(std::time::Duration::from_millis(50));
//! let mut guard = Guard::with_rate(files, 0.01)?;
//! for number in 0..1000 {
//!     assert_eq!(guard.get(&format!("{number}.txt"))?.is_some(), number < 100);
//! }
//! let stats = guard.stats();
//! assert_eq!((stats.asked, stats.found), (1000, 100));
//! assert!(stats.skipped > 850, "of 900 that are not there");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When the store changes
//!
//! - What is inserted through the guard goes into the filter first and into the store after that. If the store fails, the
//!   filter has a key too many, which does no harm.
//! - What is removed through the guard stays in the filter, which does no harm either; a filter that can remove keys does so in
//!   [`Guard::remove_from_both`].
//! - What others change is noticed by the store's [version](Lookup::version), which is asked before every answer that the
//!   filter gives. If it is another one than that of the filter, the filter is *stale*: everything is looked for in the store,
//!   until the filter is made anew from the store's keys. [`Renewal`] says when that is.
//! - When the filter holds more keys than it was made for, it is made anew as well, for more. If it grows by itself, as a
//!   [`Scalable`](umbel::Scalable) does, it is left alone.
//! - Whatever goes wrong with the filter makes it stale, and nothing worse. Only errors of the store are handed on.
//!
//! [`Files`] is a folder as a store. `examples/guard_sqlite` has a table of SQLite.

mod files;
mod stats;

pub use files::Files;
pub use stats::GuardStats;

use std::error::Error;
use std::fmt;
use std::time::Instant;
use umbel::internals::write_causes;
use umbel::key::Hashed;
use umbel::{Blocked, Bloom, Filter, Hasher, Insert, Key, Kind, Remove, Removed};

/// The least capacity of a filter. Otherwise it is twice the number of keys.
const MIN_CAPACITY: u64 = 1024;

/// A store in which looking for a key is expensive.
pub trait Lookup {
    /// What is looked for.
    type Key: Key + ?Sized;
    /// What is found.
    type Value;
    /// What can go wrong.
    type Error;
    /// Which state of the store it is. `()` for a store that nobody else can change.
    type Version: PartialEq;

    /// Looks for a key.
    fn get(&mut self, key: &Self::Key) -> Result<Option<Self::Value>, Self::Error>;

    /// A version that changes, for good, whenever a key may have been added by anything but [`Change::insert`] of this value.
    /// `None` if it cannot be told at the moment.
    ///
    /// A store that cannot tell its own insertions from those of others may count them too. The filter is then stale after each
    /// of them: that is slow, but right.
    fn version(&mut self) -> Result<Option<Self::Version>, Self::Error>;

    /// Hands on every key, in any order. `false` if the store cannot do that; then a filter cannot be made anew.
    fn keys(&mut self, _each: &mut dyn FnMut(&Self::Key)) -> Result<bool, Self::Error> {
        Ok(false)
    }
}

/// A store that can be changed.
pub trait Change: Lookup {
    /// Writes a value under a key.
    fn insert(&mut self, key: &Self::Key, value: Self::Value) -> Result<(), Self::Error>;

    /// Removes a key; whether it was there.
    fn remove(&mut self, key: &Self::Key) -> Result<bool, Self::Error>;
}

/// When a stale filter is made anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Renewal {
    /// When the lookups that had to do without it have taken as long as it took the last time to make it: so that never more
    /// than twice the time is spent that would have been necessary.
    #[default]
    WhenItPays,
    /// After so many lookups without it; at once after 0.
    After(u64),
    /// When [`Guard::renew`] is called.
    Never,
}

/// The error of a guard that could not build its filter. It has a type of its own because it carries the error type of the
/// store.
#[derive(Debug)]
#[non_exhaustive]
pub enum NoFilter<E> {
    /// The store has failed.
    Store(E),
    /// The store cannot list its keys.
    NoKeys,
    /// The filter could not be built.
    Filter(umbel::Error),
}

impl<E: Error + 'static> fmt::Display for NoFilter<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoFilter::Store(_) => "the store has failed",
            NoFilter::NoKeys => "the store cannot tell its keys: bring a filter of them",
            NoFilter::Filter(_) => "the filter could not be built",
        })?;
        write_causes(self, f)
    }
}

impl<E: Error + 'static> Error for NoFilter<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            NoFilter::Store(error) => Some(error),
            NoFilter::NoKeys => None,
            NoFilter::Filter(error) => Some(error),
        }
    }
}

impl<E> From<umbel::Error> for NoFilter<E> {
    fn from(error: umbel::Error) -> NoFilter<E> {
        NoFilter::Filter(error)
    }
}

/// Makes an empty filter for so many keys.
type Make<F> = Box<dyn Fn(u64) -> umbel::Result<F> + Send>;

/// A store with a filter in front of it; the [module](self) tells more.
pub struct Guard<F, S: Lookup> {
    store: S,
    filter: F,
    make: Option<Make<F>>,
    /// That of the store when the filter was made; none while the filter lacks keys.
    version: Option<S::Version>,
    /// Keys that the filter is for, and keys that it has.
    room: u64,
    held: u64,
    renewal: Renewal,
    /// Lookups without the filter since it is stale, and the nanoseconds that they took.
    without: u64,
    nanos_without: u64,
    /// Nanoseconds that it took to make the filter, the last time.
    making: u64,
    stats: GuardStats,
}

impl<S: Lookup> Guard<Bloom<Blocked>, S> {
    /// A guard that lets one of so many keys pass that are not there, such as 0.01.
    pub fn with_rate(store: S, rate: f64) -> Result<Self, NoFilter<S::Error>> {
        Guard::new(store, move |keys| Bloom::with_capacity(keys, rate))
    }
}

impl<F: Insert, S: Lookup> Guard<F, S> {
    /// A guard whose filter is made by `make`, which is told for how many keys. Reads all keys of the store.
    pub fn new(
        store: S,
        make: impl Fn(u64) -> umbel::Result<F> + Send + 'static,
    ) -> Result<Self, NoFilter<S::Error>> {
        let filter = make(MIN_CAPACITY)?;
        let mut guard = Guard::stale(store, filter, Some(Box::new(make)));
        guard.renew()?;
        // It was not stale: there was none.
        guard.stats.renewals = 0;
        Ok(guard)
    }

    /// A guard with a filter that has every key that the store had when it had this version, such as one from a file. It is
    /// never made anew.
    pub fn with_filter(store: S, filter: F, version: S::Version) -> Self {
        Guard { version: Some(version), ..Guard::stale(store, filter, None) }
    }

    fn stale(store: S, filter: F, make: Option<Make<F>>) -> Self {
        Guard {
            store,
            filter,
            make,
            version: None,
            room: u64::MAX,
            held: 0,
            renewal: Renewal::default(),
            without: 0,
            nanos_without: 0,
            making: 0,
            stats: GuardStats::default(),
        }
    }

    /// With another rule for when a stale filter is made anew.
    pub fn renewing(mut self, renewal: Renewal) -> Self {
        self.renewal = renewal;
        self
    }

    /// Looks for a key: in the filter, and in the store if the filter does not say no.
    pub fn get(&mut self, key: &S::Key) -> Result<Option<S::Value>, S::Error> {
        self.stats.asked += 1;
        let start = Instant::now();
        let current = self.is_current();
        let certainly_not = current && !self.filter.contains_digest(key.digest(self.filter.hasher()));
        self.stats.filter_nanos += nanos(start);
        if certainly_not {
            self.stats.skipped += 1;
            return Ok(None);
        }
        let start = Instant::now();
        let answer = self.store.get(key);
        let taken = nanos(start);
        self.stats.store_asked(&answer, current, taken);
        if !current {
            self.without += 1;
            self.nanos_without += taken;
        }
        answer
    }

    /// Whether the filter has every key that the store has; made anew, if it is time for that.
    fn is_current(&mut self) -> bool {
        // If the store does not answer, then let it say so when it is asked for the key.
        let Ok(Some(now)) = self.store.version() else { return false };
        if self.version.as_ref() == Some(&now) {
            return true;
        }
        let due = match self.renewal {
            Renewal::Never => false,
            Renewal::After(lookups) => self.without >= lookups,
            Renewal::WhenItPays => self.nanos_without >= self.making,
        };
        due && self.make.is_some() && self.renew().is_ok() && self.version.is_some()
    }

    /// Makes the filter anew from the keys of the store.
    pub fn renew(&mut self) -> Result<(), NoFilter<S::Error>> {
        let start = Instant::now();
        // Whether this succeeds or not: the next attempt has to wait as long.
        (self.without, self.nanos_without) = (0, 0);
        let renewed = self.renew_now();
        self.making = nanos(start);
        self.stats.renewal_nanos += self.making;
        renewed
    }

    fn renew_now(&mut self) -> Result<(), NoFilter<S::Error>> {
        let make = self.make.as_ref().ok_or(NoFilter::NoKeys)?;
        // Before the keys: what is added while they are read makes this version an old one.
        let version = self.store.version().map_err(NoFilter::Store)?;
        let (hasher, mut digests) = (self.filter.hasher().clone(), Vec::new());
        let listed = self.store.keys(&mut |key| digests.push(key.digest(&hasher)));
        if !listed.map_err(NoFilter::Store)? {
            return Err(NoFilter::NoKeys);
        }
        let keys = digests.len() as u64;
        let room = (2 * keys).max(MIN_CAPACITY);
        let mut filter = make(room)?;
        same_hash(&filter, &hasher)?;
        filter.insert_batch(&Hashed(&digests)).map_err(Into::<umbel::Error>::into)?;
        (self.filter, self.version, self.room, self.held) = (filter, version, room, keys);
        self.stats.renewals += 1;
        Ok(())
    }

    /// Returns how often the store was queried, and how often the filter saved a query.
    pub fn stats(&self) -> GuardStats {
        self.stats
    }

    /// The filter.
    pub fn filter(&self) -> &F {
        &self.filter
    }

    /// The store. Who changes it here has to make sure that its version tells.
    pub fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// The store, without the guard.
    pub fn into_store(self) -> S {
        self.store
    }
}

impl<F: Insert, S: Change> Guard<F, S> {
    /// Writes a value under a key: the key into the filter, then both into the store.
    pub fn insert(&mut self, key: &S::Key, value: S::Value) -> Result<(), S::Error> {
        if self.held >= self.room && self.filter.kind() != Kind::Scalable && self.make.is_some() {
            // If that fails the filter says maybe more often than it should: right, though slower. It is tried again when as
            // many keys have come again.
            if self.renew().is_err() {
                self.room = self.room.saturating_mul(2);
            }
        }
        // Whether it is current or not: a version that could not be told may be the same as before.
        match self.filter.insert_digest(key.digest(self.filter.hasher())) {
            Ok(_) => self.held += 1,
            Err(_) => self.version = None,
        }
        self.store.insert(key, value)
    }

    /// Removes a key from the store; whether it was there. The filter goes on to say maybe.
    pub fn remove(&mut self, key: &S::Key) -> Result<bool, S::Error> {
        self.store.remove(key)
    }
}

impl<F: Remove, S: Change> Guard<F, S> {
    /// Removes a key from the store and then from the filter; whether it was there.
    ///
    /// What is written twice under one key is in the filter twice, and this takes it out once: the filter says maybe until it
    /// is made anew.
    pub fn remove_from_both(&mut self, key: &S::Key) -> Result<bool, S::Error> {
        let current = self.is_current();
        let was_there = self.store.remove(key)?;
        // Only what is certainly in the filter may be taken out: else other keys are forgotten with it.
        if current && was_there {
            let removed = self.filter.remove_digest(key.digest(self.filter.hasher()));
            self.held = self.held.saturating_sub(u64::from(removed == Removed::Removed));
        }
        Ok(was_there)
    }
}

/// The digests were made with the hash of the filter before.
fn same_hash(filter: &impl Filter, hasher: &Hasher) -> umbel::Result<()> {
    if filter.hasher() == hasher {
        return Ok(());
    }
    let needs = "the same hash for every filter that is made for a guard";
    Err(umbel::Error::parameter("hash", filter.hasher().id(), needs))
}

fn nanos(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
