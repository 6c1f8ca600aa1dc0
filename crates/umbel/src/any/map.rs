//! One enum over the maps.

use super::Stored;
use crate::file::{Encoder, FormatError, Options, Storable};
use crate::memory::{Mover, Words};
use crate::structure::{Parts, Probe};
use crate::{
    Batch, Bloomier, BloomierMutable, Capabilities, CodeBook, Construction, Design, Digest, Error, Hashed,
    Hasher, Key, Kind, Map, Plan, Result, Spec, Stats, Structure, TILE, tile,
};
use std::convert::Infallible;

family! { $
    /// A map of any kind.
    ///
    /// ```
    /// use umbel::spec::Construction;
    /// use umbel::{AnyMap, Hasher, Kind, Spec};
    /// let spec = Spec::new(2, 0.01)?;
    /// let digests = spec.hasher().digest_batch(&["apple", "pear"]);
    /// let pairs = digests.into_iter().zip([3, 5]).collect();
    /// let map = AnyMap::from_pairs(Kind::Bloomier, &spec, pairs, None, &Construction::default())?;
    /// assert_eq!(map.get("pear"), Some(5));
    /// # Ok::<(), umbel::Error>(())
    /// ```
    AnyMap, Stored::Map, "a map",
    changing {
        /// A map whose values can be changed.
        BloomierMutable(BloomierMutable),
    }
    fixed {
        /// A map that cannot be changed.
        Bloomier(Bloomier),
    }
}

planned!(AnyMap);

impl AnyMap {
    /// Builds the map of these digests and values; see [`Bloomier::from_pairs`].
    ///
    /// # Errors
    ///
    /// If `kind` is not a map, the specification does not suit it, a key has two values, or there
    /// is not enough memory.
    pub fn from_pairs(
        kind: Kind,
        spec: &Spec,
        pairs: Vec<(Digest, u64)>,
        book: Option<CodeBook>,
        construction: &Construction<'_>,
    ) -> Result<AnyMap> {
        match kind {
            Kind::Bloomier => Ok(Bloomier::from_pairs(spec, pairs, book, construction)?.into()),
            Kind::BloomierMutable => Ok(BloomierMutable::from_pairs(spec, pairs, book, construction)?.into()),
            _ => Err(Error::parameter("kind", kind, "a map: bloomier or bloomier-mutable")),
        }
    }

    /// Returns the largest value that a key can have.
    pub fn largest_value(&self) -> u64 {
        each!(self, map => map.largest_value())
    }

    /// Returns the names of the values, if they have any.
    pub fn book(&self) -> Option<&CodeBook> {
        each!(self, map => map.book())
    }
}

impl Map for AnyMap {
    fn kind(&self) -> Kind {
        each!(self, map => map.kind())
    }

    fn hasher(&self) -> &Hasher {
        each!(self, map => map.hasher())
    }

    fn get_digest(&self, digest: Digest) -> Option<u64> {
        each!(self, map => map.get_digest(digest))
    }

    fn get_tile(&self, tile: &[Digest], values: &mut [u64; TILE]) -> u64 {
        each!(self, map => map.get_tile(tile, values))
    }

    fn stats(&self) -> Stats {
        each!(self, map => map.stats())
    }

    fn get_batch<B: Batch + ?Sized>(&self, keys: &B) -> Vec<Option<u64>> {
        let mut values = Vec::with_capacity(keys.len());
        let Ok(()) = tile::chunks(keys, self.hasher(), |digests| {
            values.extend(self.get_hashed(digests));
            Ok::<(), Infallible>(())
        });
        values
    }
}

impl AnyMap {
    /// Not generic, so that the batch loops of all kinds are compiled once, in this crate.
    fn get_hashed(&self, digests: &[Digest]) -> Vec<Option<u64>> {
        each!(self, map => map.get_batch(&Hashed(digests)))
    }
}

impl AnyMap {
    /// Changes the value of `key`. Returns `false`, and changes nothing, if the key is certainly
    /// not in the map.
    ///
    /// # Errors
    ///
    /// If the map cannot be changed, or the value is larger than it can hold.
    pub fn set<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> Result<bool> {
        self.set_digest(key.digest(self.hasher()), value)
    }

    /// Changes the value of the key with this digest; see [`AnyMap::set`].
    ///
    /// # Errors
    ///
    /// As [`AnyMap::set`].
    pub fn set_digest(&mut self, digest: Digest, value: u64) -> Result<bool> {
        match self {
            AnyMap::BloomierMutable(map) => map.set_digest(digest, value),
            AnyMap::Bloomier(_) => Err(Error::cannot(
                Kind::Bloomier,
                "change values",
                "they are part of what its table was solved for; build the map with the kind bloomier-mutable",
            )),
        }
    }
}

crate::methods::map_methods!([] AnyMap);
