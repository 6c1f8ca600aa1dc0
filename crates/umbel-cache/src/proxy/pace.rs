//! The lowest rate at which clients and origins must send and accept data.
//!
//! A limit on pauses alone lets the other end hold a connection for ever with one byte per pause.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// The lowest rate: in each window of waiting, at least this number of bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRate {
    pub bytes: u64,
    pub window: Duration,
}

impl MinRate {
    /// Returns the rate of `bytes_per_second`. If that is 0, one byte in a window is enough.
    pub fn new(bytes_per_second: u64, window: Duration) -> MinRate {
        let bytes = u128::from(bytes_per_second) * window.as_millis() / 1000;
        MinRate { bytes: u64::try_from(bytes).unwrap_or(u64::MAX).max(1), window }
    }
}

/// Compares one direction of a connection with the lowest rate. Only the time spent waiting for the
/// other end counts.
#[derive(Debug)]
pub(super) struct Pace {
    rate: MinRate,
    /// The bytes in the current window.
    bytes: u64,
    /// The time waited in the current window.
    waited: Duration,
}

impl Pace {
    pub fn new(rate: MinRate) -> Pace {
        Pace { rate, bytes: 0, waited: Duration::ZERO }
    }

    /// Returns the time for which the next bytes may be waited for.
    pub fn remaining(&self) -> Duration {
        self.rate.window.saturating_sub(self.waited)
    }

    /// Returns the time in which too little was transferred, once [`Pace::remaining`] is over.
    pub fn window(&self) -> Duration {
        self.rate.window
    }

    /// Records a number of bytes, and the time that they were waited for. A new window begins when
    /// there are enough of them.
    pub fn record(&mut self, bytes: u64, waited: Duration) {
        self.bytes += bytes;
        self.waited += waited;
        if self.bytes >= self.rate.bytes {
            (self.bytes, self.waited) = (0, Duration::ZERO);
        }
    }
}

/// A [`Pace`] with a timer that runs while a read or write is pending.
#[derive(Debug)]
pub(super) struct PaceTimer {
    pace: Pace,
    pending: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl PaceTimer {
    pub fn new(rate: MinRate) -> PaceTimer {
        PaceTimer { pace: Pace::new(rate), pending: None }
    }

    /// Records the end of a read or write.
    pub fn finish(&mut self, bytes: u64) {
        let waited = self.pending.take().map_or(Duration::ZERO, |(since, _)| since.elapsed());
        self.pace.record(bytes, waited);
    }

    /// Completes when a pending read or write has taken too long, with the time allowed for it.
    pub fn poll_too_slow(&mut self, context: &mut Context<'_>) -> Poll<Duration> {
        let pace = &self.pace;
        let (_, timer) =
            self.pending.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(pace.remaining()))));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(self.pace.window())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_trickle_do_not_extend_the_window() {
        let second = Duration::from_secs(1);
        let mut pace = Pace::new(MinRate::new(100, 10 * second));
        // 99 bytes per second are too few.
        for i in 0..10 {
            assert_eq!(pace.remaining(), (10 - i) * second);
            pace.record(99, second);
        }
        assert_eq!(pace.remaining(), Duration::ZERO);
        // Bytes sent earlier are not a credit for later.
        let mut pace = Pace::new(MinRate::new(100, 10 * second));
        pace.record(1 << 40, Duration::ZERO);
        pace.record(999, 4 * second);
        assert_eq!(pace.remaining(), 6 * second);
        pace.record(1, 5 * second);
        assert_eq!(pace.remaining(), 10 * second);
    }

    #[test]
    fn without_a_lowest_rate_one_byte_is_enough() {
        let second = Duration::from_secs(1);
        let mut pace = Pace::new(MinRate::new(0, 10 * second));
        pace.record(1, 9 * second);
        assert_eq!(pace.remaining(), 10 * second);
        assert_eq!(MinRate::new(u64::MAX, 10 * second).bytes, u64::MAX);
    }
}
