//! The traits of approximate sets, for code that is generic over the kind.
//!
//! [`Filter`] looks up keys, [`Insert`] adds them, [`Remove`] removes them. A program that uses one
//! kind needs none of these traits: every kind has the same operations as inherent methods, which
//! return no `Result` where the kind cannot fail.
//!
//! The basic methods of all three take digests, and the methods that take keys call them. The unit
//! of the hot path is a *tile* of up to 64 digests, whose answers are the bits of one `u64`. Kind
//! and instruction set are dispatched once per tile, and the answers of several filters combine
//! with AND and OR.

use crate::tile::{self, split_tile};
use crate::{Answers, Batch, Digest, Hasher, Key, Kind, Stats, TILE};
use std::convert::Infallible;

/// An approximate set that answers lookups.
///
/// "No" is certain, "yes" is probable.
///
/// ```
/// use umbel::{BloomFilter, Cuckoo, Filter, Fuse};
///
/// /// The share of keys that may be members.
/// fn share(filter: &impl Filter, keys: &[u64]) -> f64 {
///     filter.contains_batch(keys).count() as f64 / keys.len() as f64
/// }
///
/// let keys: Vec<u64> = (0..1000).collect();
/// assert_eq!(share(&Fuse::new(&keys, 0.01)?, &keys), 1.0);
/// assert_eq!(share(&BloomFilter::with_capacity(1000, 0.01)?, &keys), 0.0);
/// # Ok::<(), umbel::Error>(())
/// ```
pub trait Filter {
    /// Returns the kind of this filter.
    fn kind(&self) -> Kind;

    /// Returns the function that turns keys into the digests this filter understands.
    fn hasher(&self) -> &Hasher;

    /// Returns whether the key with this digest may be a member.
    fn contains_digest(&self, digest: Digest) -> bool;

    /// Looks up as many as 64 digests at once. Bit `i` of the answer is set if the key of `tile[i]`
    /// may be a member. Digests after the first 64 are ignored.
    fn contains_tile(&self, tile: &[Digest]) -> u64 {
        let answer = |(i, digest): (usize, &Digest)| u64::from(self.contains_digest(*digest)) << i;
        tile.iter().take(TILE).enumerate().map(answer).fold(0, |all, one| all | one)
    }

    /// Measures how full the filter is. Reads the whole filter.
    fn stats(&self) -> Stats;

    /// Returns whether `key` may be a member.
    fn contains<K: Key + ?Sized>(&self, key: &K) -> bool
    where
        Self: Sized,
    {
        self.contains_digest(key.digest(self.hasher()))
    }

    /// Looks up many keys, faster than one by one.
    fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers
    where
        Self: Sized,
    {
        let mut answers = Answers::with_capacity(keys.len());
        let Ok(()) = tile::each(keys, self.hasher(), |tile| {
            answers.push_tile(self.contains_tile(tile), tile.len());
            Ok::<(), Infallible>(())
        });
        answers
    }
}

/// An approximate set that supports insertion.
///
/// ```
/// use umbel::{Counting, Cuckoo, Insert};
///
/// fn fill<F: Insert>(filter: &mut F) -> Result<(), F::Error> {
///     filter.insert("apple")?;
///     filter.insert_batch(&["pear", "plum"])
/// }
///
/// let mut cuckoo = Cuckoo::with_capacity(1000, 0.01)?;
/// fill(&mut cuckoo)?;
/// assert!(cuckoo.contains("plum"));
/// # Ok::<(), umbel::Error>(())
/// ```
pub trait Insert: Filter {
    /// The error of a failed insertion: [`Infallible`](std::convert::Infallible) for kinds that
    /// accept every key.
    type Error: std::error::Error + Into<crate::Error> + Send + Sync + 'static;

    /// Inserts the key with this digest. Returns `true` if it was certainly not there before.
    ///
    /// # Errors
    ///
    /// If the filter has no room for another key. It is then unchanged.
    fn insert_digest(&mut self, digest: Digest) -> Result<bool, Self::Error>;

    /// Inserts digests in order.
    ///
    /// # Errors
    ///
    /// If a digest is refused. Those before it have been inserted, those after it have not.
    fn insert_tile(&mut self, tile: &[Digest]) -> Result<(), Self::Error> {
        tile.iter().try_for_each(|digest| self.insert_digest(*digest).map(drop))
    }

    /// Inserts digests in order. Bit `i` of the answer is set if `tile[i]` was certainly not there
    /// before. Finding out takes a little time, so this is a separate method. Digests after the
    /// first 64 are inserted without an answer.
    ///
    /// # Errors
    ///
    /// As [`insert_tile`](Insert::insert_tile).
    fn insert_tile_new(&mut self, tile: &[Digest]) -> Result<u64, Self::Error> {
        let (tile, rest) = split_tile(tile);
        let mut digests = tile.iter().enumerate();
        let new =
            digests.try_fold(0, |new, (i, digest)| Ok(new | u64::from(self.insert_digest(*digest)?) << i))?;
        self.insert_tile(rest)?;
        Ok(new)
    }

    /// Inserts `key`. Returns `true` if it was certainly not there before.
    ///
    /// # Errors
    ///
    /// As [`insert_digest`](Insert::insert_digest).
    fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, Self::Error>
    where
        Self: Sized,
    {
        self.insert_digest(key.digest(self.hasher()))
    }

    /// Inserts many keys, faster than one by one.
    ///
    /// # Errors
    ///
    /// As [`insert_tile`](Insert::insert_tile).
    fn insert_batch<B: Batch + ?Sized>(&mut self, keys: &B) -> Result<(), Self::Error>
    where
        Self: Sized,
    {
        let hasher = self.hasher().clone();
        tile::each(keys, &hasher, |tile| self.insert_tile(tile))
    }
}

/// An approximate set from which keys can be removed.
///
/// Only remove keys that were inserted. A kind that can detect other keys refuses them. But at the
/// filter's rate, a key that was never inserted looks like one that was: removing it may make the
/// filter forget another key. Use [`Remove::remove_checked`] if an exact answer is available.
///
/// ```
/// use umbel::{Counting, Insert, Remove, Removed};
///
/// fn replace<F: Remove>(filter: &mut F, old: &str, new: &str) -> Result<Removed, F::Error> {
///     filter.insert(new)?;
///     Ok(filter.remove(old))
/// }
///
/// let mut filter = Counting::with_capacity(1000, 0.01)?;
/// filter.insert("apple")?;
/// assert_eq!(replace(&mut filter, "apple", "pear")?, Removed::Removed);
/// # Ok::<(), umbel::Error>(())
/// ```
pub trait Remove: Insert {
    /// Removes one occurrence of the key with this digest. Unless the answer is
    /// [`Removed::Removed`], nothing has changed.
    fn remove_digest(&mut self, digest: Digest) -> Removed;

    /// Removes `key`; see [`remove_digest`](Remove::remove_digest).
    fn remove<K: Key + ?Sized>(&mut self, key: &K) -> Removed
    where
        Self: Sized,
    {
        self.remove_digest(key.digest(self.hasher()))
    }

    /// Removes `key` if it was certainly inserted. Calls `was_inserted`, which must know exactly,
    /// only if the filter answers "probably yes".
    fn remove_checked<K: Key + ?Sized>(&mut self, key: &K, was_inserted: impl FnOnce(&K) -> bool) -> Removed
    where
        Self: Sized,
    {
        let digest = key.digest(self.hasher());
        if self.contains_digest(digest) && was_inserted(key) {
            return self.remove_digest(digest);
        }
        Removed::NotPresent
    }
}

/// The outcome of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Removed {
    /// The key has been removed.
    Removed,
    /// The key was certainly not there.
    NotPresent,
    /// The key is there, but cannot be removed without touching other keys.
    NotDeletable,
}
