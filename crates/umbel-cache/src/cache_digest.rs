//! Squid's cache digests: Bloom filters that a cache rebuilds from time to time and serves to its
//! peers.
//!
//! Squid serves its digest at `/squid-internal-periodic/store_digest`. All integers are big-endian:
//!
//! | bytes | |
//! | --- | --- |
//! | 2 + 2 | the version, 5, and the oldest version that can read it, 3 |
//! | 4 | the number of entries that the filter is sized for |
//! | 4 | the number of entries |
//! | 4 | the number of entries removed since the digest was built |
//! | 4 | the length of the bits in bytes |
//! | 1 + 1 | bits per entry, 5 by default, and hashes per entry, 4 |
//! | 106 | reserved, zero |
//! | | the bits: bit `i` is bit `i % 8` of byte `i / 8` |
//!
//! # References
//!
//! Squid: Cache Digest specification, version 5.

use crate::error::{Error, Result};
use crate::{CacheKey, key_filter};
use std::sync::Arc;
use umbel::literature::Literature;

/// The length of the header in bytes.
const HEADER_LEN: usize = 128;

/// The version of the format that is written.
const VERSION: u16 = 5;
/// The oldest version of the format that can be read.
const OLDEST_VERSION: u16 = 3;

/// A Bloom filter over the keys of a cache, in the format of Squid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheDigest {
    capacity: u32,
    count: u32,
    deleted: u32,
    bits_per_entry: u8,
    filter: Arc<Literature>,
}

impl CacheDigest {
    /// The path at which a cache serves its digest.
    pub const PATH: &'static str = "/squid-internal-periodic/store_digest";

    /// Squid's default number of bits per entry.
    pub const BITS_PER_ENTRY: u8 = 5;

    /// The `Content-Type` of a digest.
    pub const MEDIA_TYPE: &'static str = "application/cache-digest";

    /// Builds the digest of some keys, with this number of bits for each of them.
    ///
    /// # Errors
    ///
    /// [`Error::Size`] if the digest would be too large, [`Error::Filter`] if there is no memory
    /// for it.
    ///
    /// ```
    /// use umbel_cache::{CacheDigest, CacheKey};
    /// let keys: Vec<CacheKey> = (0..100).map(|i| CacheKey::from_url(&format!("http://example.org/{i}"))).collect();
    /// let digest = CacheDigest::from_keys(&keys, 5)?;
    /// assert_eq!(CacheDigest::decode(&digest.encode())?, digest);
    /// assert!(keys.iter().all(|key| digest.contains(key)));
    /// # Ok::<(), umbel_cache::Error>(())
    /// ```
    pub fn from_keys(keys: &[CacheKey], bits_per_entry: u8) -> Result<CacheDigest> {
        let too_many = || Error::Size { what: format!("a digest of {} documents is too large", keys.len()) };
        let count = u32::try_from(keys.len()).map_err(|_| too_many())?;
        let capacity = count.max(1);
        let bits = u64::from(capacity) * u64::from(bits_per_entry.max(1));
        let bits = u32::try_from(bits.next_multiple_of(8)).map_err(|_| too_many())?;
        let mut filter = key_filter::empty(bits)?;
        for key in keys {
            filter.insert_slices(&key.slices());
        }
        let filter = Arc::new(filter);
        Ok(CacheDigest { capacity, count, deleted: 0, bits_per_entry: bits_per_entry.max(1), filter })
    }

    /// Parses a digest.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the bytes are not a digest of a supported version.
    pub fn decode(bytes: &[u8]) -> Result<CacheDigest> {
        let malformed = |why: String| Error::malformed("digest of Squid", why);
        let Some((header, mask)) = bytes.split_first_chunk::<HEADER_LEN>() else {
            return Err(malformed(format!(
                "it has {} bytes, and its header alone {HEADER_LEN}",
                bytes.len()
            )));
        };
        let short = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let long = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| header[at + i]));
        let (current, required) = (short(0), short(2));
        if required > VERSION || current < OLDEST_VERSION {
            return Err(malformed(format!("it is of version {current}, for {required} and later")));
        }
        let (capacity, count, deleted, length) = (long(4), long(8), long(12), long(16));
        let (bits_per_entry, hashes) = (header[20], header[21]);
        if u32::from(hashes) != CacheKey::HASHES {
            return Err(malformed(format!("it sets {hashes} bits for each document, and not 4")));
        }
        if mask.len() != length as usize {
            return Err(malformed(format!("it has {} bytes of bits and claims {length}", mask.len())));
        }
        let bits = length.checked_mul(8).ok_or_else(|| malformed(format!("{length} bytes are too many")))?;
        let filter = Arc::new(key_filter::from_bytes(mask, bits)?);
        Ok(CacheDigest { capacity, count, deleted, bits_per_entry, filter })
    }

    /// Serializes the digest.
    pub fn encode(&self) -> Vec<u8> {
        let mask = self.filter.to_bits();
        let mut bytes = Vec::with_capacity(HEADER_LEN + mask.len());
        bytes.extend(VERSION.to_be_bytes());
        bytes.extend(OLDEST_VERSION.to_be_bytes());
        for number in [self.capacity, self.count, self.deleted, mask.len() as u32] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend([self.bits_per_entry, CacheKey::HASHES as u8]);
        bytes.resize(HEADER_LEN, 0);
        bytes.extend(mask);
        bytes
    }

    /// Returns the number of entries that the digest claims to have.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the Bloom filter.
    pub fn filter(&self) -> &Arc<Literature> {
        &self.filter
    }

    /// Returns whether the cache may have a response for this key.
    pub fn contains(&self, key: &CacheKey) -> bool {
        self.filter.contains_slices(&key.slices())
    }
}
