//! A filter in front of any expensive lookup, which skips keys that are certainly absent.
//!
//! A [`Guard`] has a store and a filter of the store's keys. A lookup queries the filter first, and
//! the store only if the key may be present. The answers are always those of the store. The filter
//! only changes how often the store is queried, and the guard [counts](GuardStats) that.
//!
//! ```
//! use umbel_text::guard::{Files, Guard};
//! let folder = tempfile::tempdir()?;
//! for number in 0..100 {
//!     std::fs::write(folder.path().join(format!("{number}.txt")), "here")?;
//! }
//! // Wait until the changes have settled: a newer file could still have the same time.
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
//! - A key inserted through the guard goes into the filter first and then into the store. If the
//!   store fails, the filter has an extra key, which does no harm.
//! - A key removed through the guard stays in the filter, which does no harm either.
//!   [`Guard::remove_from_both`] also removes it from a filter that supports removal.
//! - Changes by others show in the store's [version](Lookup::version), which is compared before
//!   every use of the filter. If it differs from the filter's version, the filter is *stale*: all
//!   lookups go to the store until the filter is rebuilt from the store's keys. [`Renewal`] decides
//!   when.
//! - A filter with more keys than its capacity is rebuilt with a larger one, unless it grows by
//!   itself like [`Scalable`](umbel::Scalable).
//! - An error of the filter only makes it stale. Only errors of the store are returned.
//!
//! [`Files`] makes a store of a folder. `examples/guard_sqlite` has one of an SQLite table.

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

/// The minimum capacity of a filter. Above it, the capacity is twice the number of keys.
const MIN_CAPACITY: u64 = 1024;

/// A store in which looking a key up is expensive.
pub trait Lookup {
    /// The type of the keys.
    type Key: Key + ?Sized;
    /// The type of the values.
    type Value;
    /// The error type of the store.
    type Error;
    /// The version of the store's contents. `()` for a store that nothing else can change.
    type Version: PartialEq;

    /// Looks a key up.
    ///
    /// # Errors
    ///
    /// Returns the error of the store.
    fn get(&mut self, key: &Self::Key) -> Result<Option<Self::Value>, Self::Error>;

    /// Returns a version that changes to a new value whenever a key may have been added other than
    /// by [`Change::insert`] on this value, or `None` if the version is unknown at the moment.
    ///
    /// A store that cannot distinguish its own insertions from those of others may count both. The
    /// filter is then stale after each insertion, which is slow but correct.
    ///
    /// # Errors
    ///
    /// Returns the error of the store.
    fn version(&mut self) -> Result<Option<Self::Version>, Self::Error>;

    /// Calls `each` with every key, in any order. Returns `false` if the store cannot list its
    /// keys; its filter is then never rebuilt.
    ///
    /// # Errors
    ///
    /// Returns the error of the store.
    fn keys(&mut self, _each: &mut dyn FnMut(&Self::Key)) -> Result<bool, Self::Error> {
        Ok(false)
    }
}

/// A store that can be changed.
pub trait Change: Lookup {
    /// Writes a value under a key.
    ///
    /// # Errors
    ///
    /// Returns the error of the store.
    fn insert(&mut self, key: &Self::Key, value: Self::Value) -> Result<(), Self::Error>;

    /// Removes a key. Returns whether it was present.
    ///
    /// # Errors
    ///
    /// Returns the error of the store.
    fn remove(&mut self, key: &Self::Key) -> Result<bool, Self::Error>;
}

/// When a stale filter is rebuilt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Renewal {
    /// When the lookups without the filter have taken as long as its last build. The total time is
    /// then at most twice the optimum.
    #[default]
    WhenItPays,
    /// After this many lookups without the filter, or at once for 0.
    After(u64),
    /// Only when [`Guard::renew`] is called.
    Never,
}

/// The error of a guard that could not build its filter. It is separate from [`crate::Error`]
/// because it carries the error type of the store.
#[derive(Debug)]
#[non_exhaustive]
pub enum NoFilter<E> {
    /// The store failed.
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

/// A function that builds an empty filter for a number of keys.
type Make<F> = Box<dyn Fn(u64) -> umbel::Result<F> + Send>;

/// A store with a filter in front of it. See the [module documentation](self).
pub struct Guard<F, S: Lookup> {
    store: S,
    filter: F,
    make: Option<Make<F>>,
    /// The version of the store when the filter was built, or `None` while the filter lacks keys.
    version: Option<S::Version>,
    /// The capacity of the filter, and the number of its keys.
    room: u64,
    held: u64,
    renewal: Renewal,
    /// The number of lookups since the filter became stale, and the nanoseconds they took.
    without: u64,
    nanos_without: u64,
    /// The nanoseconds that the last build of the filter took.
    making: u64,
    stats: GuardStats,
}

impl<S: Lookup> Guard<Bloom<Blocked>, S> {
    /// Creates a guard whose filter has this false-positive rate, such as 0.01.
    ///
    /// The keys are hashed with a random secret, so a client that chooses the keys to look up cannot
    /// make more of them reach the store.
    ///
    /// # Errors
    ///
    /// Fails if the rate is out of range, the store fails or cannot list its keys, memory is short,
    /// or the system has no random numbers.
    pub fn with_rate(store: S, rate: f64) -> Result<Self, NoFilter<S::Error>> {
        let hasher = Hasher::random()?;
        let filter = move |keys| Bloom::builder().capacity(keys).rate(rate).hasher(hasher.clone()).build();
        Guard::new(store, filter)
    }
}

impl<F: Insert, S: Lookup> Guard<F, S> {
    /// Creates a guard whose filter is built by `make`, which receives the number of keys. Reads
    /// all keys of the store. Build filters with [`Hasher::random`] if others choose the keys, one
    /// hasher for all of them.
    ///
    /// # Errors
    ///
    /// Fails if the store fails or cannot list its keys, or if `make` fails.
    pub fn new(
        store: S,
        make: impl Fn(u64) -> umbel::Result<F> + Send + 'static,
    ) -> Result<Self, NoFilter<S::Error>> {
        let filter = make(MIN_CAPACITY)?;
        let mut guard = Guard::stale(store, filter, Some(Box::new(make)));
        guard.renew()?;
        // The first build is not a renewal.
        guard.stats.renewals = 0;
        Ok(guard)
    }

    /// Creates a guard with a filter that has every key of this version of the store, such as a
    /// filter from a file. The filter is never rebuilt.
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

    /// Sets the rule for when a stale filter is rebuilt.
    pub fn renewing(mut self, renewal: Renewal) -> Self {
        self.renewal = renewal;
        self
    }

    /// Looks a key up in the filter, and in the store unless the filter rules the key out.
    ///
    /// # Errors
    ///
    /// Returns the error of the store.
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

    /// Returns whether the filter has every key of the store. Rebuilds the filter first if that is
    /// due.
    fn is_current(&mut self) -> bool {
        // A store that fails here will fail again when the key is looked up.
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

    /// Rebuilds the filter from the keys of the store.
    ///
    /// # Errors
    ///
    /// Fails if the store fails or cannot list its keys, or if the new filter cannot be built. The
    /// old filter then stays.
    pub fn renew(&mut self) -> Result<(), NoFilter<S::Error>> {
        let start = Instant::now();
        // The next attempt waits as long again, whether or not this one succeeds.
        (self.without, self.nanos_without) = (0, 0);
        let renewed = self.renew_now();
        self.making = nanos(start);
        self.stats.renewal_nanos += self.making;
        renewed
    }

    fn renew_now(&mut self) -> Result<(), NoFilter<S::Error>> {
        let make = self.make.as_ref().ok_or(NoFilter::NoKeys)?;
        // Read the version before the keys: a key added in between then makes the version outdated.
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

    /// Returns the number of queries to the store, and how many the filter saved.
    pub fn stats(&self) -> GuardStats {
        self.stats
    }

    /// Returns the filter.
    pub fn filter(&self) -> &F {
        &self.filter
    }

    /// Returns the store. Any change through this reference must change the store's version.
    pub fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// Returns the store without the guard.
    pub fn into_store(self) -> S {
        self.store
    }
}

impl<F: Insert, S: Change> Guard<F, S> {
    /// Writes a value under a key. The key goes into the filter first, then both go into the store.
    ///
    /// # Errors
    ///
    /// Returns the error of the store.
    pub fn insert(&mut self, key: &S::Key, value: S::Value) -> Result<(), S::Error> {
        if self.held >= self.room && self.filter.kind() != Kind::Scalable && self.make.is_some() {
            // If the rebuild fails, the false-positive rate rises, which is slower but correct. Try
            // again after as many further keys.
            if self.renew().is_err() {
                self.room = self.room.saturating_mul(2);
            }
        }
        // Insert even if the filter is stale: an unknown version may turn out to be the same as
        // before.
        match self.filter.insert_digest(key.digest(self.filter.hasher())) {
            Ok(_) => self.held += 1,
            Err(_) => self.version = None,
        }
        self.store.insert(key, value)
    }

    /// Removes a key from the store. Returns whether it was present. The filter keeps the key.
    ///
    /// # Errors
    ///
    /// Returns the error of the store.
    pub fn remove(&mut self, key: &S::Key) -> Result<bool, S::Error> {
        self.store.remove(key)
    }
}

impl<F: Remove, S: Change> Guard<F, S> {
    /// Removes a key from the store and then from the filter. Returns whether it was present.
    ///
    /// A key that was written twice is in the filter twice. This removes it once, so the filter
    /// keeps the key until it is rebuilt.
    ///
    /// # Errors
    ///
    /// Returns the error of the store.
    pub fn remove_from_both(&mut self, key: &S::Key) -> Result<bool, S::Error> {
        let current = self.is_current();
        let was_there = self.store.remove(key)?;
        // Remove only a key that is certainly in the filter, because removing another one would
        // also remove parts of other keys.
        if current && was_there {
            let removed = self.filter.remove_digest(key.digest(self.filter.hasher()));
            self.held = self.held.saturating_sub(u64::from(removed == Removed::Removed));
        }
        Ok(was_there)
    }
}

/// Fails if a filter has a different hash from that of the digests.
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
