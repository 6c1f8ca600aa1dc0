//! Figures of a blocklist: its size, and its mistakes.

use super::Backend;
use umbel::Timestamp;

/// Figures of a blocklist at one point in time.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Figures {
    /// The data structure that holds the list.
    pub backend: Backend,
    /// The time of the figures.
    pub now: Timestamp,
    /// The number of blocked keys. With the aging backend, a refreshed key counts in every
    /// generation that has it.
    pub blocked: u64,
    /// The number of prefixes on the allow-list.
    pub allowed: u64,
    /// The lengths of IPv4 prefixes that are looked up, longest first.
    pub lengths_v4: Vec<u8>,
    /// The lengths of IPv6 prefixes that are looked up, longest first.
    pub lengths_v6: Vec<u8>,
    /// The current false-positive rate of the filter, computed from its cells.
    pub rate: f64,
    /// The memory of the filter in bytes.
    pub bytes: u64,
    /// The number of clients expected to be blocked by mistake: the rate counts once for each
    /// prefix length. Always 0 with the exact backend.
    pub innocents: f64,
    /// Whether `innocents` exceeds the budget.
    pub over_budget: bool,
}

/// The result of checking innocent addresses.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Innocents {
    /// The number of addresses.
    pub asked: u64,
    /// The number of blocked addresses.
    pub blocked: u64,
    /// The number of addresses that match the filter, regardless of the exact list and the
    /// allow-list.
    pub by_filter: u64,
    /// The number of addresses expected to match the filter by chance.
    pub expected: f64,
}
