//! Rounding policies for the number of hash functions, whose optimum is rarely a whole number.

use super::{MAX_HASHES, check, rate};
use crate::{Error, Result};
use std::f64::consts::LN_2;
use std::fmt;
use std::str::FromStr;

/// How the best number of hash functions, (m/n) ln 2, is rounded to a whole number (at least 1, at
/// most [`MAX_HASHES`]).
///
/// ```
/// use umbel::sizing::{KPolicy, Params};
///
/// # fn main() -> umbel::Result<()> {
/// // 500 keys at 5 % ask for 4.32 hash functions.
/// let hashes = |policy| Params::for_capacity(500, 0.05, policy).map(|params| params.hashes);
/// assert_eq!(hashes("round".parse()?)?, 4);
/// assert_eq!(hashes(KPolicy::Ceil)?, 5);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KPolicy {
    /// Rounds to the nearest whole number.
    #[default]
    Round,
    /// Rounds up. Where the fraction is small this is both slower and worse: a rate of 0.0510
    /// instead of 0.0503 in the example above.
    Ceil,
    /// Rounds down or up, whichever has the lower rate.
    Best,
    /// For a given number of bits, the same as [`Best`](KPolicy::Best). Otherwise chooses the
    /// smallest filter whose [expected](rate::expected) rate does not exceed the requested rate. The
    /// other policies may miss the rate by a fraction of a per cent, because k is a whole number.
    Strict,
}

impl KPolicy {
    /// All policies, for help texts and experiments.
    pub const ALL: [KPolicy; 4] = [KPolicy::Round, KPolicy::Ceil, KPolicy::Best, KPolicy::Strict];

    /// Returns the name used in text.
    pub fn name(self) -> &'static str {
        match self {
            KPolicy::Round => "round",
            KPolicy::Ceil => "ceil",
            KPolicy::Best => "best",
            KPolicy::Strict => "strict",
        }
    }

    /// Returns the number of hash functions for `n` keys in `m` bits.
    ///
    /// # Errors
    ///
    /// If `m` or `n` is out of range.
    pub fn hashes(self, m: u64, n: u64) -> Result<u32> {
        check::bits(m)?;
        check::capacity(n)?;
        let ideal = m as f64 / n as f64 * LN_2;
        Ok(match self {
            KPolicy::Round => whole(ideal.round()),
            KPolicy::Ceil => whole(ideal.ceil()),
            KPolicy::Best | KPolicy::Strict => {
                let (down, up) = (whole(ideal.floor()), whole(ideal.ceil()));
                if rate::formula(m, n, up) < rate::formula(m, n, down) { up } else { down }
            }
        })
    }
}

/// Converts to a number of hash functions within the limits.
fn whole(k: f64) -> u32 {
    // In range because of the clamp.
    k.clamp(1.0, f64::from(MAX_HASHES)) as u32
}

impl fmt::Display for KPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for KPolicy {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = KPolicy::ALL.into_iter().find(|policy| policy.name() == name);
        found.ok_or_else(|| Error::parameter("k policy", name, "round, ceil, best or strict"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizing::{MAX_BITS, MAX_KEYS};

    #[test]
    fn names_are_read_as_they_are_written() {
        for policy in KPolicy::ALL {
            assert_eq!(policy.to_string().parse::<KPolicy>().unwrap(), policy);
        }
        assert!("Round".parse::<KPolicy>().is_err());
        assert_eq!(KPolicy::default(), KPolicy::Round);
    }

    #[test]
    fn best_is_no_worse_than_any_other_number_of_hashes() {
        for bits_per_key in 1..40 {
            let (m, n) = (bits_per_key * 1000, 1000);
            let best = rate::formula(m, n, KPolicy::Best.hashes(m, n).unwrap());
            assert!((1..60).all(|k| best <= rate::formula(m, n, k)), "m/n = {bits_per_key}");
        }
    }

    #[test]
    fn hashes_stay_within_their_limits() {
        for policy in KPolicy::ALL {
            assert_eq!(policy.hashes(1, MAX_KEYS).unwrap(), 1);
            assert!(policy.hashes(MAX_BITS, 1).unwrap() <= MAX_HASHES);
            assert!(policy.hashes(0, 1).is_err() && policy.hashes(1, 0).is_err());
        }
        assert_eq!(KPolicy::Round.hashes(MAX_BITS, 1).unwrap(), MAX_HASHES);
    }
}
