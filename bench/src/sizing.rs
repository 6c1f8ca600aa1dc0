//! The bits per key of a split-block filter, for contestants whose constructor cannot derive them.

/// Returns the false positive rate of a filter with blocks of `lanes` lanes of `lane_bits` bits,
/// one bit set per lane and key, at `load` keys per block on average: the number of keys in a block
/// is Poisson.
fn split_block_rate(lanes: i32, lane_bits: u32, load: f64) -> f64 {
    let stays_clear = 1.0 - 1.0 / f64::from(lane_bits);
    let last = (load + 12.0 * load.sqrt() + 40.0) as i32;
    let mut log_factorial = 0.0;
    (0..=last)
        .map(|keys| {
            let j = f64::from(keys);
            log_factorial += j.max(1.0).ln();
            (j * load.ln() - load - log_factorial).exp() * (1.0 - stays_clear.powi(keys)).powi(lanes)
        })
        .sum()
}

/// Returns the bits per key at which such a filter has the rate `p`.
pub fn split_block_bits_per_key(lanes: i32, lane_bits: u32, p: f64) -> f64 {
    let block = f64::from(lanes) * f64::from(lane_bits);
    let (mut few, mut many) = (0.5, 4096.0);
    for _ in 0..60 {
        let middle = (few + many) / 2.0;
        match split_block_rate(lanes, lane_bits, block / middle) > p {
            true => few = middle,
            false => many = middle,
        }
    }
    many
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_blocks_of_256_bits_match_the_literature() {
        for (p, bits) in [(0.01, 10.53), (0.001, 16.89), (0.0001, 26.34)] {
            let found = split_block_bits_per_key(8, 32, p);
            assert!((found - bits).abs() < 0.01, "{p}: {found}");
        }
    }

    #[test]
    fn split_lines_of_512_bits_match_the_literature() {
        for (p, bits) in [(0.01, 10.10), (0.001, 15.73), (0.0001, 23.61)] {
            let found = split_block_bits_per_key(8, 64, p);
            assert!((found - bits).abs() < 0.01, "{p}: {found}");
        }
    }
}
