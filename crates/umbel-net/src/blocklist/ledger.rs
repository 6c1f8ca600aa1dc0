//! The exact backend: a counting filter in front of a list of prefixes and the times when they
//! expire.

use super::Options;
use super::lengths::PrefixLengths;
use crate::network::Prefix;
use std::collections::{BTreeSet, HashMap};
use umbel::Timestamp;
use umbel::counting::{self, Overflow};

use crate::Result;
use umbel::spec::KindOptions;
use umbel::{Counting, Kind, Spec};

/// A counting filter, and the list of its entries and when they expire.
#[derive(Debug)]
pub(super) struct Ledger {
    pub filter: Counting,
    until: HashMap<Prefix, Timestamp>,
    /// The same entries, first to expire first. Every key occurs once, however often it was blocked
    /// and unblocked.
    order: BTreeSet<(Timestamp, Prefix)>,
    pub lengths: PrefixLengths<u64>,
}

impl Ledger {
    /// Returns an empty ledger. Its counters stick: decrementing one after an overflow would let an
    /// attacker through.
    pub fn new(options: &Options) -> Result<Ledger> {
        let mut kind_options = KindOptions::default();
        kind_options.counting =
            counting::Options { overflow: Overflow::Sticky, ..counting::Options::default() };
        let spec = Spec::new(options.capacity, options.rate)?;
        let filter = Counting::build(&spec.with_hasher(options.hasher.clone()).with_options(kind_options))?;
        Ok(Ledger::empty(filter))
    }

    fn empty(filter: Counting) -> Ledger {
        Ledger { filter, until: HashMap::new(), order: BTreeSet::new(), lengths: PrefixLengths::default() }
    }

    /// Returns the ledger with the contents of a file, or `None` if the filter and the list do not
    /// belong together.
    pub fn restored(filter: Counting, blocked: impl Iterator<Item = (Prefix, Timestamp)>) -> Option<Ledger> {
        let mut ledger = Ledger::empty(filter);
        let sticks = ledger.filter.rule().overflow() == Overflow::Sticky;
        for (prefix, until) in blocked {
            let known = ledger.filter.contains_digest(prefix.digest(ledger.filter.hasher()));
            if !known || ledger.until.contains_key(&prefix) {
                return None;
            }
            ledger.enter(prefix, until);
        }
        sticks.then_some(ledger)
    }

    fn enter(&mut self, prefix: Prefix, until: Timestamp) {
        self.until.insert(prefix, until);
        self.order.insert((until, prefix));
        self.lengths.add(prefix);
    }

    /// Returns the blocked prefixes and when they expire, first to expire first.
    pub fn blocked(&self) -> impl ExactSizeIterator<Item = (Prefix, Timestamp)> {
        self.order.iter().map(|(until, prefix)| (*prefix, *until))
    }

    pub fn until(&self, prefix: &Prefix) -> Option<Timestamp> {
        self.until.get(prefix).copied()
    }

    pub fn advance(&mut self, now: Timestamp) -> Result<()> {
        while let Some((_, prefix)) = self.order.first().copied().filter(|(until, _)| *until <= now) {
            self.unblock(prefix)?;
        }
        Ok(())
    }

    /// Blocks a prefix until this time, or longer if it is already blocked for longer.
    pub fn block(&mut self, prefix: Prefix, until: Timestamp, capacity: u64) -> Result<Timestamp> {
        if let Some(before) = self.until.get_mut(&prefix) {
            if *before < until {
                self.order.remove(&(*before, prefix));
                self.order.insert((until, prefix));
                *before = until;
            }
            return Ok(*before);
        }
        if self.until.len() as u64 >= capacity {
            let why = format!(
                "{capacity} are blocked, as many as it was planned for: plan for more, or block prefixes"
            );
            return Err(umbel::Error::Full { kind: Kind::Counting, why }.into());
        }
        self.filter.insert_digest(prefix.digest(self.filter.hasher()))?;
        self.enter(prefix, until);
        Ok(until)
    }

    /// Unblocks a prefix. Only entries of the list are removed from the filter.
    pub fn unblock(&mut self, prefix: Prefix) -> Result<bool> {
        let Some(until) = self.until.remove(&prefix) else { return Ok(false) };
        self.order.remove(&(until, prefix));
        self.lengths.remove(prefix);
        self.filter.remove_digest(prefix.digest(self.filter.hasher()));
        Ok(true)
    }
}
