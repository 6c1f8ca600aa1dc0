//! The hash families of the literature: k hash functions `h_0` .. `h_{k-1}` that map a key to cells
//! `0..m`.
//!
//! Papers and programs about Bloom filters differ in how they obtain k functions: some hash the key
//! k times, some cut one digest into pieces, some compute k values from two. A [`Family`] names one
//! of these ways, a [`Scheme`] fixes its k and m, and [`Scheme::positions`] yields the cells of a
//! key. [`Literature`] is a standard Bloom filter over such positions. [`Md5Slices`] is a key that
//! is hashed once and looked up in any number of such filters.
//!
//! Take it to reproduce published results, to read the filters of other programs, or to compare. It
//! costs as many bits as a standard filter, 9.6 per key at 1 %, and more time: it hashes the key
//! itself, and batches are no faster than single keys. None of the families resists keys chosen by
//! an adversary.
//!
//! | family | position i of key x | needs |
//! | --- | --- | --- |
//! | [`Murmur2`](Family::Murmur2) | MurmurHash2(x, seed i) mod m | m ≤ 2^32 |
//! | [`Murmur3`](Family::Murmur3) | `MurmurHash3_x86_32`(x, seed i) mod m | m ≤ 2^32 |
//! | [`Murmur3Double`](Family::Murmur3Double) | (a + i b) mod m, (a, b) = `MurmurHash3_x64_128`(x) | |
//! | [`Murmur3Enhanced`](Family::Murmur3Enhanced) | (a + i b + (i³ - i)/6) mod m, same a and b | |
//! | [`Md5Indexed`](Family::Md5Indexed) | first 8 bytes of MD5(x ‖ i) mod m | |
//! | [`Md5Slices`](Family::Md5Slices) | 32-bit word i of MD5(x) mod m | m ≤ 2^32, k ≤ 4 |
//! | [`Sha1Slices`](Family::Sha1Slices) | 32-bit word i of SHA-1(x) mod m | m ≤ 2^32, k ≤ 5 |
//!
//! MD5(x + i) is sometimes suggested as well, and is left out on purpose. It is defined for numbers
//! only, and `h_i(x) = h_{i+1}(x - 1)`, so neighbouring numbers share k - 1 of their k positions.
//!
//! # Example
//!
//! A Bloom filter of 64 cells with three hash functions:
//!
//! ```
//! use umbel::literature::{Family, Scheme};
//!
//! let scheme = Scheme::new(Family::Murmur3, 3, 64)?;
//! let mut bits = 0u64;
//! for flower in ["anise", "carrot", "dill"] {
//!     for position in scheme.positions(flower.as_bytes()) {
//!         bits |= 1 << position;
//!     }
//! }
//!
//! // `all` stops at the first zero bit, and the functions after it are never computed.
//! let contains = |key: &str| scheme.positions(key.as_bytes()).all(|position| bits >> position & 1 == 1);
//! assert!(contains("dill"));
//! assert!(!contains("rose"));
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # What to know before choosing one
//!
//! * **Positions may coincide.** Nothing makes the k positions of a key distinct: independent
//!   functions give it m (1 - (1 - 1/m)^k) different cells on average, 2.71 of 3 at m = 10. The
//!   iterator yields duplicates.
//! * **A remainder is biased.** Of the 2^32 values of a 32-bit hash, ⌊2^32/m⌋ or ⌈2^32/m⌉ fall on a
//!   cell. So the probability of a cell differs from 1/m by a relative m/2^32 at most: 0.02 % at m
//!   = 2^20, a factor of two near m = 2^32. A larger m would leave cells that no key reaches, and
//!   is refused. The families that reduce 64 bits have the same bound with 2^64.
//! * **Double hashing has a floor** under its false-positive rate, which matters for small m and
//!   large k: see [`double_hashing_is_safe`] and [`double_hashing_floor`].
//!
//! # References
//!
//! * A. Kirsch and M. Mitzenmacher. *Less hashing, same performance: building a better Bloom
//!   filter.* ESA 2006. `KM06`
//! * P. C. Dillinger and P. Manolios. *Bloom filters in probabilistic verification.* FMCAD 2004.
//!   `DM04`
//! * L. Fan, P. Cao, J. Almeida and A. Broder. *Summary cache: a scalable wide-area web cache
//!   sharing protocol.* IEEE/ACM Transactions on Networking 8(3), 2000. `FCAB00`
//! * J. Honoroff. *An Examination of Bloom Filters and their Applications.* Lecture slides, 2006.
//!   `Honoroff06`
//! * A. Appleby. *MurmurHash2 and MurmurHash3.* Source code, repository `aappleby/smhasher`.
//!   `Murmur`
//! * R. Rivest. *The MD5 message-digest algorithm.* RFC 1321, 1992. `MD5`
//! * NIST. *Secure hash standard.* FIPS 180-4, 2015. `SHA`

mod bits;
mod double_hashing;
mod filter;
pub mod murmur;
mod positions;
#[cfg(feature = "literature")]
mod slices;

use std::fmt;
use std::str::FromStr;

pub use double_hashing::{double_hashing_floor, double_hashing_is_safe};
pub use filter::Literature;
pub use positions::{Positions, Scheme};
#[cfg(feature = "literature")]
pub use slices::Md5Slices;

use crate::{Error, Result};

/// The largest number of functions of any family: far more than needed, and few enough that no file
/// can make a lookup expensive.
const MAX_HASHES: u32 = 255;

/// The largest number of cells that a remainder of 32-bit values can reach.
const CELLS_OF_32_BITS: u64 = 1 << 32;

/// A way to derive k hash functions, named after its hash and its construction.
///
/// Names ([`Display`](fmt::Display), [`FromStr`]) and numbers ([`id`](Family::id)) are stable: they
/// may be stored.
///
/// ```
/// use umbel::literature::Family;
///
/// let family: Family = "murmur3-double".parse()?;
/// assert_eq!(family, Family::Murmur3Double);
/// assert_eq!(family.to_string(), "murmur3-double");
/// assert_eq!(Family::from_id(family.id()), Some(family));
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// MurmurHash2 with 32 bits and the seeds 0 .. k-1, mod m.
    ///
    /// The seeds are a weak source of independence: on a key of four bytes a seed only flips fixed
    /// bits ahead of the last mixing steps. Positions of such keys coincide slightly more often
    /// than by chance.
    /// On shorter keys a seed acts like another key, so that short keys share most of their
    /// positions: their rate is far above the planned one, and the estimated number of keys is far
    /// too low.
    Murmur2,
    /// `MurmurHash3_x86_32` with the seeds 0 .. k-1, mod m.
    Murmur3,
    /// Double hashing (Kirsch and Mitzenmacher) with the two halves a, b of `MurmurHash3_x64_128`
    /// with seed 0: ((a + i b) mod 2^64) mod m.
    ///
    /// A stride b that is a multiple of m would put all positions on one cell. The rule, applied to
    /// such keys only: **if b mod m = 0, the stride is 1**. This affects one key in m; 1 is odd, so
    /// for m a power of two the walk visits every cell before it returns.
    Murmur3Double,
    /// Enhanced double hashing (Dillinger and Manolios) with the same a and b:
    /// ((a + i b + (i³ - i)/6) mod 2^64) mod m.
    ///
    /// The cubic term breaks up shifted and reversed progressions, so two keys share all positions
    /// only if they agree in both a and b. No stride is degenerate and none is replaced.
    Murmur3Enhanced,
    /// The first eight bytes, as a little-endian number, of MD5 over the key followed by i as four
    /// little-endian bytes, mod m.
    Md5Indexed,
    /// The four 32-bit words of one MD5 digest, mod m: the construction of Summary Cache.
    ///
    /// The words are read big-endian, as the cache digests of Squid read them.
    Md5Slices,
    /// The five 32-bit words of one SHA-1 digest, mod m.
    ///
    /// The words are read big-endian, as SHA-1 writes them out.
    Sha1Slices,
}

impl Family {
    /// All families, in the order of their ids.
    pub const ALL: [Family; 7] = [
        Family::Murmur2,
        Family::Murmur3,
        Family::Murmur3Double,
        Family::Murmur3Enhanced,
        Family::Md5Indexed,
        Family::Md5Slices,
        Family::Sha1Slices,
    ];

    /// Returns the number of this family in files. No family has the number 0.
    pub const fn id(self) -> u8 {
        match self {
            Family::Murmur2 => 1,
            Family::Murmur3 => 2,
            Family::Murmur3Double => 3,
            Family::Murmur3Enhanced => 4,
            Family::Md5Indexed => 5,
            Family::Md5Slices => 6,
            Family::Sha1Slices => 7,
        }
    }

    /// Returns the family with this number, the inverse of [`id`](Family::id).
    pub fn from_id(id: u8) -> Option<Family> {
        Family::ALL.into_iter().find(|family| family.id() == id)
    }

    /// Returns the name on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Murmur2 => "murmur2",
            Family::Murmur3 => "murmur3",
            Family::Murmur3Double => "murmur3-double",
            Family::Murmur3Enhanced => "murmur3-enhanced",
            Family::Md5Indexed => "md5-indexed",
            Family::Md5Slices => "md5-slices",
            Family::Sha1Slices => "sha1-slices",
        }
    }

    /// Returns the largest k: the number of 32-bit words in a digest if the functions are its
    /// slices, 255 otherwise.
    ///
    /// 255 is far beyond use: a half-full filter with k = 64 is wrong once in 2^64 lookups.
    ///
    /// ```
    /// use umbel::literature::Family;
    ///
    /// assert_eq!(Family::Md5Slices.max_hashes(), 4);
    /// assert_eq!(Family::Sha1Slices.max_hashes(), 5);
    /// ```
    pub const fn max_hashes(self) -> u32 {
        match self {
            Family::Md5Slices => 4,
            Family::Sha1Slices => 5,
            _ => MAX_HASHES,
        }
    }

    /// Returns the largest m: 2^32 if 32-bit values are reduced, otherwise unlimited.
    ///
    /// ```
    /// use umbel::literature::Family;
    ///
    /// assert_eq!(Family::Murmur3.max_cells(), 1 << 32);
    /// assert_eq!(Family::Murmur3Double.max_cells(), u64::MAX);
    /// ```
    pub const fn max_cells(self) -> u64 {
        match self {
            Family::Murmur2 | Family::Murmur3 | Family::Md5Slices | Family::Sha1Slices => CELLS_OF_32_BITS,
            Family::Murmur3Double | Family::Murmur3Enhanced | Family::Md5Indexed => u64::MAX,
        }
    }

    /// Checks that this family can provide k functions onto m cells.
    ///
    /// ```
    /// use umbel::literature::Family;
    ///
    /// assert!(Family::Md5Slices.validate(4, 1000).is_ok());
    /// let error = Family::Md5Slices.validate(5, 1000).unwrap_err();
    /// assert_eq!(error.to_string(), "k = 5 cannot be used: it needs 1 to 4 hash functions with md5-slices");
    /// ```
    ///
    /// # Errors
    ///
    /// If k or m is out of range for this family, or the family is not compiled in. The message
    /// states the range, or the Cargo feature.
    pub fn validate(self, k: u32, m: u64) -> Result<()> {
        let compiled_in = cfg!(feature = "literature")
            || !matches!(self, Family::Md5Indexed | Family::Md5Slices | Family::Sha1Slices);
        if !compiled_in {
            return Err(Error::parameter("family", self, "the Cargo feature `literature` of crate `umbel`"));
        }
        let (most_k, most_m) = (self.max_hashes(), self.max_cells());
        if !(1..=most_k).contains(&k) {
            return Err(Error::parameter("k", k, format!("1 to {most_k} hash functions with {self}")));
        }
        if !(1..=most_m).contains(&m) {
            return Err(Error::parameter("m", m, format!("1 to {most_m} cells with {self}")));
        }
        Ok(())
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Family {
    type Err = Error;

    fn from_str(name: &str) -> Result<Family> {
        let known = || Family::ALL.map(Family::name).join(", ");
        Family::ALL
            .into_iter()
            .find(|family| family.name() == name)
            .ok_or_else(|| Error::parameter("family", name, format!("one of {}", known())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_are_stable() {
        let table: Vec<(u8, String)> = Family::ALL.iter().map(|f| (f.id(), f.to_string())).collect();
        let expected = [
            (1, "murmur2"),
            (2, "murmur3"),
            (3, "murmur3-double"),
            (4, "murmur3-enhanced"),
            (5, "md5-indexed"),
            (6, "md5-slices"),
            (7, "sha1-slices"),
        ];
        assert_eq!(table, expected.map(|(id, name)| (id, name.to_owned())));
    }

    #[test]
    fn ids_and_names_round_trip() {
        for family in Family::ALL {
            assert_eq!(Family::from_id(family.id()), Some(family));
            assert_eq!(family.to_string().parse::<Family>().unwrap(), family);
        }
        assert_eq!(Family::from_id(0), None);
        assert_eq!(Family::from_id(8), None);
    }

    #[test]
    fn the_error_for_an_unknown_name_lists_the_known_ones() {
        let error = "murmur4".parse::<Family>().unwrap_err().to_string();
        assert!(error.contains("family = murmur4"), "{error}");
        for family in Family::ALL {
            assert!(error.contains(family.name()), "{error} lacks {family}");
        }
    }

    #[test]
    fn parameters_are_accepted_up_to_their_limits_and_not_beyond() {
        for family in Family::ALL {
            let (k, m) = (family.max_hashes(), family.max_cells());
            assert!(family.validate(1, 1).is_ok());
            assert!(family.validate(k, m).is_ok());
            for (bad_k, bad_m, named) in [(0, m, "k"), (k + 1, m, "k"), (k, 0, "m")] {
                let error = family.validate(bad_k, bad_m).unwrap_err();
                assert!(matches!(error, Error::Parameter { name, .. } if name == named), "{family}: {error}");
            }
        }
    }
}
