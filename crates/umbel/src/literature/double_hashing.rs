//! When double hashing is good enough, and how far off it is otherwise.
//!
//! With positions (a + i b) mod m the false-positive rate approaches that of k independent
//! functions as m grows. Small filters with many functions are different: their rate has a floor
//! that no larger k lowers.
//!
//! # References
//!
//! * A. Kirsch and M. Mitzenmacher. *Less hashing, same performance: building a better Bloom
//!   filter.* ESA 2006. `KM06`
//! * P. C. Dillinger and P. Manolios. *Bloom filters in probabilistic verification.* FMCAD 2004.
//!   `DM04`

use super::MAX_HASHES;

/// Returns whether plain double hashing meets a false-positive rate `p` with `n` keys on `m` cells:
/// p ≥ 100 · 6n/m².
///
/// Shifted progressions add 6n/m² to the rate of a half-full filter, which is negligible beside a
/// rate a hundred times larger. If this returns `false`, use
/// [`Murmur3Enhanced`](super::Family::Murmur3Enhanced) or a family that hashes the key again for
/// every function.
///
/// ```
/// use umbel::literature::double_hashing_is_safe;
///
/// assert!(double_hashing_is_safe(1 << 23, 800_000, 0.01));
/// // 36 keys and k = 20 promise one in a million, but double hashing delivers one in 1500.
/// assert!(!double_hashing_is_safe(1024, 36, 1e-6));
/// ```
pub fn double_hashing_is_safe(m: u64, n: u64, p: f64) -> bool {
    let (m, n) = (m as f64, n as f64);
    p >= 100.0 * 6.0 * n / (m * m)
}

/// Estimates how much double hashing with k functions adds to the false-positive rate of `n` keys
/// on `m` cells.
///
/// With fill ρ = 1 - e^(-kn/m), a query that needs only c < k cells of its own is wrong with
/// probability ρ^c instead of ρ^k. There are two kinds of such queries, and a term for each:
///
/// * Shifted progressions. A query with the same or the opposite stride as an inserted key,
///   starting s steps away, needs s cells of its own: `2n/m² · Σ_{|s| < k} (ρ^|s| - ρ^k)`.
/// * Short strides. For every divisor d of m, φ(d) of the m strides return to their start after d
///   cells: `1/m · Σ_{d | m, 1 < d < k} φ(d) (ρ^d - ρ^k)`. The worst of them, d = 1, is missing
///   from the sum because [`Murmur3Double`](super::Family::Murmur3Double) has a rule against it;
///   without the rule add ρ/m.
///
/// The first sum is close to 3 at half fill, hence the 6n/m² of [`double_hashing_is_safe`]. For m a
/// power of two the estimate is good to a quarter. For any other m it is too high, because the
/// 64-bit sum a + i b wraps at 2^64, which m does not divide, and each wrap breaks the progression:
/// at m = 1021, k = 20, n = 36 the floor is 1.0e-4, not the 2.1e-4 of unbroken progressions.
///
/// ```
/// use umbel::literature::double_hashing_floor;
///
/// let floor = double_hashing_floor(1024, 36, 20);
/// assert!((5.9e-4..6.1e-4).contains(&floor), "{floor}");
/// ```
pub fn double_hashing_floor(m: u64, n: u64, k: u32) -> f64 {
    // No family has more functions, and the sums below would take too long.
    let k = k.min(MAX_HASHES);
    let cells = m as f64;
    let fill = -(-f64::from(k) * n as f64 / cells).exp_m1();
    let excess = |needed: u32| fill.powi(needed as i32) - fill.powi(k as i32);

    let shifted: f64 = (1..k).map(excess).sum::<f64>() * 2.0 + excess(0);
    let short: f64 =
        (2..k).filter(|&d| m.is_multiple_of(u64::from(d))).map(|d| f64::from(totient(d)) * excess(d)).sum();
    let floor = 2.0 * n as f64 / (cells * cells) * shifted + short / cells;
    // For tiny filters the sum of the probabilities of rare events can exceed 1.
    floor.min(1.0)
}

/// Returns Euler's φ: the number of the m strides that return to their start after exactly d steps,
/// where d divides m.
fn totient(d: u32) -> u32 {
    let mut left = d;
    let mut phi = d;
    for prime in 2..=d {
        if left.is_multiple_of(prime) {
            phi -= phi / prime;
            while left.is_multiple_of(prime) {
                left /= prime;
            }
        }
    }
    phi
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totients() {
        let phi: Vec<u32> = (1..=12).map(totient).collect();
        assert_eq!(phi, [1, 1, 2, 2, 4, 2, 6, 4, 6, 4, 10, 4]);
    }

    #[test]
    fn the_totient_counts_the_strides_of_order_d() {
        let m = 360u32;
        let order =
            |stride: u32| (1..=m).find(|steps| (steps * stride).is_multiple_of(m)).expect("m steps return");
        for d in (1..=m).filter(|d| m.is_multiple_of(*d)) {
            assert_eq!((0..m).filter(|&stride| order(stride) == d).count(), totient(d) as usize, "order {d}");
        }
    }

    #[test]
    fn the_floor_is_six_n_over_m_squared_at_half_fill() {
        // A prime has no divisors, so only the shifts remain; k n = m ln 2 fills half of the cells.
        let (m, n, k) = (1_000_003, 23_105, 30);
        let rule = 6.0 * n as f64 / (m as f64 * m as f64);
        let floor = double_hashing_floor(m, n, k);
        assert!((floor / rule - 1.0).abs() < 1e-3, "{floor} against {rule}");
    }

    #[test]
    fn absurd_parameters_are_neither_safe_nor_a_panic() {
        assert!(!double_hashing_is_safe(0, 0, 0.01));
        assert!(!double_hashing_is_safe(1000, 10, f64::NAN));
        assert_eq!(double_hashing_floor(0, 0, 3), 1.0);
        assert_eq!(double_hashing_floor(1, u64::MAX, 255), 0.0, "a full filter cannot get worse");
        assert_eq!(double_hashing_floor(1000, 0, 3), 0.0);
        assert_eq!(double_hashing_floor(1000, 10, 0), 0.0);
        assert_eq!(double_hashing_floor(1000, 10, u32::MAX), double_hashing_floor(1000, 10, MAX_HASHES));
    }
}
