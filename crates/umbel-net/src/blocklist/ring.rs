//! The aging backend: a ring of generations that expire one after the other.

use super::Options;
use super::lengths::PrefixLengths;
use crate::network::Prefix;
use std::time::Duration;
use umbel::aging::{self, Timestamp, Window};

use crate::{Error, Result};
use umbel::spec::KindOptions;
use umbel::{Aging, Kind, Spec};

/// A ring of filters, and the prefix lengths in it.
#[derive(Debug)]
pub(super) struct Ring {
    pub filter: Aging,
    /// When the last prefix of each length expires.
    pub lengths: PrefixLengths<Timestamp>,
    /// The number of keys in the current generation.
    pub taken: u64,
}

impl Ring {
    /// Returns an empty ring. Attacks come in bursts, so every generation has room for the whole
    /// capacity.
    pub fn new(options: &Options, generations: u32, now: Timestamp) -> Result<Ring> {
        let too_many = || Error::parameter("capacity", options.capacity, "fewer addresses");
        let room = options.capacity.checked_mul(generations.max(1).into()).ok_or_else(too_many)?;
        let mut kind_options = KindOptions::default();
        kind_options.aging = aging::Options { window: Some(Window::Time(options.lifetime)), generations };
        let spec =
            Spec::new(room, options.rate)?.with_hasher(options.hasher.clone()).with_options(kind_options);
        let mut filter = Aging::build(&spec)?;
        filter.advance(now)?;
        Ok(Ring { filter, lengths: PrefixLengths::default(), taken: 0 })
    }

    /// Returns when an entry made now expires: at the end of a generation's last period, which is
    /// at most a lifetime from now, and more than a lifetime minus a generation.
    pub fn until(&self, now: Timestamp) -> Timestamp {
        let generations = self.filter.generations() as u128;
        let window = self.lifetime().as_millis().max(1);
        let ends = (self.period(now) + generations) * window;
        Timestamp::from_millis(u64::try_from(ends.div_ceil(generations)).unwrap_or(u64::MAX))
    }

    pub fn lifetime(&self) -> Duration {
        match self.filter.window() {
            Window::Time(time) => time,
            _ => Duration::MAX,
        }
    }

    fn period(&self, now: Timestamp) -> u128 {
        u128::from(now.millis()) * self.filter.generations() as u128 / self.lifetime().as_millis().max(1)
    }

    pub fn advance(&mut self, last: Timestamp, now: Timestamp) -> Result<()> {
        self.filter.advance(now)?;
        if self.period(now) != self.period(last) {
            self.taken = 0;
        }
        self.lengths.retain(|until| *until > now);
        Ok(())
    }

    pub fn block(&mut self, prefix: Prefix, now: Timestamp, capacity: u64) -> Result<Timestamp> {
        if self.taken >= capacity {
            let why = format!(
                "{capacity} addresses were blocked in this generation, as many as it was planned for, and more would \
                 block innocents: plan for more, or block prefixes"
            );
            return Err(umbel::Error::Full { kind: Kind::Aging, why }.into());
        }
        let held = self.filter.held();
        self.filter.insert_digest(prefix.digest(self.filter.hasher()));
        // A key that the generation has already takes no room.
        self.taken += u64::from(self.filter.held() > held);
        let until = self.until(now);
        self.lengths.insert(prefix, until);
        Ok(until)
    }
}
