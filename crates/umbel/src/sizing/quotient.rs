//! Quotient filters: S slots, each with a remainder of r bits and three bits of metadata.
//!
//! The filter stores the multiset of fingerprints exactly, one of S 2^r numbers for each key. It
//! errs only when a non-member has the fingerprint of a member, so the rate is exact at every size:
//!
//! > p = 1 - (1 - 1 / (S 2^r))^n, about n / (S 2^r) = load / 2^r
//!
//! It costs (r + 3) / load bits per key. The rate depends on S and r only through the product S
//! 2^r, so a filter keeps its rate when a bit moves from the remainders to the quotients.
//!
//! ```
//! use umbel::sizing::{QuotientParams, quotient};
//!
//! # fn main() -> umbel::Result<()> {
//! let params = QuotientParams::for_capacity(1_000_000, 0.01, &quotient::Options::default())?;
//! assert_eq!((params.slots, params.remainder_bits), (1_250_048, 7));
//! assert!(params.rate < 0.0063, "the next bit of the remainder is needed, and halves the rate");
//! # Ok(())
//! # }
//! ```
//!
//! # References
//!
//! * A. Pagh, R. Pagh and S. S. Rao. *An optimal Bloom filter replacement.* SODA 2005. `PPR05`
//! * M. A. Bender et al. *Don't thrash: how to cache your hash on flash.* PVLDB 5(11), 2012.
//!   `Bender12`

use super::{MAX_BITS, MAX_KEYS, check, greatest, least};
use crate::memory::{LINE_BITS, LINE_BYTES};
use crate::{Error, Result};

/// The default share of slots that are filled at capacity. The literature goes up to 0.9, which
/// takes a tenth less memory; but the length of clusters grows with 1 / (1 - load)^2, and lookups
/// then take half as long again.
pub const LOAD: f64 = 0.8;

/// The largest share of slots that can be filled. Beyond it every insertion would move hundreds of
/// slots.
pub const MAX_LOAD: f64 = 0.95;

/// The number of slots in a block.
pub const BLOCK: u64 = 64;

/// The bits of a slot besides its remainder.
pub const METADATA_BITS: u32 = 3;

/// The longest remainder, in bits: with the 2^6 slots of a block there are 2^63 fingerprints.
pub const MAX_REMAINDER_BITS: u32 = 57;

/// Blocks after the last one that is the home of keys, for keys that are pushed to the right. At
/// the highest load a key lies more than 512 slots from its home with a probability below 1e-22.
const OVERFLOW_BLOCKS: u64 = 8;

/// The parameters of a quotient filter.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct QuotientParams {
    /// n: the number of keys planned for.
    pub capacity: u64,
    /// S: the slots that can be the home of a key, a multiple of 64.
    pub slots: u64,
    /// r: the bits of a remainder.
    pub remainder_bits: u32,
    /// (r + 3) S.
    pub bits: u64,
    /// The rate with `capacity` keys inserted.
    pub rate: f64,
}

/// Options of a quotient filter besides n, p and m.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The bits of a remainder, 1 to 57. `None` chooses those that need the least memory.
    pub remainder_bits: Option<u32>,
    /// The share of slots that are filled at capacity, 0.01 to 0.95. Fuller filters are smaller and
    /// slower.
    pub load: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options { remainder_bits: None, load: LOAD }
    }
}

impl Options {
    /// Sets the number of bits of a remainder.
    pub fn with_remainder_bits(self, remainder_bits: u32) -> Options {
        Options { remainder_bits: Some(remainder_bits), ..self }
    }

    /// Sets the share of slots that are filled at capacity.
    pub fn with_load(self, load: f64) -> Options {
        Options { load, ..self }
    }

    fn check(&self) -> Result<()> {
        // Written so that NaN fails.
        if !(0.01..=MAX_LOAD).contains(&self.load) {
            return Err(Error::parameter("load", self.load, format!("0.01 to {MAX_LOAD}")));
        }
        self.remainder_bits.map_or(Ok(()), check_remainder)
    }

    /// Returns the remainder lengths to choose from.
    fn remainders(&self) -> std::ops::RangeInclusive<u32> {
        self.remainder_bits.map_or(1..=MAX_REMAINDER_BITS, |r| r..=r)
    }
}

impl QuotientParams {
    /// Plans the smallest filter for `n` keys at rate `p`. It usually has the least r with load /
    /// 2^r <= p, but one bit less where that and a few more slots need less memory.
    ///
    /// # Errors
    ///
    /// If an argument or option is out of range, or the filter would need more than [`MAX_BITS`].
    pub fn for_capacity(n: u64, p: f64, options: &Options) -> Result<Self> {
        check::capacity(n)?;
        check::rate(p)?;
        options.check()?;
        let roomy = blocks_for(n, options.load);
        let sizes = options.remainders().filter_map(|r| {
            let most = most_blocks(MAX_BITS, r)?;
            let keeps = |blocks| unchecked_rate(n, range(blocks * BLOCK, r)) <= p;
            let blocks = if roomy <= most { least(roomy..=most, keeps) } else { None };
            blocks.map(|blocks| Self::new(blocks * BLOCK, r, n))
        });
        sizes.min_by_key(|params| params.bits).ok_or_else(|| {
            let needs = format!("fewer keys or a higher rate: {n} keys at rate {p} need more than 2^48 bits");
            Error::parameter("n", n, needs)
        })
    }

    /// Plans the filter with the lowest rate for `n` keys in at most `bits` bits of memory,
    /// everything included.
    ///
    /// # Errors
    ///
    /// If an argument or option is out of range, or `n` keys do not fit.
    pub fn for_bits(bits: u64, n: u64, options: &Options) -> Result<Self> {
        check::bits(bits)?;
        check::capacity(n)?;
        options.check()?;
        let roomy = blocks_for(n, options.load);
        let sizes = options.remainders().filter_map(|r| {
            let blocks = most_blocks(bits, r)?;
            (blocks >= roomy).then(|| Self::new(blocks * BLOCK, r, n))
        });
        sizes.min_by(|a, b| a.rate.total_cmp(&b.rate)).ok_or_else(|| {
            let (slots, r) = (roomy * BLOCK, *options.remainders().start());
            let needs = format!("at least {} bits for {n} keys in {slots} slots", bytes(slots, r) * 8);
            Error::parameter("m", bits, needs)
        })
    }

    /// Plans the filter that holds the most keys at rate `p` in at most `bits` bits of memory,
    /// everything included.
    ///
    /// # Errors
    ///
    /// If an argument or option is out of range, or not even one key fits at rate `p`.
    pub fn for_bits_and_rate(bits: u64, p: f64, options: &Options) -> Result<Self> {
        check::bits(bits)?;
        check::rate(p)?;
        options.check()?;
        let sizes = options.remainders().filter_map(|r| {
            let slots = most_blocks(bits, r)? * BLOCK;
            let keeps =
                |n| n as f64 <= slots as f64 * options.load && unchecked_rate(n, range(slots, r)) <= p;
            greatest(1..=MAX_KEYS, keeps).map(|n| Self::new(slots, r, n))
        });
        let needs = || Error::parameter("m", bits, format!("more bits to hold a single key at rate {p}"));
        sizes.max_by_key(|params| params.capacity).ok_or_else(needs)
    }

    fn new(slots: u64, remainder_bits: u32, capacity: u64) -> Self {
        let bits = slots * u64::from(remainder_bits + METADATA_BITS);
        let rate = unchecked_rate(capacity, range(slots, remainder_bits));
        QuotientParams { capacity, slots, remainder_bits, bits, rate }
    }
}

/// Returns the false-positive rate of `n` distinct keys in `slots` slots with remainders of `r`
/// bits.
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn rate(n: u64, slots: u64, r: u32) -> Result<f64> {
    check::load(n)?;
    check_shape(slots, r)?;
    Ok(unchecked_rate(n, range(slots, r)))
}

/// Returns the number of keys that fit.
pub fn max_keys(slots: u64) -> u64 {
    (slots as f64 * MAX_LOAD) as u64
}

/// Rejects sizes that no filter supports.
pub(crate) fn check_shape(slots: u64, r: u32) -> Result<()> {
    check_remainder(r)?;
    let most = most_blocks(MAX_BITS, r).unwrap_or(0);
    if slots == 0 || !slots.is_multiple_of(BLOCK) || slots / BLOCK > most {
        let needs = format!("a multiple of 64 up to {}, the most with remainders of {r} bits", most * BLOCK);
        return Err(Error::parameter("slots", slots, needs));
    }
    Ok(())
}

/// Returns the number of blocks after those that are home to keys: no more than hold all the keys.
pub(crate) fn overflow_blocks(slots: u64) -> u64 {
    (slots / BLOCK).min(OVERFLOW_BLOCKS)
}

/// Returns the bits of all slots, including those after the last home.
pub(crate) fn stored_bits(slots: u64, r: u32) -> u64 {
    (slots + overflow_blocks(slots) * BLOCK) * u64::from(r + METADATA_BITS)
}

/// Returns the bytes of all slots, in whole lines.
pub(crate) fn bytes(slots: u64, r: u32) -> u64 {
    stored_bits(slots, r).div_ceil(LINE_BITS) * LINE_BYTES as u64
}

/// Returns the number of different fingerprints.
pub(crate) fn range(slots: u64, r: u32) -> u64 {
    slots << r
}

/// Returns the number of blocks in which `n` keys fill at most this share of the slots.
fn blocks_for(n: u64, load: f64) -> u64 {
    let mut slots = (n as f64 / load).ceil() as u64;
    // Rounding of the quotient must not decide.
    while (slots as f64 * load) < n as f64 || max_keys(slots.next_multiple_of(BLOCK)) < n {
        slots += 1;
    }
    slots.div_ceil(BLOCK).max(1)
}

/// Returns the most blocks with `r`-bit remainders that fit into this many bits and whose
/// fingerprints can still be numbered.
fn most_blocks(bits: u64, r: u32) -> Option<u64> {
    let numbered = 1 << (MAX_REMAINDER_BITS - r);
    let fits = |blocks: u64| bytes(blocks * BLOCK, r) * 8 <= bits;
    greatest(1..=numbered.min(MAX_BITS / BLOCK), fits)
}

fn check_remainder(r: u32) -> Result<()> {
    if (1..=MAX_REMAINDER_BITS).contains(&r) {
        return Ok(());
    }
    Err(Error::parameter("remainder bits", r, format!("1 to {MAX_REMAINDER_BITS}")))
}

fn unchecked_rate(n: u64, range: u64) -> f64 {
    -(n as f64 * (-1.0 / range as f64).ln_1p()).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remainders(r: u32) -> Options {
        Options::default().with_remainder_bits(r)
    }

    #[test]
    fn the_rates_and_bits_of_the_literature() {
        let slots = 1 << 16;
        for (load, expected) in [(0.75, 0.002925), (0.9, 0.003509)] {
            let n = (load * slots as f64) as u64;
            assert!((rate(n, slots, 8).unwrap() - expected).abs() < 1e-6, "{load}");
        }
        let params =
            QuotientParams::for_capacity(58_982, 0.004, &Options { load: 0.9, ..remainders(8) }).unwrap();
        assert_eq!(params.slots, slots);
        assert!((params.bits as f64 / 58_982.0 - 12.2).abs() < 0.05);
        assert_eq!(rate(0, 64, 1).unwrap(), 0.0);
    }

    #[test]
    fn a_plan_keeps_its_rate_and_its_load_and_no_smaller_one_does() {
        for n in [1, 63, 64, 100, 12_345, 10_000_000, 1 << 33] {
            for p in [0.9, 0.3, 0.03, 0.01, 0.0071, 0.007, 0.001, 1e-6] {
                let params = QuotientParams::for_capacity(n, p, &Options::default()).unwrap();
                assert!(params.rate <= p && n as f64 <= params.slots as f64 * LOAD, "{n} {p} {params:?}");
                assert!(max_keys(params.slots) >= n);
                for r in 1..40 {
                    let Ok(other) = QuotientParams::for_capacity(n, p, &remainders(r)) else { continue };
                    assert!(other.bits >= params.bits, "{n} {p} {params:?} {other:?}");
                }
            }
        }
        // A rate just below that of a full remainder costs a few slots, not a bit of each.
        let roomier = QuotientParams::for_capacity(1_000_000, 0.00698, &Options::default()).unwrap();
        assert_eq!(roomier.remainder_bits, 7);
        assert!(roomier.slots > 1_111_168);
    }

    #[test]
    fn a_budget_is_kept_and_used() {
        for bits in [40_000, 1_000_000, 80_000_000] {
            let params = QuotientParams::for_bits(bits, bits / 16, &Options::default()).unwrap();
            let used = bytes(params.slots, params.remainder_bits) * 8;
            assert!(used <= bits && used as f64 > 0.9 * bits as f64, "{bits} {used}");
            let params = QuotientParams::for_bits_and_rate(bits, 0.01, &Options::default()).unwrap();
            assert!(params.rate <= 0.01 && bytes(params.slots, params.remainder_bits) * 8 <= bits);
        }
        assert!(QuotientParams::for_bits(1000, 10_000, &Options::default()).is_err());
        assert!(QuotientParams::for_bits_and_rate(100, 0.01, &Options::default()).is_err());
    }

    #[test]
    fn invalid_arguments_are_refused() {
        assert!(rate(1, 63, 8).is_err() && rate(1, 0, 8).is_err() && rate(1, 64, 0).is_err());
        assert!(rate(1, 64, 57).is_ok() && rate(1, 128, 57).is_err() && rate(1, 64, 58).is_err());
        assert!(rate(1, !63, 1).is_err());
        for load in [0.0, 0.96, f64::NAN, -1.0] {
            assert!(
                QuotientParams::for_capacity(10, 0.01, &Options::default().with_load(load)).is_err(),
                "{load}"
            );
        }
        for r in [0, 58, u32::MAX] {
            assert!(QuotientParams::for_capacity(10, 0.01, &remainders(r)).is_err(), "{r}");
        }
        assert!(QuotientParams::for_capacity(MAX_KEYS, 0.01, &Options::default()).is_err());
    }
}
