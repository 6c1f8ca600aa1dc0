//! The entropy of bits, and an arithmetic coder that needs hardly more.
//!
//! The coder divides a range of numbers in proportion to the probabilities of 0 and 1, and keeps
//! the part of the bit that comes. The bytes in which both ends of the range agree are final and
//! are written.
//!
//! ```text
//!   low                    split                                          high
//!    |----- part of 1 -------|---------------- part of 0 -------------------|
//! ```
//!
//! # References
//!
//! * I. H. Witten, R. M. Neal and J. G. Cleary. *Arithmetic coding for data compression.*
//!   Communications of the ACM 30(6), 1987. `WNC87`

/// Returns the entropy of a bit that is 1 with probability `p`, in bits.
pub fn entropy(p: f64) -> f64 {
    let part = |p: f64| if p > 0.0 { -p * p.log2() } else { 0.0 };
    part(p) + part(1.0 - p)
}

/// The range of numbers, and the part of it that belongs to a 1, in 65536ths.
struct Range {
    low: u32,
    high: u32,
    ones: u32,
}

impl Range {
    /// Creates the range for `count` bits, `ones` of which are 1.
    fn new(ones: u64, count: u64) -> Range {
        let share = (u128::from(ones) << 16) / u128::from(count.max(1));
        Range { low: 0, high: u32::MAX, ones: share.clamp(1, 0xffff) as u32 }
    }

    /// Returns the last number of the part of 1.
    fn split(&self) -> u32 {
        self.low + ((u64::from(self.high - self.low) * u64::from(self.ones)) >> 16) as u32
    }

    /// Reduces the range to the part of a bit.
    fn take(&mut self, bit: bool) {
        let split = self.split();
        if bit { self.high = split } else { self.low = split + 1 }
    }

    /// Removes a byte in which both ends agree, and returns it.
    fn shift(&mut self) -> Option<u8> {
        if (self.low ^ self.high) >> 24 != 0 {
            return None;
        }
        let byte = (self.low >> 24) as u8;
        (self.low, self.high) = (self.low << 8, self.high << 8 | 0xff);
        Some(byte)
    }
}

fn ones(words: &[u64], count: u64) -> u64 {
    bits(words, count).filter(|bit| *bit).count() as u64
}

fn bits(words: &[u64], count: u64) -> impl Iterator<Item = bool> {
    (0..count).map(|bit| words[(bit / 64) as usize] >> (bit % 64) & 1 == 1)
}

/// Encodes the first `count` bits of these words: the number of ones in eight bytes, then the code.
///
/// # Panics
///
/// If there are fewer bits.
pub fn encode(words: &[u64], count: u64) -> Vec<u8> {
    let ones = ones(words, count);
    let (mut code, mut range) = (ones.to_le_bytes().to_vec(), Range::new(ones, count));
    for bit in bits(words, count) {
        range.take(bit);
        while let Some(byte) = range.shift() {
            code.push(byte);
        }
    }
    code.extend(range.low.to_be_bytes());
    code
}

/// Decodes `count` bits; the rest of the last word is 0. Missing bytes count as 0.
pub fn decode(code: &[u8], count: u64) -> Vec<u64> {
    let mut code = code.iter().copied();
    let mut next = || code.next().unwrap_or(0);
    let ones = u64::from_le_bytes(std::array::from_fn(|_| next()));
    let mut number = u32::from_be_bytes(std::array::from_fn(|_| next()));
    let mut range = Range::new(ones, count);
    let mut words = vec![0; count.div_ceil(64) as usize];
    for at in 0..count {
        let bit = number <= range.split();
        words[(at / 64) as usize] |= u64::from(bit) << (at % 64);
        range.take(bit);
        while range.shift().is_some() {
            number = number << 8 | u32::from(next());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::mix;

    #[test]
    fn every_density_is_decoded_and_takes_hardly_more_than_its_entropy() {
        let count = 100_001;
        for per_thousand in [0, 1, 10, 60, 300, 500, 700, 999, 1000] {
            let mut words = vec![0u64; 1563];
            for bit in (0..count).filter(|bit| mix(*bit) % 1000 < per_thousand) {
                words[(bit / 64) as usize] |= 1 << (bit % 64);
            }
            let code = encode(&words, count);
            assert_eq!(decode(&code, count), words, "{per_thousand}");
            let least = count as f64 * entropy(ones(&words, count) as f64 / count as f64);
            let bits = 8.0 * code.len() as f64;
            assert!(bits >= least && bits <= 1.001 * least + 140.0, "{per_thousand}: {bits} of {least}");
        }
        assert_eq!(decode(&encode(&[], 0), 0), [0u64; 0]);
    }

    #[test]
    fn damaged_code_is_decoded_to_something_else_without_a_panic() {
        let words: Vec<u64> = (0..20).map(mix).collect();
        let code = encode(&words, 1280);
        for length in 0..code.len() - 4 {
            assert_eq!(decode(&code[..length], 1280).len(), 20);
        }
        assert_eq!(decode(&[0xff; 40], 1280).len(), 20);
    }
}
