//! The time that filters are told which forget by it.

use std::sync::LazyLock;
use std::time::Instant;
use umbel::aging::Timestamp;

/// The time of the system when the program first asked; from there on, one that never goes backwards.
pub fn now() -> Timestamp {
    static START: LazyLock<(Timestamp, Instant)> = LazyLock::new(|| (Timestamp::now(), Instant::now()));
    let (start, since) = &*START;
    let elapsed = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
    Timestamp::from_millis(start.millis().saturating_add(elapsed))
}
