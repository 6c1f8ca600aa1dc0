//! The clock for filters with a time window.

use std::sync::LazyLock;
use std::time::Instant;
use umbel::aging::Timestamp;

/// Returns the present time. The system's clock is read once, and the time never goes backwards
/// from there.
pub fn now() -> Timestamp {
    static START: LazyLock<(Timestamp, Instant)> = LazyLock::new(|| (Timestamp::now(), Instant::now()));
    let (start, since) = &*START;
    let elapsed = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
    Timestamp::from_millis(start.millis().saturating_add(elapsed))
}
