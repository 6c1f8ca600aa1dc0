//! The best division of memory among the filters of tables of different sizes.

use crate::{Error, Result};

/// Returns the filter rates that minimise wasted table reads, for tables with these numbers of keys
/// whose filters share `bits` bits (Dayan, Athanassoulis and Idreos 2017, "Monkey"). A rate of 1
/// means no filter.
///
/// The expected number of tables read by a lookup of an absent key is the sum of the rates. One
/// more bit per key lowers the rate of a small table as much as that of a large table, but costs
/// less memory, so the best rates are proportional to the numbers of keys.
///
/// ```
/// use umbel_text::tables::share;
/// let keys = [1_000, 10_000, 100_000];
/// // Enough for a rate of 1 % in each.
/// let bits = 111_000.0 * 9.585;
/// let rates = share(&keys, bits)?;
/// assert!((rates[2] / rates[1] - 10.0).abs() < 1e-9);
/// assert!(rates.iter().sum::<f64>() < 0.0155, "instead of 0.03");
/// # Ok::<(), umbel_text::Error>(())
/// ```
///
/// # Errors
///
/// Fails if `bits` is negative or not finite.
pub fn share(keys: &[u64], bits: f64) -> Result<Vec<f64>> {
    if !(bits >= 0.0 && bits.is_finite()) {
        return Err(Error::parameter("bits", bits, "a number of bits"));
    }
    let (mut order, mut rates): (Vec<usize>, _) = ((0..keys.len()).collect(), vec![1.0; keys.len()]);
    order.retain(|table| keys[*table] > 0);
    order.sort_by_key(|table| keys[*table]);
    // With p = c n for each of these tables, sum n ln(1/p) = bits (ln 2)^2 yields c. A table so
    // large that its rate would exceed 1 gets no filter, and the others share the memory without
    // it.
    let nats = bits * std::f64::consts::LN_2.powi(2);
    while let Some(largest) = order.last() {
        let size = |table: &usize| keys[*table] as f64;
        let sum: f64 = order.iter().map(size).sum();
        let weighted: f64 = order.iter().map(size).map(|n| n * n.ln()).sum();
        let scale = (-(nats + weighted) / sum).exp();
        if size(largest) * scale <= 1.0 {
            order.iter().for_each(|table| rates[*table] = size(table) * scale);
            break;
        }
        order.pop();
    }
    // An empty table is never read.
    rates.iter_mut().zip(keys).filter(|(_, keys)| **keys == 0).for_each(|(rate, _)| *rate = 0.0);
    Ok(rates)
}
