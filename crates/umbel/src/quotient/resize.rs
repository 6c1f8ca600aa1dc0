//! Resizing: the same fingerprints in another number of slots.
//!
//! A fingerprint is a slot and a remainder. Moving a bit from the one to the other doubles or halves
//! the slots, and leaves every fingerprint as it is:
//!
//! ```text
//! fingerprint     1 0 1 1 0 1 0 0 1 1
//! 64 slots        [   slot  ]|[ rem. ]
//! 128 slots       [    slot   ]|[rem.]
//! ```
//!
//! So the rate depends on the number of keys alone, not on the number of slots.

use super::slots::Slots;
use super::{Quotient, sizes};
use crate::{Design, Error, Kind, Result};

impl Quotient {
    /// Doubles the slots and shortens the remainders by one bit. The fingerprints do not change:
    /// the filter holds more keys, and each raises the false-positive rate as much as before.
    ///
    /// # Errors
    ///
    /// Returns an error, and changes nothing, if the remainders are one bit long, or if there is
    /// not enough memory.
    pub fn grow(&mut self) -> Result<()> {
        *self = self.resized(self.slots().saturating_mul(2))?;
        Ok(())
    }

    /// Halves the slots and lengthens the remainders by one bit.
    ///
    /// # Errors
    ///
    /// Returns an error, and changes nothing, if the result would be too full, if the number of
    /// slots is an odd multiple of 64, or if there is not enough memory.
    pub fn shrink(&mut self) -> Result<()> {
        let half = self.slots() / 2;
        *self = self.resized(half)?;
        Ok(())
    }

    /// Returns a filter with the same fingerprints in another number of slots, which must be the
    /// current number times or divided by a power of two.
    ///
    /// # Errors
    ///
    /// Returns an error if `slots` is another number, if it leaves no bit for the remainders, if
    /// the result would be too full, or if there is not enough memory.
    pub fn resized(&self, slots: u64) -> Result<Quotient> {
        let steps = |from: u64, to: u64| {
            let ratio = to.checked_div(from).filter(|ratio| ratio.checked_mul(from) == Some(to))?;
            ratio.is_power_of_two().then_some(ratio.trailing_zeros())
        };
        let r = self.remainder_bits();
        let bits = match steps(self.slots(), slots) {
            Some(longer) => r.checked_sub(longer),
            None => steps(slots, self.slots()).map(|shorter| r + shorter),
        };
        let needs =
            "this number of slots times a power of two that leaves a bit of remainder, or divided by one";
        let bits = bits.filter(|bits| *bits > 0).ok_or_else(|| Error::parameter("slots", slots, needs))?;
        let mut resized = self.filled(Slots::new(slots, bits)?, self.len, self.fingerprints())?;
        resized.head = self.head.clone();
        // A smaller filter may be full before it holds its planned number of keys.
        let capacity = resized.max_len();
        let limit = |design: Design| Design { capacity: design.capacity.min(capacity), ..design };
        resized.head.design = self.head.design.map(limit);
        Ok(resized)
    }

    /// Returns a filter with the same fingerprints for `capacity` keys: the one with the fewest
    /// slots of which these keys fill at most 80 %, or all that it was planned for. The planned
    /// rate is the one that this number of keys leads to.
    ///
    /// ```
    /// use umbel::Quotient;
    /// let mut filter = Quotient::with_capacity(1000, 0.01)?;
    /// filter.insert("apple")?;
    /// let larger = filter.resized_for(5000)?;
    /// assert!(larger.contains("apple"));
    /// // The fingerprints are those of the smaller filter, so five times as many keys have five
    /// // times its rate.
    /// let design = larger.design().unwrap();
    /// assert_eq!((design.capacity, (design.rate * 1e4).round()), (5000, 301.0));
    /// # Ok::<(), umbel::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the filter holds more than `capacity` keys, if the remainders are too
    /// short for so many slots, or if there is not enough memory.
    pub fn resized_for(&self, capacity: u64) -> Result<Quotient> {
        if capacity < self.len.max(1) {
            let needs = format!("at least the {} keys that the filter holds", self.len.max(1));
            return Err(Error::parameter("n", capacity, needs));
        }
        let planned = self.head.design.map_or(0, |design| design.capacity).min(self.max_len());
        let suffices = |slots: u64| {
            capacity as f64 <= slots as f64 * sizes::LOAD || (slots >= self.slots() && capacity <= planned)
        };
        let (mut slots, mut bits) = (self.slots(), self.remainder_bits());
        while !suffices(slots) {
            if bits == 1 {
                let needs = format!("fewer keys: {}", self.shortest());
                return Err(Error::parameter("n", capacity, needs));
            }
            (slots, bits) = (slots * 2, bits - 1);
        }
        while slots.is_multiple_of(2 * sizes::BLOCK) && suffices(slots / 2) {
            slots /= 2;
        }
        let mut resized = self.resized(slots)?;
        let rate = sizes::rate(capacity, slots, resized.remainder_bits())?;
        resized.head.design = Some(Design { capacity, rate });
        Ok(resized)
    }

    /// Returns as many slots as `len` fingerprints need: those of this filter, or more.
    pub(super) fn roomy(&self, len: u64) -> Result<Slots> {
        let mut slots = self.slots;
        while sizes::max_keys(slots.homes()) < len {
            if slots.remainder_bits() == 1 {
                return Err(Error::Full { kind: Kind::Quotient, why: self.shortest() });
            }
            slots = Slots::new(slots.homes() * 2, slots.remainder_bits() - 1)?;
        }
        Ok(slots)
    }

    /// Says how many keys the filter can grow to, and what to do for more.
    fn shortest(&self) -> String {
        let doublings = self.remainder_bits() - 1;
        let most = sizes::max_keys(self.slots() << doublings);
        format!(
            "it can grow to {most} keys, since doubling its slots takes a bit of its remainders; \
             build it again from its keys for more"
        )
    }
}
