//! Keys that are hashed once for all filters with slices of MD5.

use super::{Family, Literature};
use crate::Key;
use md5::{Digest, Md5};

/// The four 32-bit words of a key's MD5 digest, from which every filter of the family
/// [`Md5Slices`](Family::Md5Slices) takes the key's positions.
///
/// The words do not depend on the size of a filter, so one digest serves any number of filters. A
/// cache that consults the summaries of its peers hashes an address once, not once per peer.
///
/// ```
/// use umbel::literature::{Family, Literature, Md5Slices, Scheme};
///
/// let mut filters = Vec::new();
/// for (m, keys) in [(1000, ["apple", "plum"]), (4096, ["pear", "plum"])] {
///     let mut filter = Literature::new(Scheme::new(Family::Md5Slices, 4, m)?)?;
///     filter.insert_batch(&keys);
///     filters.push(filter);
/// }
/// let slices = Md5Slices::new("apple");
/// assert!(filters[0].contains_slices(&slices));
/// assert!(!filters[1].contains_slices(&slices));
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Md5Slices([u32; 4]);

impl Md5Slices {
    /// Hashes a key.
    pub fn new<K: Key + ?Sized>(key: &K) -> Md5Slices {
        key.with_bytes(|bytes| Md5Slices::from_digest(Md5::digest(bytes).into()))
    }

    /// Takes the words of an already computed MD5 digest.
    ///
    /// ```
    /// use umbel::literature::Md5Slices;
    ///
    /// let digest = 0x9001_5098_3cd2_4fb0_d696_3f7d_28e1_7f72_u128;
    /// assert_eq!(Md5Slices::from_digest(digest.to_be_bytes()), Md5Slices::new("abc"));
    /// ```
    #[inline]
    pub fn from_digest(digest: [u8; 16]) -> Md5Slices {
        let (words, _) = digest.as_chunks::<4>();
        Md5Slices(std::array::from_fn(|i| u32::from_be_bytes(words[i])))
    }

    /// Returns the positions of the key with `k` hash functions, at most four, on `m` cells, at
    /// least one.
    #[inline(always)]
    pub(crate) fn positions(self, k: u32, m: u64) -> impl Iterator<Item = u64> + Clone {
        self.0.into_iter().take(k as usize).map(move |word| u64::from(word) % m)
    }
}

/// Lookups and insertions of keys that are already hashed. The filter must be of the family
/// [`Md5Slices`](Family::Md5Slices); for any other family these positions are meaningless.
impl Literature {
    /// Inserts the key with these slices. Returns `true` if it was certainly not in the set before.
    #[inline]
    pub fn insert_slices(&mut self, slices: &Md5Slices) -> bool {
        self.insert_at(self.positions_of(slices))
    }

    /// Returns whether the key with these slices may be a member. Stops at the first zero bit.
    #[inline]
    pub fn contains_slices(&self, slices: &Md5Slices) -> bool {
        self.contains_at(self.positions_of(slices))
    }

    #[inline(always)]
    fn positions_of(&self, slices: &Md5Slices) -> impl Iterator<Item = u64> + use<> {
        debug_assert_eq!(self.scheme.family(), Family::Md5Slices, "slices are meaningless for this family");
        slices.positions(self.scheme.k(), self.scheme.m())
    }
}
