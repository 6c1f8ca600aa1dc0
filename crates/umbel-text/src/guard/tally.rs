//! What a filter in front of a store has saved.

/// How often a store was asked, and how often not. What was asked is what was skipped, found, wasted, passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Lookups.
    pub asked: u64,
    /// Those that the filter answered: certainly not.
    pub skipped: u64,
    /// Those to which the filter said maybe, and the store had it.
    pub found: u64,
    /// Those to which the filter said maybe, and the store did not have it.
    pub wasted: u64,
    /// Those that the store answered alone, since the filter was stale.
    pub passed: u64,
    /// Those that the store could not answer.
    pub failed: u64,
    /// How often the filter was made anew.
    pub renewals: u64,
    /// Nanoseconds for the filter, and for the version of the store.
    pub filter_nanos: u64,
    /// Nanoseconds for making the filter, the first time included.
    pub renewal_nanos: u64,
    /// Nanoseconds for lookups in the store.
    pub store_nanos: u64,
    /// Of these, for lookups of what is not there, and how many they were.
    absent_nanos: u64,
    absent: u64,
}

impl Tally {
    /// Enters a lookup in the store.
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

    /// Seconds that were saved, as far as can be told: for each lookup that was skipped, what a lookup of an absent key took on
    /// average, without the time for the filter. Below zero if the store is faster than the filter.
    pub fn seconds_saved(&self) -> f64 {
        let asked = self.found + self.wasted + self.passed + self.failed;
        // As long as nothing was looked for in vain, all lookups have to stand for those that would have been.
        let (nanos, lookups) =
            if self.absent > 0 { (self.absent_nanos, self.absent) } else { (self.store_nanos, asked) };
        let each = nanos as f64 / lookups.max(1) as f64;
        let cost = self.filter_nanos as f64;
        (self.skipped as f64 * each - cost) / 1e9
    }
}
