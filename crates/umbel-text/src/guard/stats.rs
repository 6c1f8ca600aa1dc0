//! Counts of the queries that a filter in front of a store saves.

/// Counts of lookups. `asked` is the sum of `skipped`, `found`, `wasted`, `passed` and `failed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuardStats {
    /// The number of lookups.
    pub asked: u64,
    /// The number of lookups that the filter answered: the key is certainly absent.
    pub skipped: u64,
    /// The number of lookups that the filter passed on and whose key the store has.
    pub found: u64,
    /// The number of lookups that the filter passed on and whose key the store does not have.
    pub wasted: u64,
    /// The number of lookups that went straight to the store because the filter was stale.
    pub passed: u64,
    /// The number of lookups that failed in the store.
    pub failed: u64,
    /// The number of times the filter was rebuilt.
    pub renewals: u64,
    /// The nanoseconds spent on the filter and on the version of the store.
    pub filter_nanos: u64,
    /// The nanoseconds spent on building the filter, including the first time.
    pub renewal_nanos: u64,
    /// The nanoseconds spent on lookups in the store.
    pub store_nanos: u64,
    /// The part of `store_nanos` for absent keys, and the number of these lookups.
    absent_nanos: u64,
    absent: u64,
}

impl GuardStats {
    /// Counts a lookup in the store.
    pub(super) fn store_asked<V, E>(&mut self, answer: &Result<Option<V>, E>, current: bool, nanos: u64) {
        self.store_nanos += nanos;
        if matches!(answer, Ok(None)) {
            self.absent += 1;
            self.absent_nanos += nanos;
        }
        let count = match answer {
            Err(_) => &mut self.failed,
            Ok(_) if !current => &mut self.passed,
            Ok(Some(_)) => &mut self.found,
            Ok(None) => &mut self.wasted,
        };
        *count += 1;
    }

    /// Returns an estimate of the seconds saved: the mean time of a store lookup of an absent key,
    /// times the number of skipped lookups, minus the time spent on the filter. It is negative if
    /// the store is faster than the filter.
    pub fn seconds_saved(&self) -> f64 {
        let asked = self.found + self.wasted + self.passed + self.failed;
        // Before the first store lookup of an absent key, the mean of all lookups is the best
        // estimate.
        let (nanos, lookups) =
            if self.absent > 0 { (self.absent_nanos, self.absent) } else { (self.store_nanos, asked) };
        let each = nanos as f64 / lookups.max(1) as f64;
        let cost = self.filter_nanos as f64;
        (self.skipped as f64 * each - cost) / 1e9
    }
}
