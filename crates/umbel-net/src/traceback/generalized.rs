//! The generalized Bloom filter in a header: routers set some bits and reset others (Laufer,
//! Velloso and Duarte 2005).
//!
//! Whatever the sender wrote into the filter, the chance that a router appears to have forwarded
//! the packet stays below a bound that depends only on the numbers of bits ([`rate_bound`]). The
//! price is false negatives: later routers undo the marks of earlier ones. That is why this filter
//! is not one of the set kinds of `umbel`, which have no false negatives.
//!
//! ```
//! use umbel_net::traceback::generalized::{Router, rate_bound};
//! use umbel_net::traceback::header::Filter;
//! // 256 bits; each router resets two and sets three.
//! let [near, far] = [1, 2].map(|n| Router::<8>::new(&[10, 0, 0, n], 1, 2, 3));
//! let mut filter = Filter::FULL;
//! assert!(!far.may_have_marked(&filter), "a filter of all ones does not match");
//! near.mark(&mut filter);
//! assert!(near.may_have_marked(&filter));
//! assert!((rate_bound(2, 3) - 0.0346).abs() < 1e-4);
//! ```
//!
//! When going upstream, the routers downstream and the bits they touched are known. [`Touched`]
//! keeps those bits, and [`Router::may_have_marked_before`] ignores them: then no router of the
//! path is missed, but more other routers are found.
//!
//! ```
//! use umbel_net::topology::Graph;
//! use umbel_net::traceback::{generalized::{Router, Touched}, header::Filter, walk_paths};
//! let graph = Graph::nsfnet();
//! let routers: Vec<_> = (0..graph.len()).map(|node| Router::<8>::new(&graph.address_bytes(node), 1, 2, 3)).collect();
//! let [attacker, victim] = [0, 9];
//! let mut filter = Filter::FULL;
//! let path = graph.path(attacker, victim);
//! path.iter().for_each(|node| routers[*node].mark(&mut filter));
//! let found = walk_paths(&graph, victim, Touched::default(), 10_000, |node, later| routers[node].trace(&filter, later));
//! assert!(path.iter().all(|node| found.routers.contains(node)));
//! ```
//!
//! # References
//!
//! * R. P. Laufer, P. B. Velloso and O. C. M. B. Duarte. *Generalized Bloom filters.* Technical
//!   report, COPPE/UFRJ, 2005. `LVD05`

use crate::mask::Mask;
use crate::{Error, Result};
use umbel::hash::reduce;
use umbel::{Hasher, Key};

/// A router, represented by the bits that it sets and resets. A bit that is in both is reset.
#[derive(Clone, Copy, Debug)]
pub struct Router<const W: usize> {
    set: Mask<W>,
    reset: Mask<W>,
}

impl<const W: usize> Router<W> {
    /// Returns the router with this address, with `k0` hash functions whose bits it resets and `k1`
    /// whose bits it sets.
    pub fn new(address: &[u8], seed: u64, k0: u32, k1: u32) -> Router<W> {
        let digest = address.digest(&Hasher::fast(seed));
        let bit =
            |number: u32| reduce(digest.salted(u64::from(number)).get(), u64::from(Mask::<W>::BITS)) as u32;
        let reset = Mask::from_positions((0..k0).map(bit));
        let mut set = Mask::from_positions((k0..k0.saturating_add(k1)).map(bit));
        set &= !reset;
        Router { set, reset }
    }

    /// Returns the router that resets and sets the bits at these positions.
    pub fn from_positions(reset: &[u32], set: &[u32]) -> Router<W> {
        let [reset, mut set] = [reset, set].map(|positions| Mask::from_positions(positions.iter().copied()));
        set &= !reset;
        Router { set, reset }
    }

    /// Marks a packet that passes.
    #[inline]
    pub fn mark(&self, filter: &mut Mask<W>) {
        *filter |= self.set;
        *filter &= !self.reset;
    }

    /// Returns whether the packet may have passed here. `false` is not certain: later routers may
    /// have undone the marks of this one.
    #[inline]
    pub fn may_have_marked(&self, filter: &Mask<W>) -> bool {
        filter.covers(&self.set) && filter.misses(&self.reset)
    }

    /// Returns whether the packet may have passed here before the routers that touched the bits in
    /// `later`. `false` is certain if those routers did come later, and there were no others.
    #[inline]
    pub fn may_have_marked_before(&self, filter: &Mask<W>, later: &Touched<W>) -> bool {
        let [mut set, mut reset] = [self.set, self.reset];
        set &= !later.reset;
        reset &= !later.set;
        filter.covers(&set) && filter.misses(&reset)
    }

    /// Makes one step of a [`walk_paths`](super::walk_paths): returns the state for the routers
    /// further upstream if the packet may have passed here.
    pub fn trace(&self, filter: &Mask<W>, later: &Touched<W>) -> Option<Touched<W>> {
        self.may_have_marked_before(filter, later).then(|| {
            let mut touched = *later;
            touched.set |= self.set;
            touched.reset |= self.reset;
            touched
        })
    }
}

/// The bits that routers downstream have touched: the arrays m1 and m0 of the literature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched<const W: usize> {
    set: Mask<W>,
    reset: Mask<W>,
}

impl<const W: usize> Touched<W> {
    /// Returns the bits that were set.
    pub fn set(&self) -> &Mask<W> {
        &self.set
    }

    /// Returns the bits that were reset.
    pub fn reset(&self) -> &Mask<W> {
        &self.reset
    }
}

impl<const W: usize> Default for Touched<W> {
    fn default() -> Touched<W> {
        Touched { set: Mask::EMPTY, reset: Mask::EMPTY }
    }
}

/// The mathematics of a generalized Bloom filter with m bits, k0 functions that reset and k1 that
/// set.
///
/// ```
/// use umbel_net::traceback::generalized::Formulas;
/// let filter = Formulas::new(256, 4, 4)?;
/// // Sixteen routers on the way, and the filter was all ones at first.
/// assert!((filter.false_positives(16, 0.0) - 0.00068).abs() < 5e-6);
/// assert!((filter.mean_false_negatives(16) - 0.516).abs() < 5e-4);
/// # Ok::<(), umbel_net::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Formulas {
    bits: f64,
    /// The chance that an element resets a given bit.
    resets: f64,
    /// The chance that an element sets a given bit.
    sets: f64,
}

impl Formulas {
    /// Returns the formulas of a filter of `m` bits, with `k0` functions that reset and `k1` that
    /// set.
    ///
    /// # Errors
    ///
    /// Fails if `m` is 0, or both `k0` and `k1` are.
    pub fn new(m: u64, k0: u32, k1: u32) -> Result<Formulas> {
        if m == 0 {
            return Err(Error::parameter("m", m, "at least 1"));
        }
        if k0 == 0 && k1 == 0 {
            return Err(Error::parameter("k0", k0, "a function that resets, or one that sets"));
        }
        let bits = m as f64;
        let spared = |k: u32| (1.0 - 1.0 / bits).powf(f64::from(k));
        Ok(Formulas { bits, resets: 1.0 - spared(k0), sets: (1.0 - spared(k1)) * spared(k0) })
    }

    /// Returns the chance that `n` elements leave a bit untouched.
    fn untouched(&self, n: u64) -> f64 {
        (1.0 - self.resets - self.sets).powf(n as f64)
    }

    /// Returns the share of touched bits that are 0.
    fn reset_share(&self) -> f64 {
        self.resets / (self.resets + self.sets)
    }

    /// Returns the share of bits that are 0 after `n` elements, given that the share `zeros` was 0
    /// initially.
    pub fn zeros(&self, n: u64, zeros: f64) -> f64 {
        let untouched = self.untouched(n);
        zeros * untouched + self.reset_share() * (1.0 - untouched)
    }

    /// Returns the false-positive rate after `n` elements, given that the share `zeros` was 0
    /// initially.
    pub fn false_positives(&self, n: u64, zeros: f64) -> f64 {
        let zeros = self.zeros(n, zeros);
        zeros.powf(self.bits * self.resets) * (1.0 - zeros).powf(self.bits * self.sets)
    }

    /// Returns the chance that an element is not found after `later` others were added.
    pub fn false_negative(&self, later: u64) -> f64 {
        let untouched = self.untouched(later);
        let stays = |share: f64| untouched + (1.0 - untouched) * share;
        let kept = stays(self.reset_share()).powf(self.bits * self.resets)
            * stays(1.0 - self.reset_share()).powf(self.bits * self.sets);
        1.0 - kept
    }

    /// Returns the mean share of `n` elements that are not found.
    pub fn mean_false_negatives(&self, n: u64) -> f64 {
        (0..n).map(|later| self.false_negative(later)).sum::<f64>() / n.max(1) as f64
    }
}

/// Returns the highest false-positive rate that a sender can cause by presetting the filter.
///
/// ```
/// use umbel_net::traceback::generalized::rate_bound;
/// assert_eq!([(1, 1), (2, 2)].map(|(k0, k1)| rate_bound(k0, k1)), [0.25, 0.0625]);
/// ```
pub fn rate_bound(k0: u32, k1: u32) -> f64 {
    let all = f64::from(k0) + f64::from(k1);
    let part = |k: u32| (f64::from(k) / all.max(1.0)).powf(f64::from(k));
    part(k0) * part(k1)
}
