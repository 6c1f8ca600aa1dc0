//! Exact probabilities of the filters in headers, for comparison with what a simulation counts.
//!
//! A router that never saw a packet matches its filter by chance, and a router that did see it may
//! be forgotten by a generalized filter. Both probabilities are computed by throwing the hash
//! functions of a router one after the other onto the bits, and following the few numbers that
//! matter. [`Formulas`](super::generalized::Formulas) has the approximations of the literature,
//! which treat bits as independent.

use super::generalized::Touched;
use crate::mask::Mask;

/// Returns the chance that a router with `weight` random bits matches a plain filter.
///
/// ```
/// use umbel_net::{mask::Mask, traceback::chance::plain_match};
/// let filter = Mask::<1>::from_positions(0..16);
/// // Half of the bits are set, and the second bit is another one than the first.
/// assert!((plain_match(&filter, 2) - 16.0 / 32.0 * 15.0 / 31.0).abs() < 1e-12);
/// assert_eq!(plain_match(&Mask::<1>::FULL, 5), 1.0);
/// ```
pub fn plain_match<const W: usize>(filter: &Mask<W>, weight: u32) -> f64 {
    let [set, bits] = [filter.count_ones(), Mask::<W>::BITS].map(f64::from);
    (0..weight).map(|drawn| ((set - f64::from(drawn)) / (bits - f64::from(drawn))).max(0.0)).product()
}

/// Returns the mean and the variance of the number of bits that are set after `routers` routers
/// have each set `weight` different random bits in an empty filter of `bits` bits.
///
/// ```
/// use umbel_net::traceback::chance::bits_set;
/// assert_eq!(bits_set(256, 5, 1), (5.0, 0.0));
/// ```
pub fn bits_set(bits: u32, weight: u32, routers: u32) -> (f64, f64) {
    let (m, w, n) = (f64::from(bits), f64::from(weight.min(bits)), f64::from(routers));
    // The chances that one bit, and that two bits, stay unset.
    let one = (1.0 - w / m).powf(n);
    let two = if bits < 2 { 0.0 } else { ((m - w) * (m - w - 1.0) / (m * (m - 1.0))).max(0.0).powf(n) };
    let variance = m * one * (1.0 - one) + m * (m - 1.0) * (two - one * one);
    (m * (1.0 - one), if routers < 2 { 0.0 } else { variance.max(0.0) })
}

/// Returns the chance that a router with `k0` functions that reset and `k1` that set matches a
/// generalized filter, if the routers that touched the bits in `later` came after it.
///
/// ```
/// use umbel_net::{mask::Mask, traceback::{chance::generalized_match, generalized::Touched}};
/// // Two bits must be 0, and all are 1.
/// assert_eq!(generalized_match(&Mask::<8>::FULL, &Touched::default(), 2, 3), 0.0);
/// ```
pub fn generalized_match<const W: usize>(filter: &Mask<W>, later: &Touched<W>, k0: u32, k1: u32) -> f64 {
    let m = f64::from(Mask::<W>::BITS);
    let [mut may_reset, mut may_set] = [!*filter, *filter];
    may_reset |= *later.set();
    may_set |= *later.reset();
    let mut reset_only = may_reset;
    reset_only &= !may_set;
    let [only, both] = [reset_only.count_ones(), may_reset.count_ones() - reset_only.count_ones()];
    // `by_own[j]`: the chance that all resets so far fell on bits that may be reset, j of them on
    // bits that only a reset of this router excuses from being set.
    let mut by_own = vec![1.0];
    for _ in 0..k0 {
        let mut next = vec![0.0; by_own.len() + 1];
        for (own, chance) in by_own.iter().enumerate() {
            next[own] += chance * (own as f64 + f64::from(both)) / m;
            next[own + 1] += chance * (f64::from(only) - own as f64).max(0.0) / m;
        }
        by_own = next;
    }
    let set = f64::from(may_set.count_ones());
    by_own.iter().enumerate().map(|(own, chance)| chance * ((set + own as f64) / m).powf(f64::from(k1))).sum()
}

/// Returns the chance that a generalized filter of `bits` bits no longer matches a router after
/// `later` others have marked it: a false negative.
///
/// ```
/// use umbel_net::traceback::chance::generalized_miss;
/// assert_eq!(generalized_miss(256, 2, 3, 0), 0.0);
/// assert!((generalized_miss(256, 4, 4, 15) - 0.75).abs() < 0.02);
/// ```
pub fn generalized_miss(bits: u32, k0: u32, k1: u32, later: u32) -> f64 {
    let m = f64::from(bits.max(1));
    // `intact[i][j]`: the chance that the router has i bits to be 0 and j bits to be 1 that nobody
    // touched again, and that all its other bits were last touched in the same way as by itself.
    let mut intact = vec![vec![0.0; k1 as usize + 1]; k0 as usize + 1];
    intact[0][0] = 1.0;
    // The router's own bits: a set function that falls on a reset bit is void.
    for _ in 0..k0 {
        intact = drawn(&intact, |i, _| [1.0 - i / m, 0.0]);
    }
    for _ in 0..k1 {
        intact = drawn(&intact, |i, j| [0.0, 1.0 - (i + j) / m]);
    }
    // The later routers, from the last one back: the first touch decides. Resets come first,
    // because they win within a router.
    for _ in 0..later {
        for _ in 0..k0 {
            intact = touched(&intact, m);
        }
        intact = transposed(&intact);
        for _ in 0..k1 {
            intact = touched(&intact, m);
        }
        intact = transposed(&intact);
    }
    1.0 - intact.iter().flatten().sum::<f64>().min(1.0)
}

type Table = Vec<Vec<f64>>;

/// Draws a function of the router itself: `gains` has the chances of another row and of another
/// column.
fn drawn(table: &Table, gains: impl Fn(f64, f64) -> [f64; 2]) -> Table {
    let mut next = vec![vec![0.0; table[0].len()]; table.len()];
    for (i, row) in table.iter().enumerate() {
        for (j, share) in row.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            let [row, column] = gains(i as f64, j as f64);
            next[i][j] += share * (1.0 - row - column);
            if let Some(cell) = next.get_mut(i + 1).and_then(|row| row.get_mut(j)) {
                *cell += share * row;
            }
            if let Some(cell) = next[i].get_mut(j + 1) {
                *cell += share * column;
            }
        }
    }
    next
}

/// Draws a function of a later router over `m` bits: on one of the bits that rows count, it does
/// what this router did, so the row above follows; on one that columns count, it undoes the mark.
fn touched(table: &Table, m: f64) -> Table {
    let mut next = vec![vec![0.0; table[0].len()]; table.len()];
    for (i, row) in table.iter().enumerate() {
        for (j, share) in row.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            next[i][j] += share * (1.0 - (i + j) as f64 / m);
            if let Some(above) = i.checked_sub(1) {
                next[above][j] += share * i as f64 / m;
            }
        }
    }
    next
}

fn transposed(table: &Table) -> Table {
    (0..table[0].len()).map(|column| table.iter().map(|row| row[column]).collect()).collect()
}
