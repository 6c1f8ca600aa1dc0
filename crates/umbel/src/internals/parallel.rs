//! Work on numbered items by several threads.

use super::sync::{into_inner, lock};
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// Calls `work` for the numbers below `count`, by as many threads as there are processors, and
/// returns the results in order.
pub fn map<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    map_with(thread::available_parallelism().map_or(1, NonZero::get), count, work)
}

/// Does what [`map`] does, with at most this many threads. More than there are processors pay off for
/// work that waits, such as for a disk.
pub fn map_with<T: Send>(threads: usize, count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let results: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        while let number = next.fetch_add(1, Relaxed)
            && number < count
        {
            let result = work(number);
            *lock(&results[number]) = Some(result);
        }
    };
    thread::scope(|scope| {
        (1..threads.min(count)).for_each(|_| drop(scope.spawn(worker)));
        worker();
    });
    results.into_iter().filter_map(into_inner).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_are_in_order() {
        assert_eq!(super::map(0, |number| number), [0; 0]);
        assert!(super::map_with(16, 3, |number| number).into_iter().eq(0..3));
        assert!(super::map(1000, |number| number * 2).into_iter().eq((0..2000).step_by(2)));
    }
}
