//! Packets that run in a circle are noticed by a filter in their header (Whitaker and Wetherall 2002, "Icarus").
//!
//! Every interface has a [mask](crate::mask) of a few bits and sets them in the header of each packet that passes. If they
//! were all set before, the packet has perhaps been here. It may also be chance, so a packet has a few reprieves; when they
//! are spent, a failure, which empties the filter and gives the reprieves back; and when these are spent too, it is
//! dropped. Nothing is stored in the router, nothing is allocated, and no packet in a loop escapes.
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
//! [`dropped`] tells how many packets that are in no loop are lost all the same.

use crate::mask::Mask;
use crate::{Error, Result};

/// How often a packet may look as if it ran in a circle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// How often the filter is emptied.
    pub failures: u8,
    /// How often nothing is done before that, each time anew.
    pub reprieves: u8,
}

impl Allowance {
    /// How many hops a packet in a loop of so many interfaces makes at most, from the one where it enters, before it is
    /// dropped.
    ///
    /// Until the filter holds all masks of the loop it takes one round. After that every hop costs a reprieve or a failure,
    /// and a failure empties the filter: 1 + failures rounds, and as often the reprieves, and the hops that failed.
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

/// How many bits an interface sets in a header of so many (Whitaker and Wetherall 2002).
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

/// What is to be done with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was not here since its filter was empty.
    Forward,
    /// It was perhaps here, and had a reprieve.
    Reprieved,
    /// It was perhaps here, had no reprieve, and its filter was emptied.
    Emptied,
    /// It was perhaps here, and has neither reprieve nor failure left.
    Drop,
}

/// What a packet carries: 32 `W` bits, and what is left to it of its [`Allowance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<const W: usize> {
    filter: Mask<W>,
    left: Allowance,
}

impl<const W: usize> Header<W> {
    /// Of a packet that has passed no interface yet.
    pub const fn new(allowance: Allowance) -> Header<W> {
        Header { filter: Mask::EMPTY, left: allowance }
    }

    /// From what came over the wire: the words of the filter, and what is left. More than the network allows is not
    /// believed.
    pub fn received(words: [u32; W], left: Allowance, allowance: Allowance) -> Header<W> {
        let left = Allowance {
            failures: left.failures.min(allowance.failures),
            reprieves: left.reprieves.min(allowance.reprieves),
        };
        Header { filter: Mask::from_words(words), left }
    }

    /// The bits.
    pub fn filter(&self) -> &Mask<W> {
        &self.filter
    }

    /// What is left of the allowance.
    pub fn left(&self) -> Allowance {
        self.left
    }

    /// Takes note of an interface with this mask. `reprieves` is how many there are after a failure.
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
    /// One with this address, of which 16 bytes count: that of the network card, so that it differs even where addresses of
    /// the Internet do not.
    pub fn new(address: &[u8], seed: u64, allowance: Allowance) -> Interface<W> {
        let mut own = [0; 16];
        own.iter_mut().zip(address).for_each(|(own, byte)| *own = *byte);
        let mask = Mask::from_address(&own, seed, weight(Mask::<W>::BITS));
        Interface { address: own, seed, allowance, mask, drawn: 0, changed: None }
    }

    /// The bits that it sets.
    pub fn mask(&self) -> &Mask<W> {
        &self.mask
    }

    /// A packet passes.
    #[inline]
    pub fn pass(&self, header: &mut Header<W>) -> Verdict {
        header.mark(&self.mask, self.allowance.reprieves)
    }

    /// Draws another mask, because a packet was dropped here at the time `now`: if it was chance, packets of the same path
    /// will not be dropped again. Within `hold_down` of the last change nothing happens, so that packets of a true loop do
    /// not let the mask change with every round, which would let them live on. Whether it was changed.
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

/// The share of packets in no loop that are dropped within 1, 2, ... `hops` hops, exactly: the number of set bits is a
/// Markov chain, and a mask of `weight` random bits is covered with a hypergeometric chance.
///
/// ```
/// use umbel_net::loops::{Allowance, dropped, weight};
/// let of = dropped(256, weight(256), Allowance { failures: 2, reprieves: 1 }, 200)?;
/// // The hop at which one packet in a thousand is lost.
/// assert_eq!(of.iter().position(|share| *share >= 0.001), Some(116));
/// # Ok::<(), umbel_net::Error>(())
/// ```
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
    // new[set][of the mask's bits so many are new]
    let chances: Vec<Vec<f64>> = (0..=bits).map(|set| new_bits(bits, weight, set)).collect();
    // Reprieves and failures are spent in one order, so one number says how many of both were spent.
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

/// The chances that 0, 1, ... `weight` of as many random bits are new, if `set` of `bits` are set.
fn new_bits(bits: u32, weight: u32, set: u32) -> Vec<f64> {
    // C(n, k) as a product; exact enough, and without the factorials.
    let choose = |n: u32, k: u32| -> f64 {
        (0..k).map(|i| (f64::from(n) - f64::from(i)) / f64::from(k - i)).product()
    };
    let all = choose(bits, weight);
    (0..=weight).map(|new| choose(bits - set, new) * choose(set, weight - new) / all).collect()
}
