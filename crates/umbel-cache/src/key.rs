//! What a document is known by: the MD5 of how it is asked for and where.

use md5::{Digest as _, Md5};

/// The MD5 of a method and an address, as Squid computes it, cut into the four words by which summaries find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; 16]);

/// How Squid numbers methods.
const GET: u8 = 1;

impl Key {
    /// How many bits of a summary a document has.
    pub const HASHES: u32 = 4;

    /// The key of what `GET` gives at an address.
    ///
    /// ```
    /// use umbel_cache::Key;
    /// assert_eq!(Key::get("http://127.0.0.1:3198/doc1").positions(296), [220, 78, 188, 257]);
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

    /// The bits that it has in a summary of `bits` bits: its words, the highest byte of each first, modulo that.
    pub fn positions(&self, bits: u32) -> [u32; 4] {
        let (words, _) = self.0.as_chunks::<4>();
        std::array::from_fn(|i| u32::from_be_bytes(words[i]) % bits.max(1))
    }
}
