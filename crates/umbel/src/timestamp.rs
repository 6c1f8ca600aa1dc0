//! Points in time.

use std::fmt;
use std::time::SystemTime;

/// A point in time since the start of 1970, UTC: of a clock, or of a packet in a capture.
///
/// ```
/// use umbel::Timestamp;
/// let time = Timestamp::from_nanos(1_700_000_000_250_000_001);
/// assert_eq!((time.millis(), time.nanos()), (1_700_000_000_250, 1_700_000_000_250_000_001));
/// assert_eq!(time.to_string(), "1700000000.250");
/// assert_eq!(time.nanos_since(Timestamp::from_secs(1_700_000_000)), 250_000_001);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    millis: u64,
    /// The nanoseconds within the millisecond.
    nanos: u32,
}

const NANOS_PER_MILLI: u64 = 1_000_000;

impl Timestamp {
    /// Returns the time of the system's clock, in whole milliseconds.
    pub fn now() -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// Returns the time this many seconds after the start of 1970.
    pub const fn from_secs(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds.saturating_mul(1000))
    }

    /// Returns the time this many milliseconds after the start of 1970.
    pub const fn from_millis(millis: u64) -> Timestamp {
        Timestamp { millis, nanos: 0 }
    }

    /// Returns the time this many nanoseconds after the start of 1970.
    pub const fn from_nanos(nanos: u64) -> Timestamp {
        Timestamp { millis: nanos / NANOS_PER_MILLI, nanos: (nanos % NANOS_PER_MILLI) as u32 }
    }

    /// Returns the whole milliseconds since the start of 1970.
    pub const fn millis(self) -> u64 {
        self.millis
    }

    /// Returns the nanoseconds since the start of 1970, or the largest number after the year 2554.
    pub const fn nanos(self) -> u64 {
        self.millis.saturating_mul(NANOS_PER_MILLI).saturating_add(self.nanos as u64)
    }

    /// Returns the nanoseconds from an earlier time to this one, or 0 if the other time is later.
    pub const fn nanos_since(self, earlier: Timestamp) -> u64 {
        self.nanos().saturating_sub(earlier.nanos())
    }
}

impl fmt::Display for Timestamp {
    /// Writes the seconds since the start of 1970, with three decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.millis / 1000, self.millis % 1000)
    }
}
