//! The lengths of the prefixes in a list.

use crate::network::Prefix;
use std::collections::BTreeMap;

/// A value for each prefix length in a list. Only these lengths of an address are looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PrefixLengths<T> {
    v4: BTreeMap<u8, T>,
    v6: BTreeMap<u8, T>,
}

// A derived implementation would require `T: Default`.
impl<T> Default for PrefixLengths<T> {
    fn default() -> PrefixLengths<T> {
        PrefixLengths { v4: BTreeMap::new(), v6: BTreeMap::new() }
    }
}

impl<T> PrefixLengths<T> {
    pub fn family(&self, v4: bool) -> &BTreeMap<u8, T> {
        if v4 { &self.v4 } else { &self.v6 }
    }

    fn family_mut(&mut self, v4: bool) -> &mut BTreeMap<u8, T> {
        if v4 { &mut self.v4 } else { &mut self.v6 }
    }

    pub fn insert(&mut self, prefix: Prefix, value: T) {
        self.family_mut(prefix.address().is_ipv4()).insert(prefix.length(), value);
    }

    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.v4.retain(|_, value| keep(value));
        self.v6.retain(|_, value| keep(value));
    }
}

impl PrefixLengths<u64> {
    /// Counts one more prefix.
    pub fn add(&mut self, prefix: Prefix) {
        *self.family_mut(prefix.address().is_ipv4()).entry(prefix.length()).or_insert(0) += 1;
    }

    /// Counts one prefix less. Drops the length with its last prefix.
    pub fn remove(&mut self, prefix: Prefix) {
        let family = self.family_mut(prefix.address().is_ipv4());
        if let Some(count) = family.get_mut(&prefix.length()) {
            *count -= 1;
            if *count == 0 {
                family.remove(&prefix.length());
            }
        }
    }
}
