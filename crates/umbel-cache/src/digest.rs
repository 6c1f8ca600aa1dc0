//! Squid's cache digests: plain filters that a cache makes anew from time to time, and gives to whoever asks.
//!
//! Squid has them at `/squid-internal-periodic/store_digest`. All numbers have their highest byte first:
//!
//! | bytes | |
//! | --- | --- |
//! | 2 + 2 | the version, 5, and the oldest that understands it, 3 |
//! | 4 | for how many documents it is |
//! | 4 | how many it has |
//! | 4 | how many were taken out since it was made |
//! | 4 | how many bytes the bits take |
//! | 1 + 1 | bits for each document, 5 unless set, and bits that are set for each, 4 |
//! | 106 | nothing |
//! | | the bits: bit `i` is bit `i % 8` of byte `i / 8` |

use crate::error::{Error, Result};
use crate::{CacheKey, filter};
use std::sync::Arc;
use umbel::literature::Literature;

/// Before the bits.
const HEADER: usize = 128;

/// The version that is written, and the oldest that is understood.
const VERSION: u16 = 5;
const OLDEST: u16 = 3;

/// A digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    capacity: u32,
    count: u32,
    deleted: u32,
    bits_per_entry: u8,
    filter: Arc<Literature>,
}

impl Digest {
    /// Where Squid has its digest.
    pub const PATH: &'static str = "/squid-internal-periodic/store_digest";

    /// Bits for each document, unless Squid is told otherwise.
    pub const BITS_PER_ENTRY: u8 = 5;

    /// Of what type it is, as servers say.
    pub const MEDIA_TYPE: &'static str = "application/cache-digest";

    /// The digest of some documents, with so many bits for each.
    ///
    /// ```
    /// use umbel_cache::{Digest, CacheKey};
    /// let keys: Vec<CacheKey> = (0..100).map(|i| CacheKey::from_url(&format!("http://example.org/{i}"))).collect();
    /// let digest = Digest::of(&keys, 5)?;
    /// assert_eq!(Digest::decode(&digest.encode())?, digest);
    /// assert!(keys.iter().all(|key| digest.contains(key)));
    /// # Ok::<(), umbel_cache::Error>(())
    /// ```
    pub fn of(keys: &[CacheKey], bits_per_entry: u8) -> Result<Digest> {
        let too_many = || Error::Size { what: format!("a digest of {} documents is too large", keys.len()) };
        let count = u32::try_from(keys.len()).map_err(|_| too_many())?;
        let capacity = count.max(1);
        let bits = u64::from(capacity) * u64::from(bits_per_entry.max(1));
        let bits = u32::try_from(bits.next_multiple_of(8)).map_err(|_| too_many())?;
        let mut filter = filter::empty(bits)?;
        for key in keys {
            filter.insert_slices(&key.slices());
        }
        let filter = Arc::new(filter);
        Ok(Digest { capacity, count, deleted: 0, bits_per_entry: bits_per_entry.max(1), filter })
    }

    /// The digest in these bytes.
    pub fn decode(bytes: &[u8]) -> Result<Digest> {
        let malformed = |why: String| Error::malformed("digest of Squid", why);
        let Some((header, mask)) = bytes.split_first_chunk::<HEADER>() else {
            return Err(malformed(format!("it has {} bytes, and its header alone {HEADER}", bytes.len())));
        };
        let short = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let long = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| header[at + i]));
        let (current, required) = (short(0), short(2));
        if required > VERSION || current < OLDEST {
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
        let filter = Arc::new(filter::from_bytes(mask, bits)?);
        Ok(Digest { capacity, count, deleted, bits_per_entry, filter })
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mask = self.filter.to_bits();
        let mut bytes = Vec::with_capacity(HEADER + mask.len());
        bytes.extend(VERSION.to_be_bytes());
        bytes.extend(OLDEST.to_be_bytes());
        for number in [self.capacity, self.count, self.deleted, mask.len() as u32] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend([self.bits_per_entry, CacheKey::HASHES as u8]);
        bytes.resize(HEADER, 0);
        bytes.extend(mask);
        bytes
    }

    /// How many documents it is of, as the other cache says.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the filter.
    pub fn filter(&self) -> &Arc<Literature> {
        &self.filter
    }

    /// Returns whether a document may be among them.
    pub fn contains(&self, key: &CacheKey) -> bool {
        self.filter.contains_slices(&key.slices())
    }
}
