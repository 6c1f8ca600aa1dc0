//! Detection of packets that travel in a loop, by a Bloom filter in their header (Whitaker and
//! Wetherall 2002, "Icarus").
//!
//! Every interface has a [mask](crate::mask) of a few bits and sets them in the header of each
//! packet that passes. If all of them were set already, the packet may have been here before. It
//! may also be chance, so a packet has a few *reprieves*, which let it pass unchanged. When those
//! are spent, it spends a *failure*, which empties the filter and restores the reprieves. When the
//! failures are spent, too, the packet is dropped. Routers store nothing and allocate nothing, and
//! no packet in a loop escapes.
//!
//! ```
//! use umbel_net::loops::{Allowance, Header, Interface, Verdict};
//!
//! let allowance = Allowance { failures: 1, reprieves: 1 };
//! // 128 bits; four interfaces that send packets in a circle.
//! let circle: Vec<Interface<4>> = (0..4).map(|n| Interface::new(&[2, 0, 0, 0, 0, n], 1, allowance)).collect();
//! let mut header = Header::new(allowance);
//! let mut hops = circle.iter().cycle().take_while(|interface| interface.pass(&mut header) != Verdict::Drop);
//! assert!(hops.by_ref().count() <= allowance.most_hops(4) as usize);
//! ```
//!
//! [`dropped`] computes how many packets outside any loop are lost by chance.
//!
//! # References
//!
//! * A. Whitaker and D. Wetherall. *Forwarding without loops in Icarus.* OPENARCH 2002. `WW02`

use crate::mask::Mask;
use crate::{Error, Result};

/// The number of times a packet may look as if it were in a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// The number of times the filter is emptied.
    pub failures: u8,
    /// The number of times the packet passes unchanged before each failure.
    pub reprieves: u8,
}

impl Allowance {
    /// Returns the largest number of hops that a packet makes in a loop of this many interfaces,
    /// counted from the interface where it enters, before it is dropped.
    ///
    /// The filter holds all masks of the loop after one round. After that every hop costs a
    /// reprieve or a failure, and a failure empties the filter. So there are 1 + failures rounds,
    /// the reprieves of each round, and the hops that spent a failure.
    ///
    /// ```
    /// use umbel_net::loops::Allowance;
    /// assert_eq!(Allowance { failures: 3, reprieves: 1 }.most_hops(8), 39);
    /// assert_eq!(Allowance::default().most_hops(8), 8);
    /// ```
    pub fn most_hops(self, interfaces: u32) -> u32 {
        let (failures, reprieves) = (u32::from(self.failures), u32::from(self.reprieves));
        interfaces.saturating_add(reprieves).saturating_add(1).saturating_mul(1 + failures) - 1
    }
}

/// Returns the number of bits that an interface sets in a header of `bits` bits (Whitaker and
/// Wetherall 2002).
///
/// ```
/// use umbel_net::loops::weight;
/// assert_eq!([32, 64, 128, 256].map(weight), [3, 4, 4, 5]);
/// ```
pub fn weight(bits: u32) -> u32 {
    match bits {
        ..64 => 3,
        64..256 => 4,
        _ => 5,
    }
}

/// The decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Forward it: its filter shows that it was not here since the filter was last empty.
    Forward,
    /// Forward it: it may have been here, and spent a reprieve.
    Reprieved,
    /// Forward it: it may have been here, had no reprieve left, and its filter was emptied.
    Emptied,
    /// Drop it: it may have been here, and has neither a reprieve nor a failure left.
    Drop,
}

/// The fields that a packet carries: a filter of 32 `W` bits, and the rest of its [`Allowance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<const W: usize> {
    filter: Mask<W>,
    left: Allowance,
}

impl<const W: usize> Header<W> {
    /// Returns the header of a packet that has not passed any interface yet.
    pub const fn new(allowance: Allowance) -> Header<W> {
        Header { filter: Mask::EMPTY, left: allowance }
    }

    /// Returns the header received over the wire, from the words of the filter and the remaining
    /// allowance. The remainder is capped at the allowance of the network.
    pub fn received(words: [u32; W], left: Allowance, allowance: Allowance) -> Header<W> {
        let left = Allowance {
            failures: left.failures.min(allowance.failures),
            reprieves: left.reprieves.min(allowance.reprieves),
        };
        Header { filter: Mask::from_words(words), left }
    }

    /// Returns the bits.
    pub fn filter(&self) -> &Mask<W> {
        &self.filter
    }

    /// Returns the rest of the allowance.
    pub fn left(&self) -> Allowance {
        self.left
    }

    /// Marks the packet with the mask of an interface and decides what to do with it. A failure
    /// sets the reprieves to `reprieves`.
    #[inline]
    pub fn mark(&mut self, mask: &Mask<W>, reprieves: u8) -> Verdict {
        if !self.filter.covers(mask) {
            self.filter |= *mask;
            return Verdict::Forward;
        }
        if let Some(left) = self.left.reprieves.checked_sub(1) {
            self.left.reprieves = left;
            return Verdict::Reprieved;
        }
        let Some(left) = self.left.failures.checked_sub(1) else {
            return Verdict::Drop;
        };
        *self = Header { filter: Mask::EMPTY, left: Allowance { failures: left, reprieves } };
        Verdict::Emptied
    }
}

/// An interface through which packets pass.
#[derive(Clone, Debug)]
pub struct Interface<const W: usize> {
    address: [u8; 16],
    seed: u64,
    allowance: Allowance,
    mask: Mask<W>,
    drawn: u64,
    changed: Option<u64>,
}

impl<const W: usize> Interface<W> {
    /// Returns the interface with this address, of which the first 16 bytes count. Use the address
    /// of the network card: it is unique even where IP addresses are not.
    pub fn new(address: &[u8], seed: u64, allowance: Allowance) -> Interface<W> {
        let mut own = [0; 16];
        own.iter_mut().zip(address).for_each(|(own, byte)| *own = *byte);
        let mask = Mask::from_address(&own, seed, weight(Mask::<W>::BITS));
        Interface { address: own, seed, allowance, mask, drawn: 0, changed: None }
    }

    /// Returns the bits that the interface sets.
    pub fn mask(&self) -> &Mask<W> {
        &self.mask
    }

    /// Marks a packet that passes and decides what to do with it.
    #[inline]
    pub fn pass(&self, header: &mut Header<W>) -> Verdict {
        header.mark(&self.mask, self.allowance.reprieves)
    }

    /// Draws another mask after a packet was dropped here at the time `now`, and returns whether
    /// the mask changed. If the drop was chance, the other packets of that path now get through.
    ///
    /// Does nothing within `hold_down` of the last change. Otherwise the packets of a real loop
    /// would change the mask in every round, and so stay alive.
    pub fn redraw(&mut self, now: u64, hold_down: u64) -> bool {
        if self.changed.is_some_and(|changed| now.saturating_sub(changed) < hold_down) {
            return false;
        }
        self.drawn += 1;
        self.changed = Some(now);
        let seed = self.seed.wrapping_add(self.drawn);
        self.mask = Mask::from_address(&self.address, seed, weight(Mask::<W>::BITS));
        true
    }
}

/// Returns the share of packets outside any loop that are dropped within 1, 2, ... `hops` hops. The
/// result is exact: the number of set bits is a Markov chain, and the chance that a mask of
/// `weight` random bits is covered is hypergeometric.
///
/// ```
/// use umbel_net::loops::{Allowance, dropped, weight};
/// let of = dropped(256, weight(256), Allowance { failures: 2, reprieves: 1 }, 200)?;
/// // The hop at which one packet in a thousand is lost.
/// assert_eq!(of.iter().position(|share| *share >= 0.001), Some(116));
/// # Ok::<(), umbel_net::Error>(())
/// ```
///
/// # Errors
///
/// Fails if `bits` is not within 1 to 4096, or `weight` is not within 1 to 16 or exceeds `bits`.
pub fn dropped(bits: u32, weight: u32, allowance: Allowance, hops: u32) -> Result<Vec<f64>> {
    if !(1..=4096).contains(&bits) {
        return Err(Error::parameter("bits", bits, "a number from 1 to 4096"));
    }
    if !(1..=bits.min(16)).contains(&weight) {
        return Err(Error::parameter(
            "weight",
            weight,
            "a number from 1 to 16, and no more than there are bits",
        ));
    }
    // `chances[set][new]`: the chance that `new` bits of a mask are new if `set` bits are set.
    let chances: Vec<Vec<f64>> = (0..=bits).map(|set| new_bits(bits, weight, set)).collect();
    // Reprieves and failures are spent in a fixed order, so one number counts both.
    let epoch = usize::from(allowance.reprieves) + 1;
    let lives = epoch * (usize::from(allowance.failures) + 1);
    let mut now = vec![vec![0.0; bits as usize + 1]; lives];
    now[0][0] = 1.0;
    let mut lost = 0.0;
    let mut shares = Vec::new();
    for _ in 0..hops {
        let mut then = vec![vec![0.0; bits as usize + 1]; lives];
        for (spent, row) in now.iter().enumerate() {
            for (set, share) in row.iter().enumerate().filter(|(_, share)| **share > 0.0) {
                for (new, chance) in chances[set].iter().enumerate().skip(1) {
                    if let Some(cell) = then[spent].get_mut(set + new) {
                        *cell += share * chance;
                    }
                }
                let covered = share * chances[set][0];
                match then.get_mut(spent + 1) {
                    Some(row) if (spent + 1) % epoch == 0 => row[0] += covered,
                    Some(row) => row[set] += covered,
                    None => lost += covered,
                }
            }
        }
        now = then;
        shares.push(lost);
    }
    Ok(shares)
}

/// Returns the chances that 0, 1, ... `weight` of a mask's `weight` random bits are new if `set` of
/// `bits` are set.
fn new_bits(bits: u32, weight: u32, set: u32) -> Vec<f64> {
    // C(n, k) as a product: exact enough, and without factorials.
    let choose = |n: u32, k: u32| -> f64 {
        (0..k).map(|i| (f64::from(n) - f64::from(i)) / f64::from(k - i)).product()
    };
    let all = choose(bits, weight);
    (0..=weight).map(|new| choose(bits - set, new) * choose(set, weight - new) / all).collect()
}
