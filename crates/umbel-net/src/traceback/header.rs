//! A filter in the header of a packet, in which every router sets its bits (Laufer et al. 2007, after Bloom).
//!
//! It needs no memory in routers and one packet is enough, but the sender can write what he likes into it first. If he
//! fills it with ones, every router seems to have seen the packet.
//!
//! ```
//! use umbel_net::traceback::header::{Filter, Router};
//! let [near, far] = [1, 2].map(|n| Router::<8>::new(&[10, 0, 0, n], 1, 5));
//! let mut filter = Filter::EMPTY;
//! near.mark(&mut filter);
//! assert!(near.may_have_marked(&filter) && !far.may_have_marked(&filter));
//! assert!(far.may_have_marked(&Filter::FULL), "a lie that nothing shows");
//! ```
//!
//! [`generalized`](super::generalized) is the way out.

use crate::mask::Mask;

/// The filter that a packet carries: 32 `W` bits.
pub type Filter<const W: usize> = Mask<W>;

/// A router, by the bits that it sets.
#[derive(Clone, Copy, Debug)]
pub struct Router<const W: usize> {
    mask: Mask<W>,
}

impl<const W: usize> Router<W> {
    /// One with this address, which sets `weight` bits.
    pub fn new(address: &[u8], seed: u64, weight: u32) -> Router<W> {
        Router { mask: Mask::from_address(address, seed, weight) }
    }

    /// A packet passes.
    #[inline]
    pub fn mark(&self, filter: &mut Filter<W>) {
        *filter |= self.mask;
    }

    /// Whether the packet perhaps passed here.
    #[inline]
    pub fn may_have_marked(&self, filter: &Filter<W>) -> bool {
        filter.covers(&self.mask)
    }
}
