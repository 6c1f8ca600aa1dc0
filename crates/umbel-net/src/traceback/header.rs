//! A Bloom filter in the header of a packet, in which every router sets its bits (Laufer et al.
//! 2007).
//!
//! It takes no memory in routers, and a single packet is enough. But the sender can preset the
//! filter. If he fills it with ones, every router appears to have forwarded the packet.
//!
//! ```
//! use umbel_net::traceback::header::{Filter, Router};
//! let [near, far] = [1, 2].map(|n| Router::<8>::new(&[10, 0, 0, n], 1, 5));
//! let mut filter = Filter::EMPTY;
//! near.mark(&mut filter);
//! assert!(near.may_have_marked(&filter) && !far.may_have_marked(&filter));
//! assert!(far.may_have_marked(&Filter::FULL), "a preset filter matches every router");
//! ```
//!
//! [`generalized`](super::generalized) avoids this.
//!
//! # References
//!
//! * R. P. Laufer, P. B. Velloso, D. de O. Cunha, I. M. Moraes, M. D. D. Bicudo, M. D. D. Moreira
//!   and O. C. M. B. Duarte. *Towards stateless single-packet IP traceback.* LCN 2007. `Laufer07`

use crate::mask::Mask;

/// The filter that a packet carries: 32 `W` bits.
pub type Filter<const W: usize> = Mask<W>;

/// A router, represented by the bits that it sets.
#[derive(Clone, Copy, Debug)]
pub struct Router<const W: usize> {
    mask: Mask<W>,
}

impl<const W: usize> Router<W> {
    /// Returns the router with this address, which sets `weight` bits.
    pub fn new(address: &[u8], seed: u64, weight: u32) -> Router<W> {
        Router { mask: Mask::from_address(address, seed, weight) }
    }

    /// Marks a packet that passes.
    #[inline]
    pub fn mark(&self, filter: &mut Filter<W>) {
        *filter |= self.mask;
    }

    /// Returns whether the packet may have passed here.
    #[inline]
    pub fn may_have_marked(&self, filter: &Filter<W>) -> bool {
        filter.covers(&self.mask)
    }
}
