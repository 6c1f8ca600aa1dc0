//! The bits of a summary, wherever it comes from.

use crate::Key;
use crate::error::{Error, Result};

/// The most bits of a summary: a change names one in 31 bits.
pub const MOST_BITS: u32 = 1 << 31;

/// The bits of a summary: bit `i` is bit `i % 8` of byte `i / 8`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
    len: u32,
}

impl Bits {
    /// So many bits, none of them set.
    pub fn zeroed(len: u32) -> Result<Bits> {
        if len == 0 || len > MOST_BITS {
            return Err(Error::Size { what: format!("a summary has 1 to 2^31 bits, and not {len}") });
        }
        let count = len.div_ceil(64) as usize;
        let mut words = Vec::new();
        let memory = |_| umbel::Error::OutOfMemory { bytes: 8 * count as u64 };
        words.try_reserve_exact(count).map_err(memory)?;
        words.resize(count, 0);
        Ok(Bits { words, len })
    }

    /// The bits of these bytes, of which only so many count.
    pub fn from_bytes(bytes: &[u8], len: u32) -> Result<Bits> {
        let mut bits = Bits::zeroed(len)?;
        if bytes.len() != len.div_ceil(8) as usize {
            let why = format!("{len} bits in {} bytes", bytes.len());
            return Err(Error::malformed("summary", why));
        }
        for (word, chunk) in bits.words.iter_mut().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..chunk.len()].copy_from_slice(chunk);
            *word = u64::from_le_bytes(whole);
        }
        let last = bits.words.last_mut().filter(|_| !len.is_multiple_of(64));
        if last.is_some_and(|word| *word >> (len % 64) != 0) {
            return Err(Error::malformed("summary", "there are bits beyond its end"));
        }
        Ok(bits)
    }

    /// As many bytes as the bits need.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(self.len.div_ceil(8) as usize);
        bytes
    }

    /// How many bits there are.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are none, as before anything has come.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many are set.
    pub fn ones(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Whether a bit is set; one beyond the end is not.
    pub fn get(&self, bit: u32) -> bool {
        self.words.get(bit as usize / 64).is_some_and(|word| word >> (bit % 64) & 1 > 0)
    }

    /// Sets a bit to a value; whether it had the other one. One beyond the end has none.
    pub fn set(&mut self, bit: u32, value: bool) -> bool {
        let Some(word) = self.words.get_mut(bit as usize / 64).filter(|_| bit < self.len) else {
            return false;
        };
        let before = *word;
        *word = before & !(1 << (bit % 64)) | u64::from(value) << (bit % 64);
        *word != before
    }

    /// Whether a document may be among those that the bits are of.
    pub fn contains(&self, key: &Key) -> bool {
        self.len > 0 && key.positions(self.len).into_iter().all(|bit| self.get(bit))
    }

    /// The rate at which it promises what it does not have: the share of bits that are set, for each word of a key.
    pub fn rate(&self) -> f64 {
        (f64::from(self.ones()) / f64::from(self.len.max(1))).powi(Key::HASHES as i32)
    }
}
