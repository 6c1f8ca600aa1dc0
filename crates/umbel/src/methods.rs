//! The common operations of every kind as inherent methods, written once.
//!
//! A program that uses one kind imports one name. The traits [`Filter`](crate::Filter),
//! [`Insert`](crate::Insert) and the others are for generic code. These macros define the same
//! methods for each kind, without a `Result` where it cannot fail. Each macro takes the generics
//! and the type.

/// Methods of everything that a file can hold: design, copies, bytes and files.
macro_rules! structure_methods {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> $type {
            /// Returns the number of keys and the rate it was planned for; `None` if it was made
            /// without a plan.
            pub fn design(&self) -> Option<$crate::kind::Design> {
                $crate::structure::Structure::design(self)
            }

            /// Returns the number of insertions, less the removals; `None` if it is unknown, such
            /// as after a union.
            pub fn inserted(&self) -> Option<u64> {
                $crate::structure::Structure::inserted(self)
            }

            /// Computes the false-positive rate that theory predicts after `n` distinct keys.
            ///
            /// # Errors
            ///
            /// If `n` is more than the theory covers.
            pub fn predicted_rate(&self, n: u64) -> $crate::Result<f64> {
                $crate::structure::Structure::predicted_rate(self, n)
            }

            /// Returns a copy that owns its memory.
            ///
            /// # Errors
            ///
            /// If there is not enough memory for it.
            pub fn try_clone(&self) -> $crate::Result<Self> {
                $crate::structure::Structure::try_clone(self)
            }
        }

        $crate::methods::file_methods!([$($generics)*] $type);

        impl<$($generics)*> std::fmt::Debug for $type {
            /// Formats a summary, without the cells and without secrets.
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::structure::summarize(self, f)
            }
        }
    };
}

/// Methods that write and read files.
macro_rules! file_methods {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> $type {
            /// Returns the bytes of the file that `save` would write.
            ///
            /// # Errors
            ///
            /// If there is not enough memory for them.
            pub fn to_bytes(&self) -> $crate::Result<Vec<u8>> {
                $crate::file::to_bytes(self, &$crate::file::Options::default())
            }

            /// Reads and verifies the bytes of a file. The result owns its memory.
            ///
            /// # Errors
            ///
            /// As `load`.
            pub fn from_bytes(bytes: &[u8]) -> $crate::Result<Self> {
                let loaded = $crate::file::from_bytes(bytes, &$crate::hash::KeyRing::new())?;
                $crate::file::Storable::from_stored(loaded.filter)
            }

            /// Writes it to a file, completely or not at all. Use
            /// [`file::save`]($crate::file::save) for options.
            ///
            /// # Errors
            ///
            /// If the file cannot be written. A file that was there before is then unchanged.
            #[cfg(feature = "files")]
            pub fn save(&self, path: impl AsRef<std::path::Path>) -> $crate::Result<()> {
                $crate::file::save(path, self, &$crate::file::Options::default())
            }

            /// Reads and verifies a whole file. The result owns its memory. A filter that was built
            /// with a secret needs [`file::load`]($crate::file::load) with a
            /// [`KeyRing`]($crate::hash::KeyRing), because files do not contain secrets.
            ///
            /// # Errors
            ///
            /// If the file cannot be read, is damaged, holds another kind, or needs a secret.
            pub fn load(path: impl AsRef<std::path::Path>) -> $crate::Result<Self> {
                let path = path.as_ref();
                let loaded = $crate::file::load(path, &$crate::hash::KeyRing::new())?;
                $crate::file::Storable::from_stored(loaded.filter).map_err(|error| error.at(path))
            }

            /// Opens a file for lookups without reading all of it: each part is verified when it is
            /// first used. See [`file::map`]($crate::file::map).
            ///
            /// # Errors
            ///
            /// If the file cannot be mapped, its header is damaged, it holds another kind, or it
            /// needs a secret.
            #[cfg(feature = "mmap")]
            pub fn map(path: impl AsRef<std::path::Path>) -> $crate::Result<$crate::file::Mapped<Self>> {
                $crate::file::map(path, &$crate::hash::KeyRing::new())?.into_kind()
            }
        }

        #[cfg(feature = "serde")]
        impl<$($generics)*> serde::Serialize for $type {
            /// Serializes the bytes of its file, which do not contain a secret.
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::serialize::serialize(self, serializer)
            }
        }

        #[cfg(feature = "serde")]
        impl<'de, $($generics)*> serde::Deserialize<'de> for $type {
            /// Deserializes and verifies the bytes of a file.
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::serialize::deserialize(deserializer)
            }
        }
    };
}

/// Methods of sets that look up keys.
macro_rules! filter_methods {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> $type {
            /// Returns the kind of this filter.
            pub fn kind(&self) -> $crate::Kind {
                $crate::Filter::kind(self)
            }

            /// Returns the function that turns keys into digests.
            #[inline(always)]
            pub fn hasher(&self) -> &$crate::Hasher {
                $crate::Filter::hasher(self)
            }

            /// Returns whether `key` may be a member: `false` is certain.
            #[inline]
            pub fn contains<K: $crate::Key + ?Sized>(&self, key: &K) -> bool {
                $crate::Filter::contains(self, key)
            }

            /// Returns whether the key with this digest may be a member.
            #[inline]
            pub fn contains_digest(&self, digest: $crate::Digest) -> bool {
                $crate::Filter::contains_digest(self, digest)
            }

            /// Looks up as many as 64 digests at once; see
            /// [`Filter::contains_tile`]($crate::Filter::contains_tile).
            pub fn contains_tile(&self, tile: &[$crate::Digest]) -> u64 {
                $crate::Filter::contains_tile(self, tile)
            }

            /// Looks up many keys, faster than one by one.
            pub fn contains_batch<B: $crate::Batch + ?Sized>(&self, keys: &B) -> $crate::Answers {
                $crate::Filter::contains_batch(self, keys)
            }

            /// Measures how full the filter is. Reads the whole filter.
            pub fn stats(&self) -> $crate::Stats {
                $crate::Filter::stats(self)
            }
        }
    };
}

/// Methods of sets that start empty.
macro_rules! set_methods {
    ([$($generics:tt)*] $type:ty) => {
        $crate::methods::filter_methods!([$($generics)*] $type);

        impl<$($generics)*> $type {
            /// Returns a builder, which makes an empty filter from any sufficient settings.
            pub fn builder() -> $crate::Builder<Self> {
                $crate::Builder::new()
            }

            /// Makes the empty filter that a specification describes; see also
            /// [`AnyFilter::build`]($crate::AnyFilter::build), which chooses the kind at run time.
            ///
            /// # Errors
            ///
            /// If the settings contradict each other or there is not enough memory.
            pub fn build(spec: &$crate::Spec) -> $crate::Result<Self> {
                $crate::set::Set::build(spec)
            }

            /// Makes a filter of these keys, of the size that `rate` requires. Needs 8 bytes of
            /// temporary memory per key.
            ///
            /// # Errors
            ///
            /// If `rate` is not between 0 and 1 or there is not enough memory.
            pub fn from_keys<I>(keys: I, rate: f64) -> $crate::Result<Self>
            where
                I: IntoIterator,
                I::Item: $crate::Key,
            {
                $crate::builder::from_keys(keys, rate)
            }

            /// Removes all keys.
            pub fn clear(&mut self) {
                $crate::set::Set::clear(self);
            }

            /// Returns an empty filter of the same shape, hash and design.
            ///
            /// # Errors
            ///
            /// If there is not enough memory for it.
            pub fn try_clone_empty(&self) -> $crate::Result<Self> {
                $crate::set::Set::try_clone_empty(self)
            }
        }
    };
}

/// Methods of sets that accept every key.
macro_rules! insert_methods {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> $type {
            /// Inserts `key`. Returns `true` if it was certainly not there before.
            #[inline]
            pub fn insert<K: $crate::Key + ?Sized>(&mut self, key: &K) -> bool {
                let Ok(new) = $crate::Insert::insert(self, key);
                new
            }

            /// Inserts the key with this digest. Returns `true` if it was certainly not there
            /// before.
            #[inline]
            pub fn insert_digest(&mut self, digest: $crate::Digest) -> bool {
                let Ok(new) = $crate::Insert::insert_digest(self, digest);
                new
            }

            /// Inserts digests; see [`Insert::insert_tile`]($crate::Insert::insert_tile).
            pub fn insert_tile(&mut self, tile: &[$crate::Digest]) {
                let Ok(()) = $crate::Insert::insert_tile(self, tile);
            }

            /// Inserts digests and returns which were new; see
            /// [`Insert::insert_tile_new`]($crate::Insert::insert_tile_new).
            pub fn insert_tile_new(&mut self, tile: &[$crate::Digest]) -> u64 {
                let Ok(new) = $crate::Insert::insert_tile_new(self, tile);
                new
            }

            /// Inserts many keys, faster than one by one.
            pub fn insert_batch<B: $crate::Batch + ?Sized>(&mut self, keys: &B) {
                let Ok(()) = $crate::Insert::insert_batch(self, keys);
            }
        }

        impl<K: $crate::Key, $($generics)*> Extend<K> for $type {
            /// Inserts keys one by one; `insert_batch` is faster for keys in memory.
            fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
                for key in keys {
                    self.insert(&key);
                }
            }
        }
    };
}

/// Methods of sets that may be full.
macro_rules! try_insert_methods {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> $type {
            /// Inserts `key`. Returns `true` if it was certainly not there before.
            ///
            /// # Errors
            ///
            /// [`Error::Full`]($crate::Error::Full) if there is no room for it. The filter is then
            /// unchanged.
            #[inline]
            pub fn insert<K: $crate::Key + ?Sized>(&mut self, key: &K) -> $crate::Result<bool> {
                $crate::Insert::insert(self, key)
            }

            /// Inserts the key with this digest. Returns `true` if it was certainly not there
            /// before.
            ///
            /// # Errors
            ///
            /// As `insert`.
            #[inline]
            pub fn insert_digest(&mut self, digest: $crate::Digest) -> $crate::Result<bool> {
                $crate::Insert::insert_digest(self, digest)
            }

            /// Inserts digests; see [`Insert::insert_tile`]($crate::Insert::insert_tile).
            ///
            /// # Errors
            ///
            /// As `insert_batch`.
            pub fn insert_tile(&mut self, tile: &[$crate::Digest]) -> $crate::Result<()> {
                $crate::Insert::insert_tile(self, tile)
            }

            /// Inserts digests and returns which were new; see
            /// [`Insert::insert_tile_new`]($crate::Insert::insert_tile_new).
            ///
            /// # Errors
            ///
            /// As `insert_batch`.
            pub fn insert_tile_new(&mut self, tile: &[$crate::Digest]) -> $crate::Result<u64> {
                $crate::Insert::insert_tile_new(self, tile)
            }

            /// Inserts many keys, faster than one by one.
            ///
            /// # Errors
            ///
            /// [`Error::Full`]($crate::Error::Full) if there is no room for one of them. Those
            /// before it have been inserted, those after it have not.
            pub fn insert_batch<B: $crate::Batch + ?Sized>(&mut self, keys: &B) -> $crate::Result<()> {
                $crate::Insert::insert_batch(self, keys)
            }
        }
    };
}

/// Methods of sets from which keys can be removed.
macro_rules! remove_methods {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> $type {
            /// Removes one occurrence of `key`. Unless the answer is
            /// [`Removed::Removed`]($crate::Removed::Removed), nothing has changed.
            ///
            /// Only remove keys that were inserted; see [`Remove`]($crate::Remove).
            pub fn remove<K: $crate::Key + ?Sized>(&mut self, key: &K) -> $crate::Removed {
                $crate::Remove::remove(self, key)
            }

            /// Removes the key with this digest; see `remove`.
            pub fn remove_digest(&mut self, digest: $crate::Digest) -> $crate::Removed {
                $crate::Remove::remove_digest(self, digest)
            }

            /// Removes `key` if it was certainly inserted. Calls `was_inserted`, which must know
            /// exactly, only if the filter answers "probably yes".
            pub fn remove_checked<K: $crate::Key + ?Sized>(
                &mut self,
                key: &K,
                was_inserted: impl FnOnce(&K) -> bool,
            ) -> $crate::Removed {
                $crate::Remove::remove_checked(self, key, was_inserted)
            }
        }
    };
}

/// Methods of sets that can be united.
macro_rules! union_methods {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> $type {
            /// Returns the first difference that prevents combining the two filters, if there is
            /// one.
            pub fn mismatch(&self, other: &Self) -> Option<$crate::error::Mismatch> {
                $crate::algebra::Algebra::mismatch(self, other)
            }

            /// Adds the keys of `other`: the result equals the filter that comes from inserting all
            /// keys of both.
            ///
            /// # Errors
            ///
            /// If shape, hash or seed differ, or there is no room for the keys of both. Neither
            /// filter has changed then.
            pub fn union(&mut self, other: &Self) -> $crate::Result<()> {
                $crate::algebra::Algebra::union(self, other)
            }
        }
    };
}

/// Methods of sets that can be intersected.
macro_rules! intersect_methods {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> $type {
            /// Keeps the keys that are in both sets. The result has no false negatives, and a rate
            /// no higher than that of either filter. But bits that both filters set for different
            /// keys remain, so a filter built from the common keys has fewer false positives.
            ///
            /// # Errors
            ///
            /// If shape, hash or seed differ. Neither filter has changed then.
            pub fn intersect(&mut self, other: &Self) -> $crate::Result<()> {
                $crate::algebra::Algebra::intersect(self, other)
            }
        }
    };
}

/// Methods of sets whose common keys can be counted.
macro_rules! overlap_methods {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> $type {
            /// Estimates the number of keys that the two sets have in common, with error bounds.
            /// Returns `None` if their union is saturated.
            ///
            /// # Errors
            ///
            /// If shape, hash or seed differ, or the cells do not allow an estimate.
            pub fn overlap(&self, other: &Self) -> $crate::Result<Option<$crate::sizing::Overlap>> {
                $crate::algebra::Algebra::overlap(self, other)
            }
        }
    };
}

/// Methods of sets that threads can fill in parts.
macro_rules! absorb_methods {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> $type {
            /// Adds the keys of another filter of the same shape, for threads that each fill their
            /// own. Unlike `union`, it adds the two counts of insertions.
            ///
            /// ```
            /// use umbel::BloomFilter;
            /// let mut whole = BloomFilter::with_capacity(1000, 0.01)?;
            /// let mut part = whole.try_clone_empty()?;
            /// whole.insert("apple");
            /// part.insert("pear");
            /// whole.absorb(&part)?;
            /// assert!(whole.contains("pear") && whole.inserted() == Some(2));
            /// # Ok::<(), umbel::Error>(())
            /// ```
            ///
            /// # Errors
            ///
            /// As `union`.
            pub fn absorb(&mut self, part: &Self) -> $crate::Result<()> {
                $crate::set::Set::absorb(self, part)
            }
        }
    };
}

/// Methods of maps that look up values.
macro_rules! map_methods {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> $type {
            /// Returns the kind of this map.
            pub fn kind(&self) -> $crate::Kind {
                $crate::Map::kind(self)
            }

            /// Returns the function that turns keys into digests.
            pub fn hasher(&self) -> &$crate::Hasher {
                $crate::Map::hasher(self)
            }

            /// Returns the value of `key`; `None` if it is certainly not in the map.
            #[inline]
            pub fn get<K: $crate::Key + ?Sized>(&self, key: &K) -> Option<u64> {
                $crate::Map::get(self, key)
            }

            /// Returns the value of the key with this digest; `None` if it is certainly not in the
            /// map.
            #[inline]
            pub fn get_digest(&self, digest: $crate::Digest) -> Option<u64> {
                $crate::Map::get_digest(self, digest)
            }

            /// Returns the values of many keys, faster than one by one.
            pub fn get_batch<B: $crate::Batch + ?Sized>(&self, keys: &B) -> Vec<Option<u64>> {
                $crate::Map::get_batch(self, keys)
            }

            /// Measures how large the map is, and how often it is wrong.
            pub fn stats(&self) -> $crate::Stats {
                $crate::Map::stats(self)
            }
        }
    };
}

/// Methods of multisets that record and count.
macro_rules! count_methods {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> $type {
            /// Returns the kind of this multiset.
            pub fn kind(&self) -> $crate::Kind {
                $crate::Count::kind(self)
            }

            /// Returns the function that turns keys into digests.
            pub fn hasher(&self) -> &$crate::Hasher {
                $crate::Count::hasher(self)
            }

            /// Returns whether `key` may have been recorded.
            pub fn contains<K: $crate::Key + ?Sized>(&self, key: &K) -> bool {
                $crate::Count::contains(self, key)
            }

            /// Returns whether the key with this digest may have been recorded.
            pub fn contains_digest(&self, digest: $crate::Digest) -> bool {
                $crate::Count::contains_digest(self, digest)
            }

            /// Estimates how often `key` was recorded.
            pub fn count<K: $crate::Key + ?Sized>(&self, key: &K) -> $crate::space_code::Multiplicity {
                $crate::Count::count(self, key)
            }

            /// Estimates how often the key with this digest was recorded.
            pub fn count_digest(&self, digest: $crate::Digest) -> $crate::space_code::Multiplicity {
                $crate::Count::count_digest(self, digest)
            }

            /// Estimates how often each of many keys was recorded, faster than one by one.
            pub fn count_batch<B: $crate::Batch + ?Sized>(
                &self,
                keys: &B,
            ) -> Vec<$crate::space_code::Multiplicity> {
                $crate::Count::count_batch(self, keys)
            }

            /// Records `key` once more.
            pub fn insert<K: $crate::Key + ?Sized>(&mut self, key: &K) {
                $crate::Count::insert(self, key);
            }

            /// Records the key with this digest once more.
            pub fn insert_digest(&mut self, digest: $crate::Digest) {
                $crate::Count::insert_digest(self, digest);
            }

            /// Records each of many keys once more, faster than one by one.
            pub fn insert_batch<B: $crate::Batch + ?Sized>(&mut self, keys: &B) {
                $crate::Count::insert_batch(self, keys);
            }

            /// Measures how full the multiset is.
            pub fn stats(&self) -> $crate::Stats {
                $crate::Count::stats(self)
            }
        }
    };
}

pub(crate) use {
    absorb_methods, count_methods, file_methods, filter_methods, insert_methods, intersect_methods,
    map_methods, overlap_methods, remove_methods, set_methods, structure_methods, try_insert_methods,
    union_methods,
};
