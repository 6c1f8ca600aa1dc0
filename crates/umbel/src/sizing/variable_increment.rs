//! The rate of filters whose probes add different amounts to their cells.
//!
//! A cell of such a filter excludes some keys even when other keys have added to it. Let `e_j` be
//! the probability that a cell with j increments excludes a non-member. With N = n k probes on m
//! cells, a cell has j increments with probability `P_j = C(N,j) (1/m)^j (1-1/m)^(N-j)`, and the
//! rate is
//!
//! > `(1 - Σ P_j e_j)^k`
//!
//! The scheme enters the formula only through the `e_j`. With e = \[1\] it yields the counting
//! filter and the classic formula of the standard filter.
//!
//! ```
//! use umbel::sizing::variable_increment::{best_hashes, excluded_by_range, rate};
//! // 1024 keys in 30 bits each: counters of seven bits and increments 4 to 7, against plain ones of four bits.
//! let (cells, plain) = (30 * 1024 / 7, 30 * 1024 / 4);
//! let excluded = excluded_by_range(4)?;
//! let k = best_hashes(cells, 1024, &excluded)?;
//! assert!(rate(cells, 1024, k, &excluded)? < 0.0083);
//! assert!(rate(plain, 1024, 5, &[1.0])? > 0.027);
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # References
//!
//! * O. Rottenstreich, Y. Kanizo and I. Keslassy. *The variable-increment counting Bloom filter.*
//!   IEEE/ACM Transactions on Networking 22(4), 2014. `RKK14`

use super::{Decimal, Given, MAX_KEYS, Params, check, greatest, least, rate};
use crate::{Error, Result};

/// Returns `e_0`, `e_1` and `e_2` of the increments L, ..., 2L-1: 1, (L-1)/L and (L-1)(L+1)/(6L²).
/// Three or more keys exclude nothing.
///
/// # Errors
///
/// If `l` is zero.
pub fn excluded_by_range(l: u32) -> Result<[f64; 3]> {
    if l == 0 {
        return Err(Error::parameter("L", l, "at least 1"));
    }
    let l = f64::from(l);
    Ok([1.0, (l - 1.0) / l, (l - 1.0) * (l + 1.0) / (6.0 * l * l)])
}

/// Returns `e_0` to `e_h` of a `B_h` sequence of `elements` elements, for cells that store the
/// number of keys beside their sum: ((l-1)/l)^j.
///
/// # Errors
///
/// If `elements` is zero.
pub fn excluded_by_b_h(elements: u32, h: u32) -> Result<Vec<f64>> {
    if elements == 0 {
        return Err(Error::parameter("increments", elements, "at least one"));
    }
    let l = f64::from(elements);
    Ok((0..=h).map(|j| ((l - 1.0) / l).powi(j as i32)).collect())
}

/// Returns the rate of `cells` cells after `n` keys with `k` probes each, if a cell with j keys
/// excludes a non-member with probability `excluded[j]`, and with probability zero beyond the end
/// of the slice.
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn rate(cells: u64, n: u64, k: u32, excluded: &[f64]) -> Result<f64> {
    rate::check_filter(cells, n, k)?;
    Ok(formula(cells, n, k, excluded))
}

/// Returns the k with the lowest rate.
///
/// # Errors
///
/// If an argument is out of range (see [`sizing`](crate::sizing)).
pub fn best_hashes(cells: u64, n: u64, excluded: &[f64]) -> Result<u32> {
    check::bits(cells)?;
    check::capacity(n)?;
    // The best load of a cell is between ln 2 and a few keys, which bounds k.
    let most = (8.0 * cells as f64 / n as f64).clamp(1.0, 128.0) as u32;
    let by_rate =
        |a: &u32, b: &u32| formula(cells, n, *a, excluded).total_cmp(&formula(cells, n, *b, excluded));
    Ok((1..=most).min_by(by_rate).unwrap_or(1))
}

fn formula(cells: u64, n: u64, k: u32, excluded: &[f64]) -> f64 {
    let (probes, m) = (n as f64 * f64::from(k), cells as f64);
    if n == 0 {
        return 0.0;
    }
    if cells == 1 {
        // The only cell receives all probes.
        let excluded = excluded.get(probes as usize).copied().unwrap_or(0.0);
        return (1.0 - excluded).powf(k.into());
    }
    let mut share = (probes * (-1.0 / m).ln_1p()).exp();
    let mut passing = 1.0;
    for (j, excluded) in excluded.iter().enumerate() {
        passing -= share * excluded;
        share *= (probes - j as f64) / (j as f64 + 1.0) / (m - 1.0);
    }
    passing.max(0.0).powf(k.into())
}

impl Params {
    /// Solves for a filter of at most `most_cells` cells from the given parameters, where `m` and
    /// [`bits`](Params::bits) are numbers of cells. Chooses the fewest cells that meet the rate.
    pub(crate) fn of_cells(given: Given, most_cells: u64, excluded: &[f64]) -> Result<Params> {
        let of = |cells, n, k| {
            Ok(Params { capacity: n, bits: cells, hashes: k, rate: rate(cells, n, k, excluded)? })
        };
        let best = |cells, n| best_hashes(cells, n, excluded);
        let k_or_best = |cells, n| given.k.map_or_else(|| best(cells, n), Ok);
        match (given.n, given.p, given.m) {
            (Some(n), Some(p), None) => {
                check::capacity(n)?;
                check::rate(p)?;
                let most_hashes = (2.0 * (1.0 / p).log2()).ceil().clamp(1.0, 1024.0) as u32 + 1;
                let ks = given.k.map_or(1..=most_hashes, |k| k..=k);
                let sized = ks.filter_map(|k| {
                    check::hashes(k).ok()?;
                    Some((least(1..=most_cells, |cells| formula(cells, n, k, excluded) <= p)?, k))
                });
                let Some((cells, k)) = sized.min() else {
                    let needs =
                        format!("fewer keys or a higher rate: p = {} takes more than 2^48 bits", Decimal(p));
                    given.k.map_or(Ok(()), check::hashes)?;
                    return Err(Error::parameter("n", n, needs));
                };
                of(cells, n, k)
            }
            (Some(n), p, Some(cells)) => {
                let params = of(cells, n, k_or_best(cells, n)?)?;
                p.map_or(Ok(()), check::rate)?;
                if let Some(p) = p.filter(|p| params.rate > *p) {
                    let rate = Decimal::rounded(params.rate);
                    let why = format!(
                        "n = {n} keys have a rate of {rate} with it; allow more bits or a higher rate"
                    );
                    return Err(Error::contradiction(
                        format!("m = {cells} bits"),
                        format!("p = {}", Decimal(p)),
                        why,
                    ));
                }
                Ok(params)
            }
            (None, Some(p), Some(cells)) => {
                check::bits(cells)?;
                check::rate(p)?;
                let keeps = |n| k_or_best(cells, n).is_ok_and(|k| formula(cells, n, k, excluded) <= p);
                let n = greatest(1..=MAX_KEYS, keeps).ok_or_else(|| {
                    let needs = format!("more bits to hold a single key at p = {}", Decimal(p));
                    Error::parameter("m", cells, needs)
                })?;
                of(cells, n, k_or_best(cells, n)?)
            }
            (None, None, Some(cells)) if given.k.is_some() => {
                check::bits(cells)?;
                // The most keys for which no fewer probes would be better.
                let wants = |n| best(cells, n).is_ok_and(|best| given.k.is_some_and(|k| best >= k));
                let n = greatest(1..=MAX_KEYS, wants).unwrap_or(1);
                of(cells, n, k_or_best(cells, n)?)
            }
            (n, p, m) => {
                let given = [("n", n.is_some()), ("p", p.is_some()), ("m", m.is_some())];
                let given = given.into_iter().find(|(_, given)| *given).map_or("nothing", |(name, _)| name);
                Err(Error::parameter("known", given, "two of n, p and m, or m and k"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
