//! The index of Goh 2003 (Z-IDX): a Bloom filter that can be queried only with a trapdoor, and in
//! which the same word sets different bits for every document.
//!
//! ```
//! use umbel_text::vault::zidx::{Id, Index, IndexKey, Noise, IndexShape};
//!
//! let shape = IndexShape::new(100, 14)?;
//! let key = IndexKey::new(&[7; 32], shape.hashes());
//! let (one, other) = (Id([1; 16]), Id([2; 16]));
//! let words = [key.trapdoor("attack"), key.trapdoor("dawn")];
//! let index = Index::build(&shape, &one, 0, &words, &mut Noise::new(&[9; 32]));
//!
//! // The index can be queried with a trapdoor, and only with one.
//! assert!(index.contains(&one, 0, &key.trapdoor("dawn")));
//! assert!(!index.contains(&one, 0, &key.trapdoor("dusk")));
//! assert!(!index.contains(&one, 0, &IndexKey::new(&[8; 32], 14).trapdoor("dawn")));
//!
//! // The same words in another document set unrelated bits.
//! let same = Index::build(&shape, &other, 0, &words, &mut Noise::new(&[10; 32]));
//! assert_ne!(index.bits(), same.bits());
//! # Ok::<(), umbel_text::Error>(())
//! ```
//!
//! The trapdoor of a word w is F(k₁, w), .., F(k_r, w), with F = HMAC-SHA-256. Its codewords in an
//! index are F(x_i, document and part) for the parts x_i of the trapdoor, and the bits are the
//! codewords modulo m. An index for at most u words that has v words gets (u - v)·r additional
//! random bits, so that all indexes of a vault are equally full.

use crate::{Error, Result};
use hmac::{Hmac, KeyInit, Mac};
use rayon::prelude::*;
use sha2::Sha256;
use std::f64::consts::LN_2;
use std::fmt;
use umbel::internals::hex;
use zeroize::{Zeroize, Zeroizing};

/// A pseudo-random function: HMAC-SHA-256 with a secret key.
#[derive(Clone)]
pub(super) struct Prf(Hmac<Sha256>);

impl Prf {
    pub(super) fn new(key: &[u8; 32]) -> Prf {
        // HMAC takes a key of one block, and pads a shorter key with zeros.
        let mut block = Zeroizing::new([0; 64]);
        block[..32].copy_from_slice(key);
        Prf(Hmac::new((&*block).into()))
    }

    pub(super) fn apply(&self, message: &[&[u8]]) -> [u8; 32] {
        let mut mac = self.0.clone();
        message.iter().for_each(|bytes| mac.update(bytes));
        mac.finalize().into_bytes().into()
    }
}

/// The first bytes of an id. In a copy of a vault, the owner recognises copied documents by them.
pub(super) type CopyTag = [u8; 8];

/// The id of a document: 16 random bytes, half of which are derived in a copy of a vault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub [u8; 16]);

impl Id {
    /// Returns a random id.
    pub(super) fn random() -> Result<Id, getrandom::Error> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map(|()| Id(id))
    }

    /// Returns a random id that begins with these bytes. The others are random, since the nonces of
    /// a document depend on its id, and the same document may be copied twice.
    pub(super) fn random_copy(tag: &CopyTag) -> Result<Id, getrandom::Error> {
        let mut id = Id::random()?;
        id.0[..tag.len()].copy_from_slice(tag);
        Ok(id)
    }

    /// Returns the first bytes of the id.
    pub(super) fn tag(&self) -> CopyTag {
        *self.0.first_chunk().expect("an id has 16 bytes")
    }

    /// Returns the first bytes of the ids of copies of this document.
    pub(super) fn copy_tag(&self, prf: &Prf) -> CopyTag {
        Id(*prf.apply(&[&self.0]).first_chunk().expect("a hash has 32 bytes")).tag()
    }

    /// Parses 32 hexadecimal digits in lower case.
    pub fn parse(text: &str) -> Option<Id> {
        let is_lower = !text.contains(|c: char| c.is_ascii_uppercase());
        hex::decode_array(text.as_bytes()).filter(|_| is_lower).map(Id)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The shape of every index of a vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexShape {
    words: u32,
    hashes: u32,
    bits: u64,
}

impl IndexShape {
    /// Returns the shape for at most `words` words in an index (u) and `hashes` keys (r). The
    /// number of bits (m) is chosen so that half of them are set.
    ///
    /// # Errors
    ///
    /// Fails if `words` is not from 8 to 1048576, or `hashes` is not from 1 to 64.
    pub fn new(words: u32, hashes: u32) -> Result<IndexShape> {
        if !(8..=1 << 20).contains(&words) {
            return Err(Error::parameter("words", words, "a number from 8 to 1048576"));
        }
        if !(1..=64).contains(&hashes) {
            return Err(Error::parameter("hashes", hashes, "a number from 1 to 64"));
        }
        let bits = (f64::from(words) * f64::from(hashes) / LN_2).ceil() as u64;
        Ok(IndexShape { words, hashes, bits: bits.next_multiple_of(64) })
    }

    /// Returns the shape with the number of keys that a rate needs, such that 2^-r is at most the
    /// rate.
    ///
    /// # Errors
    ///
    /// Fails if the rate is not between 0 and 1 or needs more than 64 keys, or if `words` is out of
    /// range.
    pub fn for_rate(words: u32, rate: f64) -> Result<IndexShape> {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(Error::parameter("p", rate, "a rate between 0 and 1"));
        }
        IndexShape::new(words, (1.0 / rate).log2().ceil().clamp(1.0, 1000.0) as u32)
    }

    /// Returns the maximum number of words in an index (u).
    pub fn words(&self) -> u32 {
        self.words
    }

    /// Returns the number of keys, which is the number of bits per word (r).
    pub fn hashes(&self) -> u32 {
        self.hashes
    }

    /// Returns the number of bits in an index (m).
    pub fn bits(&self) -> u64 {
        self.bits
    }

    /// Returns the expected share of bits that are set in every index.
    pub fn fill(&self) -> f64 {
        let draws = f64::from(self.words) * f64::from(self.hashes);
        1.0 - (draws * (-1.0 / self.bits as f64).ln_1p()).exp()
    }

    /// Returns the probability that an index appears to have a word that it does not have, about
    /// 2^-r.
    pub fn rate(&self) -> f64 {
        self.fill().powi(self.hashes as i32)
    }
}

/// The keys k₁ .. k_r.
pub struct IndexKey {
    keys: Vec<Prf>,
}

impl IndexKey {
    /// Derives `hashes` keys from one secret.
    pub fn new(secret: &[u8; 32], hashes: u32) -> IndexKey {
        let prf = Prf::new(secret);
        let key = |i: u32| Prf::new(&Zeroizing::new(prf.apply(&[b"key", &i.to_le_bytes()])));
        IndexKey { keys: (0..hashes).map(key).collect() }
    }

    /// Returns the trapdoor that a server needs to search for a word. It reveals nothing else, but
    /// it never expires, and it is the same every time the word is searched for.
    pub fn trapdoor(&self, word: &str) -> Trapdoor {
        Trapdoor { parts: self.keys.iter().map(|key| key.apply(&[word.as_bytes()])).collect() }
    }
}

impl fmt::Debug for IndexKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IndexKey({} secrets)", self.keys.len())
    }
}

/// The capability to search for one word.
#[derive(Clone, PartialEq, Eq)]
pub struct Trapdoor {
    parts: Vec<[u8; 32]>,
}

impl Drop for Trapdoor {
    fn drop(&mut self) {
        self.parts.as_flattened_mut().zeroize();
    }
}

impl Trapdoor {
    /// Returns the bytes to send to a server.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.parts.concat()
    }

    /// Parses the bytes received by a server.
    pub fn from_bytes(bytes: &[u8]) -> Option<Trapdoor> {
        let (parts, rest) = bytes.as_chunks::<32>();
        let fits = (1..=64).contains(&parts.len()) && rest.is_empty();
        fits.then(|| Trapdoor { parts: parts.to_vec() })
    }

    /// Returns the positions of the word's bits in an index of `m` bits.
    pub fn positions(&self, id: &Id, part: u32, m: u64) -> impl Iterator<Item = u64> {
        self.parts.iter().map(move |x| below(Prf::new(x).apply(&[&id.0, &part.to_le_bytes()]), m))
    }
}

impl fmt::Debug for Trapdoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trapdoor({} parts)", self.parts.len())
    }
}

/// Returns the first eight bytes, as a number modulo m.
fn below(bytes: [u8; 32], m: u64) -> u64 {
    let [eight, ..] = bytes.as_chunks::<8>().0 else { return 0 };
    u64::from_le_bytes(*eight) % m.max(1)
}

/// A generator of random numbers from a secret that is discarded afterwards.
pub struct Noise {
    prf: Prf,
    block: u64,
    ready: Vec<u64>,
}

impl Noise {
    /// Creates a generator whose output depends only on the secret.
    pub fn new(secret: &[u8; 32]) -> Noise {
        Noise { prf: Prf::new(secret), block: 0, ready: Vec::new() }
    }

    /// Creates a generator seeded by the system.
    pub(super) fn random() -> Result<Noise, getrandom::Error> {
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(&mut secret[..])?;
        Ok(Noise::new(&secret))
    }

    /// Returns a number below `range`. The distribution is uniform up to a bias of `range` / 2^64.
    pub(super) fn below(&mut self, range: u64) -> u64 {
        if self.ready.is_empty() {
            let block = self.prf.apply(&[b"noise", &self.block.to_le_bytes()]);
            self.block += 1;
            self.ready.extend(block.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)));
        }
        self.ready.pop().unwrap_or(0) % range.max(1)
    }

    /// Shuffles a slice.
    pub(super) fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// The index of a document or of a part of it, which can be queried with trapdoors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    bits: Vec<u8>,
}

impl Index {
    /// Builds the index of a part of a document from the trapdoors of its words. With more than u
    /// words the rate rises.
    pub fn build(shape: &IndexShape, id: &Id, part: u32, words: &[Trapdoor], noise: &mut Noise) -> Index {
        let m = shape.bits;
        let mut index = Index { bits: vec![0; (m / 8) as usize] };
        let positions: Vec<u64> =
            words.par_iter().flat_map_iter(|trapdoor| trapdoor.positions(id, part, m)).collect();
        positions.into_iter().for_each(|position| index.set(position));
        let blind = u64::from(shape.words).saturating_sub(words.len() as u64) * u64::from(shape.hashes);
        (0..blind).for_each(|_| index.set(noise.below(m)));
        index
    }

    /// Creates an index from its bits.
    pub fn from_bits(bits: Vec<u8>) -> Index {
        Index { bits }
    }

    /// Returns the bits, starting with the lowest of each byte.
    pub fn bits(&self) -> &[u8] {
        &self.bits
    }

    pub(super) fn into_bits(self) -> Vec<u8> {
        self.bits
    }

    fn set(&mut self, position: u64) {
        self.bits[(position / 8) as usize] |= 1 << (position % 8);
    }

    /// Returns whether a bit is set.
    pub fn bit(&self, position: u64) -> bool {
        self.bits.get((position / 8) as usize).is_some_and(|byte| byte >> (position % 8) & 1 == 1)
    }

    /// Returns whether the index may have the word of the trapdoor. Half of the bits are set, so
    /// two of them suffice on average to rule out another word.
    pub fn contains(&self, id: &Id, part: u32, trapdoor: &Trapdoor) -> bool {
        trapdoor.positions(id, part, self.bits.len() as u64 * 8).all(|position| self.bit(position))
    }

    /// Returns the number of bits that are set.
    pub fn ones(&self) -> u64 {
        self.bits.iter().map(|byte| u64::from(byte.count_ones())).sum()
    }
}
