//! What filters in front of an exact search cost, by theory.
//!
//! Dharmapurikar, Krishnamurthy, Sproull and Lockwood 2004, with two slips put right: the share of the clock ticks without a match is
//! 1 - p (not p - 1), and from Lmin to Lmax there are Lmax - Lmin + 1 lengths.

/// How many lengths there are from the shortest to the longest.
pub fn lengths(shortest: u64, longest: u64) -> u64 {
    if longest < shortest { 0 } else { longest - shortest + 1 }
}

/// How often, for each byte of the data, the exact table is asked in vain, where one filter for each of so many lengths is asked at
/// every byte: B f.
pub fn vain_probes(lengths: u64, rate: f64) -> f64 {
    lengths as f64 * rate
}

/// The chance that at a byte any of the filters is wrong: 1 - (1 - f)^B.
pub fn chance_of_any(lengths: u64, rate: f64) -> f64 {
    -f64::exp_m1(lengths as f64 * f64::ln_1p(-rate))
}

/// A circuit in which several engines look at consecutive bytes in every tick of a clock, and stop while the exact table is
/// asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Circuit {
    /// How many engines there are: G.
    pub engines: u64,
    /// How many lengths each of them has a filter for: B.
    pub lengths: u64,
    /// Ticks per second: F.
    pub clock: f64,
    /// How many ticks the exact table takes for an answer.
    pub ticks: f64,
    /// In which share of the ticks there is a signature: p.
    pub matches: f64,
}

impl Circuit {
    /// Bits per second with filters of this false-positive rate.
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
