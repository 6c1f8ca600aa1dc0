//! Turns the bytes of a key into a [`Digest`] of 64 bits, exactly once.
//!
//! Every filter takes digests, so a key that is looked up in many filters is hashed once. A
//! [`Hasher`] has one of three [`Strength`]s, and every file names the one it was built with:
//!
//! | strength | function | use it when |
//! | --- | --- | --- |
//! | `fast` | XXH3-64 with a seed (0 by default) | attackers do not choose keys; builds are reproducible, and shards can be united |
//! | `keyed` | SipHash-1-3 with a 128-bit secret | input is hostile: false positives cannot be crafted without the secret |
//! | `sealed` | keyed BLAKE3 with a 256-bit secret | the set must not leak to a reader of the file |
//!
//! A filter that does not leave its process should be `keyed` with a [random](Hasher::random) secret:
//! nothing is lost, since the secret is needed nowhere else.
//!
//! `fast` takes a few nanoseconds for a short key, `keyed` some more, and `sealed` many times as
//! long.
//!
//! ```
//! use umbel::{Hasher, Key};
//! let hasher = Hasher::fast(0);
//! let digest = "bloom".digest(&hasher);
//! assert_eq!(digest, b"bloom".digest(&hasher), "a string is its bytes");
//! assert_ne!(digest.salted(1), digest.salted(2), "independent digests without the key");
//! ```
//!
//! Two keys share a digest with probability 2^-64. This floor is part of every rate.
//!
//! # References
//!
//! * Y. Collet. *xxHash: extremely fast hash algorithm.* Source code and specification, repository
//!   `Cyan4973/xxHash`. XXH3
//! * J.-P. Aumasson and D. J. Bernstein. *SipHash: a fast short-input PRF.* INDOCRYPT 2012.
//!   `AB12`
//! * J. O'Connor, J.-P. Aumasson, S. Neves and Z. Wilcox-O'Hearn. *BLAKE3: one function, fast
//!   everywhere.* 2020. BLAKE3
//! * G. L. Steele Jr. and S. Vigna. *Computationally easy, spectrally good multipliers for
//!   congruential pseudorandom number generators.* Software: Practice and Experience 52(2), 2022.
//!   `SV22`
//! * D. Lemire. *Fast random integer generation in an interval.* ACM Transactions on Modeling and
//!   Computer Simulation 29(1), 2019. `Lemire19`

mod ends;
mod integers;
mod ring;
mod stream;

pub(crate) use ends::Ends;
#[cfg(feature = "secrets")]
pub(crate) use integers::sip13_u64;
pub(crate) use integers::xxh3_u64;
pub use ring::KeyRing;
pub use stream::{MULTIPLIER, Stream, reduce};
pub(crate) use stream::{POWERS, reduce_narrow};

use crate::tile;
use crate::{Batch, Error, Level, Result};
#[cfg(feature = "secrets")]
use siphasher::sip::SipHasher13;
use std::fmt;
use std::str::FromStr;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The hash of a key: 64 uniformly distributed bits.
///
/// Two different keys share a digest with probability 2^-64. This floor is part of every rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Digest(u64);

impl Digest {
    /// Makes a digest from a hash computed elsewhere, which must be uniform over all 64 bits.
    #[inline(always)]
    pub const fn from_hash(hash: u64) -> Digest {
        Digest(hash)
    }

    /// Returns the 64 bits.
    #[inline(always)]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns an independent digest of the same key without the key: for pages, epochs, levels and
    /// retries.
    ///
    /// It is XXH3-64 of the digest's eight little-endian bytes with the salt as seed.
    #[inline(always)]
    pub const fn salted(self, salt: u64) -> Digest {
        Digest(xxh3_u64(self.0, salt))
    }

    /// Returns the probe stream that starts with this digest.
    #[inline(always)]
    pub const fn stream(self) -> Stream {
        Stream::new(self.0)
    }
}

/// The strength of a [`Hasher`]; see the [module](self) for when to use which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strength {
    /// XXH3-64 with a public seed.
    Fast,
    /// SipHash-1-3 with a 128-bit secret.
    Keyed,
    /// Keyed BLAKE3 with a 256-bit secret.
    Sealed,
}

impl Strength {
    const ALL: [(Strength, &str); 3] =
        [(Strength::Fast, "fast"), (Strength::Keyed, "keyed"), (Strength::Sealed, "sealed")];
}

impl fmt::Display for Strength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name) = Strength::ALL.iter().find(|(strength, _)| strength == self).expect("all are listed");
        f.pad(name)
    }
}

impl FromStr for Strength {
    type Err = Error;
    fn from_str(text: &str) -> Result<Strength> {
        let found = Strength::ALL.iter().find(|(_, name)| *name == text);
        found
            .map(|(strength, _)| *strength)
            .ok_or_else(|| Error::parameter("hash", text, "fast, keyed or sealed"))
    }
}

/// The identity of a hash function without its secret. Files store it, and unions compare it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HashId {
    /// The strength of the function.
    pub strength: Strength,
    /// The seed of a fast hash; otherwise a tag of the secret that does not reveal it.
    pub value: u64,
}

impl fmt::Display for HashId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.strength {
            Strength::Fast => write!(f, "fast, seed {}", self.value),
            strength => write!(f, "{strength}, key tag {:016x}", self.value),
        }
    }
}

/// A hash function with its seed or secret.
///
/// ```
/// use umbel::hash::Strength;
/// use umbel::Hasher;
/// assert_eq!(Hasher::default().id(), Hasher::fast(0).id());
/// assert_eq!(Hasher::keyed([7; 16]).id().strength, Strength::Keyed);
/// // Debug output never shows a secret.
/// assert!(!format!("{:?}", Hasher::keyed([7; 16])).contains("7, 7"));
/// ```
#[derive(Clone)]
pub struct Hasher(pub(crate) Function);

#[derive(Clone)]
pub(crate) enum Function {
    Fast {
        seed: u64,
    },
    #[cfg(feature = "secrets")]
    Keyed {
        key: [u8; 16],
        tag: u64,
    },
    #[cfg(feature = "secrets")]
    Sealed {
        key: Box<[u8; 32]>,
        tag: u64,
    },
}

impl Hasher {
    /// Returns XXH3-64 with a seed. Filters can be united only if their seeds are equal, so the
    /// default is always 0.
    ///
    /// The seed does not replace a secret: anyone who knows it can craft keys that collide.
    pub const fn fast(seed: u64) -> Hasher {
        Hasher(Function::Fast { seed })
    }

    /// Returns SipHash-1-3 with a secret.
    #[cfg(feature = "secrets")]
    pub fn keyed(key: [u8; 16]) -> Hasher {
        Hasher(Function::Keyed { key, tag: tag(Strength::Keyed, &key) })
    }

    /// Returns keyed BLAKE3 with a secret.
    #[cfg(feature = "secrets")]
    pub fn sealed(key: [u8; 32]) -> Hasher {
        Hasher(Function::Sealed { key: Box::new(key), tag: tag(Strength::Sealed, &key) })
    }

    /// Returns SipHash-1-3 with a random secret, for a filter that does not leave its process. The
    /// secret is lost with the hasher, so nobody can craft keys that collide.
    ///
    /// ```
    /// use umbel::{BloomFilter, Hasher};
    /// let mut seen = BloomFilter::builder().capacity(1000).rate(0.01).hasher(Hasher::random()?).build()?;
    /// assert!(seen.insert("a line") && !seen.insert("a line"));
    /// assert_ne!(Hasher::random()?, Hasher::random()?);
    /// # Ok::<(), umbel::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoRandom`] if the system has no random numbers.
    #[cfg(feature = "secrets")]
    pub fn random() -> Result<Hasher> {
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(|error| Error::NoRandom(std::io::Error::other(error)))?;
        Ok(Hasher::keyed(key))
    }

    /// Returns the identity of this function, which can be public.
    pub fn id(&self) -> HashId {
        match self.0 {
            Function::Fast { seed } => HashId { strength: Strength::Fast, value: seed },
            #[cfg(feature = "secrets")]
            Function::Keyed { tag, .. } => HashId { strength: Strength::Keyed, value: tag },
            #[cfg(feature = "secrets")]
            Function::Sealed { tag, .. } => HashId { strength: Strength::Sealed, value: tag },
        }
    }

    /// Returns the seed or the secret, from which [`Hasher::from_seed_or_secret`] makes the same
    /// function in another process.
    #[cfg(all(feature = "files", feature = "mmap"))]
    pub(crate) fn seed_or_secret(&self) -> Vec<u8> {
        match &self.0 {
            Function::Fast { seed } => seed.to_le_bytes().to_vec(),
            #[cfg(feature = "secrets")]
            Function::Keyed { key, .. } => key.to_vec(),
            #[cfg(feature = "secrets")]
            Function::Sealed { key, .. } => key.to_vec(),
        }
    }

    /// Returns the function of this strength; `None` if it has a seed or secret of another length.
    #[cfg(all(feature = "files", feature = "mmap"))]
    pub(crate) fn from_seed_or_secret(strength: Strength, bytes: &[u8]) -> Option<Hasher> {
        match strength {
            Strength::Fast => Some(Hasher::fast(u64::from_le_bytes(bytes.try_into().ok()?))),
            #[cfg(feature = "secrets")]
            Strength::Keyed => Some(Hasher::keyed(bytes.try_into().ok()?)),
            #[cfg(feature = "secrets")]
            Strength::Sealed => Some(Hasher::sealed(bytes.try_into().ok()?)),
            #[cfg(not(feature = "secrets"))]
            _ => None,
        }
    }

    /// Returns the digest of a key's bytes. Most callers want [`Key::digest`](crate::Key::digest).
    #[inline(always)]
    pub fn digest_bytes(&self, bytes: &[u8]) -> Digest {
        Digest(match &self.0 {
            Function::Fast { seed } => xxh3_64_with_seed(bytes, *seed),
            #[cfg(feature = "secrets")]
            Function::Keyed { key, .. } => sip13(key, bytes),
            #[cfg(feature = "secrets")]
            Function::Sealed { key, .. } => blake3_64(key, bytes),
        })
    }

    /// Returns the digests of many keys in order, faster than one by one.
    pub fn digest_batch<B: Batch + ?Sized>(&self, keys: &B) -> Vec<Digest> {
        let mut digests = vec![Digest::default(); keys.len()];
        self.digest_batch_into(keys, 0, &mut digests);
        digests
    }

    /// Hashes as many consecutive keys as there are elements in `digests`, beginning with key
    /// `start`, for callers that process a large batch piece by piece.
    ///
    /// ```
    /// use umbel::{Digest, Hasher};
    /// let (hasher, keys) = (Hasher::default(), ["apple", "pear", "plum"]);
    /// let mut digests = [Digest::default(); 2];
    /// hasher.digest_batch_into(&keys, 1, &mut digests);
    /// assert_eq!(digests, hasher.digest_batch(&keys)[1..]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the batch has fewer keys.
    pub fn digest_batch_into<B: Batch + ?Sized>(&self, keys: &B, start: usize, digests: &mut [Digest]) {
        assert!(
            keys.len().checked_sub(start).is_some_and(|rest| digests.len() <= rest),
            "the batch has {} keys, too few for {} digests from key {start} on",
            keys.len(),
            digests.len()
        );
        tile::hash(Level::detect(), keys, start, self, digests);
    }
}

impl Default for Hasher {
    fn default() -> Hasher {
        Hasher::fast(0)
    }
}

impl PartialEq for Hasher {
    fn eq(&self, other: &Hasher) -> bool {
        self.id() == other.id()
    }
}

impl Eq for Hasher {}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hasher({})", self.id())
    }
}

// The two strong functions are not inlined: they are long, and kernels inline `digest_bytes`.

#[cfg(feature = "secrets")]
#[inline(never)]
fn sip13(key: &[u8; 16], bytes: &[u8]) -> u64 {
    SipHasher13::new_with_key(key).hash(bytes)
}

#[cfg(feature = "secrets")]
#[inline(never)]
fn blake3_64(key: &[u8; 32], bytes: &[u8]) -> u64 {
    let hash = blake3::keyed_hash(key, bytes);
    u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("a BLAKE3 hash has 32 bytes"))
}

/// Returns eight bytes that identify a secret without revealing it, derived by BLAKE3 in a separate
/// context.
#[cfg(feature = "secrets")]
fn tag(strength: Strength, key: &[u8]) -> u64 {
    let mut deriver = blake3::Hasher::new_derive_key("umbel 2026 tag of a secret key");
    deriver.update(strength.to_string().as_bytes()).update(key);
    u64::from_le_bytes(*deriver.finalize().as_bytes().first_chunk().expect("a BLAKE3 hash has 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strengths_are_the_published_functions() {
        // XXH3-64 of the empty string and of "abc" with seed 0, as published with the reference
        // implementation.
        assert_eq!(Hasher::fast(0).digest_bytes(b"").get(), 0x2d06_8005_38d3_94c2);
        assert_eq!(Hasher::fast(0).digest_bytes(b"abc").get(), 0x78af_5f94_892f_3950);
        // A test vector of BLAKE3 in keyed mode: the key "whats the Elvish word for friend" and
        // empty input.
        let sealed = Hasher::sealed(*b"whats the Elvish word for friend");
        assert_eq!(
            sealed.digest_bytes(b"").get().to_le_bytes(),
            [0x92, 0xb2, 0xb7, 0x56, 0x04, 0xed, 0x3c, 0x76]
        );
        // SipHash-1-3 with the key 00..0f and empty input, from the reference vectors.
        let keyed = Hasher::keyed(std::array::from_fn(|i| i as u8));
        assert_eq!(keyed.digest_bytes(b"").get(), 0xabac_0158_050f_c4dc);
    }

    #[test]
    fn the_id_distinguishes_hashers_without_the_secret() {
        let (a, b) = (Hasher::keyed([1; 16]), Hasher::keyed([2; 16]));
        assert_ne!(a.id(), b.id());
        assert_ne!(a, b);
        assert_eq!(a, Hasher::keyed([1; 16]));
        assert_ne!(a.id().value, Hasher::sealed([1; 32]).id().value);
        assert_ne!(Hasher::fast(1), Hasher::fast(2));
        assert!(format!("{a:?}").contains("key tag"));
    }

    #[test]
    fn strength_names_round_trip() {
        for (strength, name) in Strength::ALL {
            assert_eq!(name.parse::<Strength>().unwrap(), strength);
            assert_eq!(strength.to_string(), name);
        }
        assert!("sip".parse::<Strength>().is_err());
    }
}
