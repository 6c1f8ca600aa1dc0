//! What a document is known by: the MD5 of how it is asked for and where.

use md5::{Digest as _, Md5};
use umbel::literature::Md5Slices;

/// The MD5 of a method and an address, as Squid computes it, cut into the four words by which summaries find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; 16]);

/// How Squid numbers methods.
const GET: u8 = 1;

impl Key {
    /// The number of bits of a summary that a document sets.
    pub const HASHES: u32 = 4;

    /// Returns the key of the document that `GET` returns at an address.
    ///
    /// ```
    /// use umbel::literature::{Family, Literature, Scheme};
    /// use umbel_cache::Key;
    ///
    /// // The bits that Squid 5.7 sets in a digest of 296 bits.
    /// let mut filter = Literature::new(Scheme::new(Family::Md5Slices, Key::HASHES, 296)?)?;
    /// filter.insert_slices(&Key::get("http://127.0.0.1:3198/doc1").slices());
    /// assert!((0..296).filter(|bit| filter.bit(*bit)).eq([78, 188, 220, 257]));
    /// # Ok::<(), umbel::Error>(())
    /// ```
    pub fn get(url: &str) -> Key {
        Key(Md5::new().chain_update([GET]).chain_update(url).finalize().into())
    }

    /// A key from its bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Key {
        Key(bytes)
    }

    /// The bytes of the MD5.
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Returns the words of the MD5, from which a summary of any size takes the bits of the key.
    #[inline]
    pub fn slices(&self) -> Md5Slices {
        Md5Slices::from_digest(self.0)
    }
}
