//! Solves for n, p, m and k when two or three of them are given.
//!
//! # References
//!
//! * B. H. Bloom. *Space/time trade-offs in hash coding with allowable errors.* Communications of
//!   the ACM 13(7), 1970. `Bloom70`

use super::{Decimal, KPolicy, MAX_BITS, MAX_HASHES, MAX_KEYS, check, greatest, least, rate};
use crate::{Error, Result};
use std::cmp::Reverse;
use std::f64::consts::LN_2;
use std::ops::RangeInclusive;

/// The parameters of a standard filter.
///
/// ```
/// use umbel::sizing::{KPolicy, Params};
///
/// # fn main() -> umbel::Result<()> {
/// let params = Params::for_capacity(58_110, 0.04, KPolicy::Round)?;
/// assert_eq!((params.bits, params.hashes), (389_318, 5));
/// assert!(params.rate > 0.04, "five hash functions are not the 4.64 that the formula asks for");
///
/// let strict = Params::for_capacity(58_110, 0.04, KPolicy::Strict)?;
/// assert!(strict.rate <= 0.04 && strict.bits < 390_000);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Params {
    /// n: the number of keys planned for.
    pub capacity: u64,
    /// m: the number of bits, exactly as the formulas give it. The storage may be longer, but
    /// positions stay below m.
    pub bits: u64,
    /// k: the number of hash functions.
    pub hashes: u32,
    /// The rate by the classic formula with `capacity` keys inserted, from which the formulas for m
    /// and k follow. [`rate::expected`] is right for small filters, too.
    pub rate: f64,
}

impl Params {
    /// Plans a filter for `n` keys at rate `p`: m = ceil(-n ln p / (ln 2)^2), and k by policy.
    ///
    /// Above p = 1/2 the formula calls for less than one hash function, which is impossible, and
    /// the rate is missed by up to a tenth. [`KPolicy::Strict`] meets the rate everywhere.
    ///
    /// # Errors
    ///
    /// If `n` or `p` is out of range, or the filter would need more than [`MAX_BITS`].
    pub fn for_capacity(n: u64, p: f64, policy: KPolicy) -> Result<Self> {
        let m = rate::optimal_bits(n, p)?;
        match policy {
            KPolicy::Strict => strictest(n, p),
            KPolicy::Round | KPolicy::Ceil | KPolicy::Best => Self::for_bits(m, n, policy),
        }
    }

    /// Plans a filter of `m` bits for `n` keys, with k by policy.
    ///
    /// # Errors
    ///
    /// If `m` or `n` is out of range.
    pub fn for_bits(m: u64, n: u64, policy: KPolicy) -> Result<Self> {
        Self::new(m, n, policy.hashes(m, n)?)
    }

    /// Returns the bits per key at capacity.
    pub fn bits_per_key(&self) -> f64 {
        self.bits as f64 / self.capacity as f64
    }

    /// Returns the bytes needed to store the bits.
    pub fn bytes(&self) -> u64 {
        rate::bytes(self.bits)
    }

    fn new(m: u64, n: u64, k: u32) -> Result<Self> {
        check::capacity(n)?;
        Ok(Self { capacity: n, bits: m, hashes: k, rate: rate::classic(m, n, k)? })
    }
}

/// The known parameters of a filter; [`solve`](Given::solve) finds the others.
///
/// | Given | Result |
/// | --- | --- |
/// | n, p | m by the formula, k by policy |
/// | n, p, k | the fewest bits that reach p with k hash functions |
/// | m, n | k by policy |
/// | m, n, k | the rate |
/// | m, p | the most keys for which the formula needs at most m bits, k by policy |
/// | m, p, k | the most keys that stay within p |
/// | n, k | m = ceil(k n / ln 2): the bits for which k is the best choice |
/// | m, k | n = floor(m ln 2 / k), at least 1: the keys for which k is the best choice |
/// | n, p, m | k by policy; an error that names the bits needed if m is too small |
/// | n, p, m, k | checked: an error if the rate is above p |
///
/// With a given p and a policy other than strict, "above p" allows for the cost of rounding k: the
/// m and k that the formulas themselves produce for n and p are never refused. A rate is met if
/// [`rate::expected`] does not exceed it.
///
/// ```
/// use umbel::sizing::{KPolicy, Given};
///
/// # fn main() -> umbel::Result<()> {
/// let given = Given { m: Some(8 << 20), p: Some(0.001), ..Given::default() };
/// let params = given.solve(KPolicy::Round)?;
/// assert_eq!((params.capacity, params.hashes), (583_450, 10));
///
/// let missing = Given { p: Some(0.001), k: Some(10), ..Given::default() }.solve(KPolicy::Round);
/// assert!(missing.unwrap_err().to_string().contains("n or m"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Given {
    /// The number of keys.
    pub n: Option<u64>,
    /// The false-positive rate.
    pub p: Option<f64>,
    /// The number of bits.
    pub m: Option<u64>,
    /// The number of hash functions.
    pub k: Option<u32>,
}

impl Given {
    /// Computes the parameters that are not given.
    ///
    /// # Errors
    ///
    /// If too few parameters are given, they contradict each other, or one is out of range. The
    /// message names the missing or conflicting parameters.
    pub fn solve(&self, policy: KPolicy) -> Result<Params> {
        match (self.n, self.p, self.m, self.k) {
            (Some(n), Some(p), None, None) => Params::for_capacity(n, p, policy),
            (Some(n), Some(p), None, Some(k)) => Params::new(fewest_bits(n, p, k)?, n, k),
            (Some(n), None, Some(m), None) => Params::for_bits(m, n, policy),
            (Some(n), None, Some(m), Some(k)) => Params::new(m, n, k),
            (None, Some(p), Some(m), None) => for_bits_and_rate(m, p, policy),
            (None, Some(p), Some(m), Some(k)) => Params::new(m, most_keys(m, p, k)?, k),
            (Some(n), None, None, Some(k)) => Params::new(balanced_bits(n, k)?, n, k),
            (None, None, Some(m), Some(k)) => Params::new(m, balanced_keys(m, k)?, k),
            (Some(n), Some(p), Some(m), k) => {
                let params = match k {
                    None => Params::for_bits(m, n, policy)?,
                    Some(k) => Params::new(m, n, k)?,
                };
                params.keeping(p, policy, k)
            }
            (Some(_), None, None, None) => Err(missing("n", "p, m or k beside it")),
            (None, Some(_), None, None) => Err(missing("p", "n or m beside it")),
            (None, None, Some(_), None) => Err(missing("m", "n, p or k beside it")),
            (None, None, None, Some(_)) => Err(missing("k", "n or m beside it")),
            (None, Some(_), None, Some(_)) => {
                Err(missing("p and k", "n or m beside them: they fix the bits per key, but no size"))
            }
            (None, None, None, None) => Err(missing("nothing", "two of n, p, m and k")),
        }
    }
}

impl Params {
    /// Returns these parameters if they meet the rate `p`. `k` is set if the caller chose it.
    fn keeping(self, p: f64, policy: KPolicy, k: Option<u32>) -> Result<Self> {
        check::rate(p)?;
        let rate = self.expected_rate();
        if rate <= p {
            return Ok(self);
        }
        // The formulas for n and p might have done no better. If k follows from the policy, compare
        // the bits and not the rates: one more bit may round k differently and raise the rate a
        // little.
        let n = self.capacity;
        let planned = Self::for_capacity(n, p, policy)?;
        match k {
            // For a handful of keys, the k that is best by the formula does not always meet p.
            None if self.bits >= planned.bits && policy == KPolicy::Strict => {
                return Self::new(self.bits, n, planned.hashes);
            }
            None if self.bits >= planned.bits => return Ok(self),
            Some(_) if rate <= planned.expected_rate() => return Ok(self),
            _ => {}
        }
        let why = match k {
            None => format!("n = {n} keys need at least {} bits, or a higher rate", planned.bits),
            Some(k) => {
                let bits = fewest_bits(n, p, k)?;
                let rate = Decimal::rounded(rate);
                format!(
                    "n = {n} keys with k = {k} hash functions need at least {bits} bits; in these they have a rate of \
                     {rate}"
                )
            }
        };
        Err(Error::contradiction(format!("m = {} bits", self.bits), format!("p = {}", Decimal(p)), why))
    }

    /// Returns the rate that these parameters lead to on average.
    fn expected_rate(&self) -> f64 {
        rate::mean(self.bits, self.capacity, self.hashes)
    }
}

/// Returns the filter with the fewest bits whose rate for `n` keys is at most `p`; among
/// equals, the one with the fewest hash functions.
fn strictest(n: u64, p: f64) -> Result<Params> {
    let sized = hashes_worth_trying(p).filter_map(|k| Some((fewest_bits(n, p, k).ok()?, k)));
    let (m, k) = sized.min().ok_or_else(|| too_large(n, p))?;
    Params::new(m, n, k)
}

/// Returns the filter of `m` bits at rate `p` that holds the most keys.
fn for_bits_and_rate(m: u64, p: f64, policy: KPolicy) -> Result<Params> {
    check::bits(m)?;
    check::rate(p)?;
    if policy == KPolicy::Strict {
        let sized = hashes_worth_trying(p).filter_map(|k| Some((most_keys(m, p, k).ok()?, Reverse(k))));
        let (n, Reverse(k)) = sized.max().ok_or_else(|| no_room(m, p))?;
        return Params::new(m, n, k);
    }
    // By bisection on the sizing rule, so that m for n and n for m are exact inverses.
    let fits = |n| rate::optimal_bits(n, p).is_ok_and(|bits| bits <= m);
    let n = greatest(1..=MAX_KEYS, fits).ok_or_else(|| no_room(m, p))?;
    Params::for_bits(m, n, policy)
}

/// Returns the numbers of hash functions among which the smallest strict filter is found.
///
/// The bits needed have one minimum in k, at log2(1/p) for large filters. For a handful of keys it
/// moves by one or two, and rounding to whole bits makes flat spots around it.
fn hashes_worth_trying(p: f64) -> RangeInclusive<u32> {
    // In range because of the clamp.
    let centre = (-p.log2()).round().clamp(1.0, f64::from(MAX_HASHES)) as u32;
    centre.saturating_sub(3).max(1)..=(centre + 3).min(MAX_HASHES)
}

/// Returns the least m whose rate is at most p.
fn fewest_bits(n: u64, p: f64, k: u32) -> Result<u64> {
    check::capacity(n)?;
    check::rate(p)?;
    check::hashes(k)?;
    // The classic rate is immediate and a lower bound, so that few exact ones are computed.
    let fewest = least(1..=MAX_BITS, |m| rate::formula(m, n, k) <= p).ok_or_else(|| too_large(n, p))?;
    let keeps = |m| rate::mean(m, n, k) <= p;
    let enough = steps().map(|more| (fewest + more).min(MAX_BITS)).find(|m| keeps(*m) || *m == MAX_BITS);
    least(fewest..=enough.unwrap_or(MAX_BITS), keeps).ok_or_else(|| too_large(n, p))
}

/// Returns the greatest n whose rate is at most p.
fn most_keys(m: u64, p: f64, k: u32) -> Result<u64> {
    check::bits(m)?;
    check::rate(p)?;
    check::hashes(k)?;
    let most = greatest(1..=MAX_KEYS, |n| rate::formula(m, n, k) <= p).ok_or_else(|| no_room(m, p))?;
    let keeps = |n| rate::mean(m, n, k) <= p;
    let few = steps().map(|fewer| most.saturating_sub(fewer).max(1)).find(|n| keeps(*n) || *n == 1);
    greatest(few.unwrap_or(1)..=most, keeps).ok_or_else(|| no_room(m, p))
}

/// Returns 0, 1, 3, 7, ...: the distances at which an edge close by is searched for.
fn steps() -> impl Iterator<Item = u64> {
    (0..u64::BITS).map(|i| (1 << i) - 1)
}

/// Returns the bits for which k hash functions are the best choice.
fn balanced_bits(n: u64, k: u32) -> Result<u64> {
    check::capacity(n)?;
    check::hashes(k)?;
    // The conversion saturates; `Params::new` checks the limit.
    Ok((f64::from(k) * n as f64 / LN_2).ceil() as u64)
}

/// Returns the keys for which k hash functions are the best choice.
fn balanced_keys(m: u64, k: u32) -> Result<u64> {
    check::bits(m)?;
    check::hashes(k)?;
    // A filter so small that even for one key fewer functions would be better is still a filter.
    Ok(((m as f64 * LN_2 / f64::from(k)) as u64).max(1))
}

fn too_large(n: u64, p: f64) -> Error {
    Error::parameter("n", n, format!("fewer keys: at p = {} these take more than 2^48 bits", Decimal(p)))
}

fn no_room(m: u64, p: f64) -> Error {
    Error::parameter("m", m, format!("room for at least one key at p = {}", Decimal(p)))
}

fn missing(given: &str, needs: &str) -> Error {
    Error::parameter("known", given, needs)
}

#[cfg(test)]
mod tests;
