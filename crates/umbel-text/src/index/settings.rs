//! The settings of an index: the source of its keys, and the number of bits per key.

use super::column::Column;
use crate::{Error, Result};
use umbel::{Digest, Hasher};

/// The source of the keys of an index.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum KeySource {
    /// The words of text files.
    Text(Settings),
    /// The values of a column of table files.
    Column(Column),
}

impl KeySource {
    pub(super) fn check(&self) -> Result<()> {
        match self {
            KeySource::Text(settings) => settings.check(),
            KeySource::Column(column) => column.check(),
        }
    }

    /// Returns the share of filters that have a key without containing it.
    pub fn rate(&self) -> f64 {
        match self {
            KeySource::Text(settings) => settings.rate,
            KeySource::Column(column) => column.rate,
        }
    }

    /// Returns the settings of an index of text files.
    pub fn text(&self) -> Option<&Settings> {
        match self {
            KeySource::Text(settings) => Some(settings),
            KeySource::Column(_) => None,
        }
    }

    /// Returns the column of an index of table files.
    pub fn column(&self) -> Option<&Column> {
        match self {
            KeySource::Text(_) => None,
            KeySource::Column(column) => Some(column),
        }
    }

    /// Returns the number of bits that a key sets.
    pub(super) fn hashes(&self) -> u32 {
        ((1.0 / self.rate()).log2().round() as u32).max(1)
    }

    /// Returns the number of bits per key in 256ths, from `rate = (1 - e^(-k/c))^k`. The number is
    /// stored in the file, because another machine may round it differently.
    pub(super) fn cells(&self) -> u64 {
        let k = f64::from(self.hashes());
        let each = -k / (-self.rate().powf(1.0 / k)).ln_1p();
        (each * 256.0).ceil() as u64
    }
}

/// The settings of an index of text files. They are stored in the index and apply to updates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The share of files that match a key that they do not contain.
    pub rate: f64,
    /// The length of the substrings that are indexed; `None` for whole words only.
    pub grams: Option<u32>,
    /// The approximate size of a block in bytes. Each block of a file has its own filter.
    pub block: u64,
}

impl Settings {
    /// Settings for whole words, with one file in a hundred read in vain.
    pub const WORDS: Settings = Settings { rate: 0.01, grams: None, block: 1 << 20 };

    /// Settings for any substring of four bytes or more. Each key may have a higher rate, because a
    /// query has several keys that must all be present.
    pub const SUBSTRINGS: Settings = Settings { rate: 0.1, grams: Some(4), block: 1 << 20 };

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// Fails if a setting is out of range.
    pub fn check(&self) -> Result<()> {
        check_rate(self.rate)?;
        if self.grams.is_some_and(|length| !(2..=8).contains(&length)) {
            return Err(Error::parameter("grams", self.grams.unwrap_or(0), "pieces of 2 to 8 bytes"));
        }
        if !(1 << 10..=1 << 30).contains(&self.block) {
            return Err(Error::parameter("block", self.block, "blocks of 1 KiB to 1 GiB"));
        }
        Ok(())
    }
}

/// Checks the rate of an index.
pub(super) fn check_rate(rate: f64) -> Result<()> {
    match (1e-9..=0.5).contains(&rate) {
        true => Ok(()),
        false => Err(Error::parameter("rate", rate, "a rate from 1e-9 to 0.5")),
    }
}

/// The hash of all keys, the same on every machine.
pub(super) const HASHER: Hasher = Hasher::fast(0);

/// The salt that separates the key of a substring from that of a word with the same bytes.
const GRAM: u64 = u64::from_le_bytes(*b"grams\0\0\0");

/// Returns the key of a word in lower case.
#[inline]
pub(super) fn word(folded: &[u8]) -> Digest {
    HASHER.digest_bytes(folded)
}

/// Returns the key of a substring, whose bytes are passed as a big-endian number.
#[inline]
pub(super) fn gram(bytes: u64) -> Digest {
    Digest::from_hash(bytes).salted(GRAM)
}

/// `2^(i/8)` in 2^32ths. The sizes of filters grow by about 9 % per step, with eight steps to a
/// doubling.
const STEPS: [u64; 8] = [
    4_294_967_296,
    4_683_695_047,
    5_107_605_667,
    5_569_883_475,
    6_074_000_999,
    6_623_745_058,
    7_223_245_205,
    7_877_004_751,
];

/// Returns the number of bits of a filter on this rung. With few sizes many filters can be stored
/// side by side, which costs each 4 % of space on average.
pub(super) fn rung_bits(rung: u32) -> u64 {
    (((64 * u128::from(STEPS[rung as usize % 8])) << (rung / 8)) >> 32) as u64
}

/// The highest rung. No file needs a larger filter.
pub(super) const MAX_RUNG: u32 = 8 * 40;

/// Returns the rung for this many keys, with `cells` 256ths of a bit for each.
pub(super) fn rung(keys: u64, cells: u64) -> u32 {
    rung_for((u128::from(keys) * u128::from(cells)).div_ceil(256) as u64)
}

/// Returns the lowest rung with at least this many bits.
pub(super) fn rung_for(bits: u64) -> u32 {
    let (mut low, mut high) = (0, MAX_RUNG);
    while low < high {
        let middle = (low + high) / 2;
        if rung_bits(middle) < bits {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_grow_by_less_than_11_percent_and_fit_their_keys() {
        for (i, step) in STEPS.iter().enumerate() {
            let exact = 2f64.powf(i as f64 / 8.0) * 2f64.powi(32);
            assert!((*step as f64 - exact).abs() < 1.0, "{i}: {exact}");
        }
        for rung in 0..MAX_RUNG - 1 {
            let (here, next) = (rung_bits(rung), rung_bits(rung + 1));
            assert!(here < next && (next as f64) < here as f64 * 1.11, "{rung}");
            assert_eq!((rung_for(here), rung_for(here + 1)), (rung, rung + 1));
        }
        assert_eq!((rung_for(0), rung_for(64), rung_bits(0)), (0, 0, 64));
    }

    #[test]
    fn bits_per_key_follow_the_formula() {
        let words = KeySource::Text(Settings::WORDS);
        assert_eq!(words.hashes(), 7);
        let each = words.cells() as f64 / 256.0;
        assert!((each - 9.5936).abs() < 0.005, "{each}");
        let rate = (1.0 - (-7.0 / each).exp()).powi(7);
        assert!(rate <= 0.01 && rate > 0.0099, "{rate}");
    }
}
