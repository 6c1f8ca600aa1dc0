//! Cache keys: the MD5 of a request's method and URL.

use md5::{Digest as _, Md5};
use umbel::literature::Md5Slices;

/// The MD5 of a method and a URL, computed as in Squid.
///
/// Its four 32-bit words are the hashes of the key in [summaries](crate::Summary) and
/// [cache digests](crate::CacheDigest), so that one MD5 serves the filters of all peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CacheKey([u8; 16]);

/// Squid's number for the method `GET`.
const SQUID_GET: u8 = 1;

impl CacheKey {
    /// The number of hashes, and so the number of bits that a key sets in a filter.
    pub const HASHES: u32 = 4;

    /// Returns the key of a `GET` request for a URL.
    ///
    /// ```
    /// use umbel::literature::{Family, Literature, Scheme};
    /// use umbel_cache::CacheKey;
    ///
    /// // The bits that Squid 5.7 sets in a digest of 296 bits.
    /// let mut filter = Literature::new(Scheme::new(Family::Md5Slices, CacheKey::HASHES, 296)?)?;
    /// filter.insert_slices(&CacheKey::from_url("http://127.0.0.1:3198/doc1").slices());
    /// assert!((0..296).filter(|bit| filter.bit(*bit)).eq([78, 188, 220, 257]));
    /// # Ok::<(), umbel::Error>(())
    /// ```
    pub fn from_url(url: &str) -> CacheKey {
        CacheKey(Md5::new().chain_update([SQUID_GET]).chain_update(url).finalize().into())
    }

    /// Returns the key with this MD5.
    pub const fn from_bytes(md5: [u8; 16]) -> CacheKey {
        CacheKey(md5)
    }

    /// Returns the bytes of the MD5.
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Returns the words of the MD5, from which a filter of any size derives the bits of the key.
    #[inline]
    pub fn slices(&self) -> Md5Slices {
        Md5Slices::from_digest(self.0)
    }
}
