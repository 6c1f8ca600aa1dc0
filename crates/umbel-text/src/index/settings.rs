//! What an index is made of: which pieces of text are keys, and how many bits each gets.

use crate::{Error, Result};
use umbel::{Digest, Hasher};

/// How an index is built. What is written in a file stays so: an update follows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The share of files that are named in vain for a key they do not hold.
    pub rate: f64,
    /// How long the pieces of text are by which any substring is found; without, only whole words are.
    pub grams: Option<u32>,
    /// Files are cut into blocks of about so many bytes, each with a filter of its own.
    pub block: u64,
}

impl Settings {
    /// For whole words: one file in a hundred is read in vain.
    pub const WORDS: Settings = Settings { rate: 0.01, grams: None, block: 1 << 20 };

    /// For any substring of four bytes or more. A query has several keys, all of which must be there, so each of them
    /// may be wrong more often.
    pub const SUBSTRINGS: Settings = Settings { rate: 0.1, grams: Some(4), block: 1 << 20 };

    /// Refuses what makes no sense.
    pub fn check(&self) -> Result<()> {
        if !(1e-9..=0.5).contains(&self.rate) {
            return Err(Error::parameter("rate", self.rate, "a rate from 1e-9 to 0.5"));
        }
        if self.grams.is_some_and(|length| !(2..=8).contains(&length)) {
            return Err(Error::parameter("grams", self.grams.unwrap_or(0), "pieces of 2 to 8 bytes"));
        }
        if !(1 << 10..=1 << 30).contains(&self.block) {
            return Err(Error::parameter("block", self.block, "blocks of 1 KiB to 1 GiB"));
        }
        Ok(())
    }

    /// How many bits each key sets.
    pub fn hashes(&self) -> u32 {
        ((1.0 / self.rate).log2().round() as u32).max(1)
    }

    /// How many bits a filter has for each of its keys, in 256ths: from `rate = (1 - e^(-k/c))^k`. Another machine may round
    /// otherwise, so the number stands in the file.
    pub(super) fn cells(&self) -> u64 {
        let k = f64::from(self.hashes());
        let each = -k / (-self.rate.powf(1.0 / k)).ln_1p();
        (each * 256.0).ceil() as u64
    }
}

/// The hash of all keys: what a file says must be found on every machine.
pub(super) const HASHER: Hasher = Hasher::fast(0);

/// What makes a piece of text another key than the word of the same bytes.
const GRAM: u64 = u64::from_le_bytes(*b"grams\0\0\0");

/// The key of a word, in small letters.
#[inline]
pub(super) fn word(folded: &[u8]) -> Digest {
    HASHER.digest_bytes(folded)
}

/// The key of a piece of text, its bytes in a number, the first one highest.
#[inline]
pub(super) fn gram(bytes: u64) -> Digest {
    Digest::from_hash(bytes).salted(GRAM)
}

/// `2^(i/8)` in 2^32ths: the sizes of filters climb by a twelfth of themselves, eight steps to an octave.
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

/// The bits of a filter on this rung. Filters of few sizes can stand side by side; that costs each 4 % on average.
pub(super) fn rung_bits(rung: u32) -> u64 {
    (((64 * u128::from(STEPS[rung as usize % 8])) << (rung / 8)) >> 32) as u64
}

/// The highest rung. No file has a filter beyond it.
pub(super) const MAX_RUNG: u32 = 8 * 40;

/// The rung for so many keys, with so many 256ths of a bit for each.
pub(super) fn rung(keys: u64, cells: u64) -> u32 {
    rung_for((u128::from(keys) * u128::from(cells)).div_ceil(256) as u64)
}

/// The lowest rung with so many bits.
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
    fn rungs_climb_by_less_than_a_tenth_and_hold_what_they_are_chosen_for() {
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
    fn bits_for_a_key_are_those_of_the_formula() {
        let words = Settings::WORDS;
        assert_eq!(words.hashes(), 7);
        let each = words.cells() as f64 / 256.0;
        assert!((each - 9.5936).abs() < 0.005, "{each}");
        let rate = (1.0 - (-7.0 / each).exp()).powi(7);
        assert!(rate <= 0.01 && rate > 0.0099, "{rate}");
    }
}
