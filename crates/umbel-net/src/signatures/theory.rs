//! The theoretical cost of filters in front of an exact search.
//!
//! After Dharmapurikar, Krishnamurthy, Sproull and Lockwood 2004, with two slips corrected: the
//! share of clock ticks without a match is 1 - p (not p - 1), and from Lmin to Lmax there are Lmax
//! - Lmin + 1 lengths.

/// Returns the number of lengths from the shortest to the longest.
pub fn lengths(shortest: u64, longest: u64) -> u64 {
    if longest < shortest { 0 } else { longest - shortest + 1 }
}

/// Returns the expected number of lookups in the exact table per byte that are in vain, with one
/// filter for each of B lengths queried at every byte: B f.
pub fn vain_probes(lengths: u64, rate: f64) -> f64 {
    lengths as f64 * rate
}

/// Returns the chance that any of the filters has a false positive at a byte: 1 - (1 - f)^B.
pub fn chance_of_any(lengths: u64, rate: f64) -> f64 {
    -f64::exp_m1(lengths as f64 * f64::ln_1p(-rate))
}

/// A circuit in which several engines process consecutive bytes in every clock tick, and stop
/// during a lookup in the exact table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Circuit {
    /// The number of engines: G.
    pub engines: u64,
    /// The number of lengths for which each engine has a filter: B.
    pub lengths: u64,
    /// Ticks per second: F.
    pub clock: f64,
    /// The number of ticks that a lookup in the exact table takes.
    pub ticks: f64,
    /// The share of ticks with a signature: p.
    pub matches: f64,
}

impl Circuit {
    /// Returns the throughput in bits per second with filters of this false-positive rate.
    ///
    /// ```
    /// use umbel_net::signatures::Circuit;
    ///
    /// let paper = Circuit { engines: 4, lengths: 24, clock: 100e6, ticks: 20.0, matches: 0.001 };
    /// // 3.2 / (1920 f + 1.019) Gbit/s.
    /// assert!((paper.throughput(1e-5) / 1e9 - 3.2 / (0.0192 + 1.019)).abs() < 1e-9);
    /// ```
    pub fn throughput(&self, rate: f64) -> f64 {
        let vain = self.engines as f64 * vain_probes(self.lengths, rate) * self.ticks;
        let ticks = vain + self.matches * self.ticks + (1.0 - self.matches);
        self.engines as f64 * 8.0 * self.clock / ticks
    }
}
