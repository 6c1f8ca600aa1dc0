//! The number of distinct keys, counted by several threads with sketches.

use anyhow::{Context, Result};
use std::sync::Mutex;
use umbel::Batch;
use umbel::internals::sync::{into_inner, lock};
use umbel::sketch::Distinct;

/// The default precision of sketches: 256 KiB, and a standard error of 0.2 %.
const PRECISION: u32 = 18;

/// Makes an empty sketch of the default precision.
pub fn new_distinct() -> umbel::Result<Distinct> {
    Distinct::with_precision(PRECISION)
}

/// A counter of distinct keys for several threads. Each thread has a sketch, and their union does
/// not depend on which thread counted which key.
pub struct DistinctCounter {
    sketches: Vec<Mutex<Distinct>>,
}

impl DistinctCounter {
    /// Makes an empty sketch with the precision and hash of `like` for each thread.
    pub fn new(threads: usize, like: &Distinct) -> umbel::Result<DistinctCounter> {
        let empty = |_| {
            let sketch = Distinct::with_precision(like.precision())?.with_hasher(like.hasher().clone());
            Ok(Mutex::new(sketch))
        };
        Ok(DistinctCounter { sketches: (0..threads).map(empty).collect::<umbel::Result<_>>()? })
    }

    /// Counts keys on behalf of one of the threads.
    pub fn insert(&self, thread: usize, keys: &impl Batch) {
        lock(&self.sketches[thread]).insert_batch(keys);
    }

    /// Returns the sketch of the keys of all threads.
    pub fn finish(self) -> Result<Distinct> {
        let mut sketches = self.sketches.into_iter().map(into_inner);
        let mut whole = sketches.next().context("there is at least one thread")?;
        sketches.try_for_each(|part| whole.union(&part))?;
        Ok(whole)
    }
}

/// Returns the number of keys to plan a filter for: the distinct ones and two standard errors more,
/// since too small a filter breaks its promise and a slightly too large one does not; but never
/// more than `count`, the number of lines.
pub fn capacity_for(count: u64, distinct: &Distinct) -> u64 {
    let estimate = distinct.count();
    ((estimate.value + 2.0 * estimate.standard_error).round() as u64).clamp(1, count.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use umbel::Digest;

    #[test]
    fn the_capacity_is_that_of_distinct_keys_and_at_most_the_number_of_lines() {
        use umbel::Key;
        let hasher = umbel::Hasher::default();
        let capacity = |keys: &[u64]| {
            let piece: Vec<Digest> = keys.iter().map(|key| key.digest(&hasher)).collect();
            let mut distinct = new_distinct().unwrap();
            distinct.insert_tile(&piece);
            capacity_for(piece.len() as u64, &distinct)
        };
        assert_eq!(capacity(&[]), 1, "a filter of no keys is a filter");
        assert_eq!(capacity(&[7, 7, 7]), 1);
        assert_eq!(capacity(&(0..1000).collect::<Vec<_>>()), 1000);
        let twice: Vec<u64> = (0..200_000).map(|i| i % 100_000).collect();
        assert!((99_800..100_800).contains(&capacity(&twice)));
    }
}
