//! One enum over all kinds, so that every face of the product treats a filter the same way.
//!
//! [`AnyFilter`] is every kind of set that takes digests. [`Stored`] is whatever a file can hold: those, and the
//! filters of the literature, which take keys.

mod shared;

pub use shared::AnyConcurrent;

use crate::aging::{Timestamp, Window};
use crate::file::{Encoder, FormatError, Options, Storable};
use crate::literature::Literature;
use crate::set::{Parts, Probe, check_tail};
use crate::sizing::estimate::Overlap;
use crate::words::Words;
use crate::{
    Aging, Algebra, Answers, Batch, Blocked, Bloom, Can, Counting, Cuckoo, Deletable, Design, Digest, Error,
    Filter, Floom, HashId, Hasher, Insert, Key, Kind, Level, Mismatch, Partitioned, Plan, Quotient, Remove,
    Removed, Result, Scalable, Set, Spec, Standard, Stats, VariableIncrement, plan,
};

/// The kinds of sets: from each line follow the enum, its conversions, and what is done by kind.
macro_rules! sets {
    ($d:tt $($(#[$doc:meta])* $kind:ident($filter:ty),)*) => {
        /// A set of digests of any kind.
        ///
        /// ```
        /// use umbel::{AnyFilter, Filter, Insert, Kind, Spec};
        /// let mut filter = AnyFilter::build(Kind::Blocked, &Spec::new(1_000_000, 0.01)?)?;
        /// filter.insert("apple")?;
        /// assert!(filter.contains("apple"));
        /// assert_eq!(filter.kind(), Kind::Blocked);
        /// # Ok::<(), umbel::Error>(())
        /// ```
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum AnyFilter {
            $($(#[$doc])* $kind($filter),)*
        }

        /// Does the same with whatever filter it is.
        macro_rules! each {
            ($d any:expr, $d inner:ident => $d action:expr) => {
                match $d any {
                    $(AnyFilter::$kind($d inner) => $d action,)*
                }
            };
        }

        /// Makes the same of whatever filter it is.
        macro_rules! map {
            ($d any:expr, $d inner:ident => $d action:expr) => {
                match $d any {
                    $(AnyFilter::$kind($d inner) => AnyFilter::$kind($d action),)*
                }
            };
        }

        /// Does the same with two filters of one kind; `else` when the kinds differ.
        macro_rules! both {
            ($d ours:expr, $d theirs:expr, $d a:ident, $d b:ident => $d action:expr, else $d other:expr) => {
                match ($d ours, $d theirs) {
                    $((AnyFilter::$kind($d a), AnyFilter::$kind($d b)) => $d action,)*
                    _ => $d other,
                }
            };
        }

        /// Does the same with the type of a kind.
        macro_rules! of_kind {
            ($d kind:expr, $d type:ident => $d action:expr, literature $d other:expr) => {
                match $d kind {
                    $(Kind::$kind => {
                        type $d type = $filter;
                        $d action
                    })*
                    Kind::Literature => $d other,
                }
            };
        }

        $(
            impl From<$filter> for AnyFilter {
                fn from(filter: $filter) -> AnyFilter {
                    AnyFilter::$kind(filter)
                }
            }

            impl From<$filter> for Stored {
                fn from(filter: $filter) -> Stored {
                    Stored::Set(filter.into())
                }
            }

            impl TryFrom<AnyFilter> for $filter {
                type Error = Error;

                /// The filter, if it is of this kind.
                fn try_from(filter: AnyFilter) -> Result<$filter> {
                    match filter {
                        AnyFilter::$kind(filter) => Ok(filter),
                        other => Err(Error::Mismatch(Mismatch::kinds(Kind::$kind, other.kind()))),
                    }
                }
            }
        )*
    };
}

sets! { $
    /// Standard.
    Standard(Bloom<Standard>),
    /// Partitioned.
    Partitioned(Bloom<Partitioned>),
    /// Blocked.
    Blocked(Bloom<Blocked>),
    /// Counting.
    Counting(Counting),
    /// Variable-increment.
    VariableIncrement(VariableIncrement),
    /// Deletable.
    Deletable(Deletable),
    /// Scalable.
    Scalable(Scalable),
    /// Aging.
    Aging(Aging),
    /// Floom.
    Floom(Floom),
    /// Cuckoo.
    Cuckoo(Cuckoo),
    /// Quotient.
    Quotient(Quotient),
}

impl Kind {
    /// What filters of this kind can do beside being asked and filled.
    pub const fn can(self) -> Can {
        of_kind!(self, S => S::CAN, literature Can { union: true, intersect: true, ..Can::NOTHING })
    }

    /// What filter of this kind, whatever its size, a specification leads to.
    pub(crate) fn plan(self, spec: &Spec) -> Result<Plan> {
        of_kind!(self, S => S::plan(spec), literature Err(made_from_its_family()))
    }
}

fn made_from_its_family() -> Error {
    Error::parameter(
        "kind",
        Kind::Literature,
        "a kind that takes digests; a literature filter is made from its family",
    )
}

impl AnyFilter {
    /// An empty filter of this kind. A small blocked one is built as a standard filter, as [`plan`] says.
    pub fn build(kind: Kind, spec: &Spec) -> Result<AnyFilter> {
        of_kind!(plan(kind, spec)?.kind, S => Ok(S::build(spec)?.into()), literature Err(made_from_its_family()))
    }

    pub(crate) fn restore(kind: Kind, parts: Parts) -> Result<AnyFilter> {
        of_kind!(kind, S => Ok(S::restore(parts)?.into()), literature Err(made_from_its_family()))
    }

    /// The memory, section by section.
    pub fn sections(&self) -> Vec<&Words> {
        each!(self, filter => filter.sections()).into_iter().map(|(_, words)| words).collect()
    }

    /// Looks a digest up cell by cell, and tells `probe` of each before it is read; see [`Set::trace`].
    pub fn trace(&self, digest: Digest, probe: &mut dyn FnMut(Probe) -> Result<()>) -> Result<bool> {
        each!(self, filter => filter.trace(digest, probe))
    }

    /// The filter of the same keys in half the memory; see [`Set::fold`].
    pub fn fold(&self) -> Result<AnyFilter> {
        Ok(map!(self, filter => filter.fold()?))
    }

    /// A copy in memory of its own.
    pub fn try_clone_owned(&self) -> Result<AnyFilter> {
        Ok(map!(self, filter => filter.try_clone_owned()?))
    }

    /// An empty filter of the same shape, hash and design.
    pub fn try_clone_empty(&self) -> Result<AnyFilter> {
        Ok(map!(self, filter => filter.try_clone_empty()?))
    }

    /// Takes in what was inserted into another filter of the same shape; see [`Set::absorb`].
    pub fn absorb(&mut self, part: &AnyFilter) -> Result<()> {
        both!(&mut *self, part, a, b => a.absorb(b), else Err(Error::Mismatch(self.kinds_differ(part))))
    }

    /// Forgets everything.
    pub fn clear(&mut self) -> Result<()> {
        each!(self, filter => filter.clear())
    }

    /// What the filter was planned for.
    pub fn design(&self) -> Option<Design> {
        each!(self, filter => filter.design())
    }

    /// How often something was inserted; `None` after a union, when nobody knows.
    pub fn inserted(&self) -> Option<u64> {
        each!(self, filter => filter.inserted())
    }

    /// The false-positive rate the theory predicts after `n` distinct keys.
    pub fn predicted_rate(&self, n: u64) -> Result<f64> {
        each!(self, filter => filter.predicted_rate(n))
    }

    pub(crate) fn set_level(&mut self, level: Level) {
        each!(self, filter => filter.set_level(level));
    }

    /// Tells the time to a filter that forgets by it, see [`Aging::advance`]; to others it makes no difference.
    pub fn advance(&mut self, now: Timestamp) -> Result<()> {
        match self {
            AnyFilter::Aging(filter) if matches!(filter.window(), Window::Time(_)) => filter.advance(now),
            _ => Ok(()),
        }
    }

    pub(crate) fn check_contents(&self) -> Result<(), FormatError> {
        each!(self, filter => filter.check_contents())
    }

    fn kinds_differ(&self, other: &AnyFilter) -> Mismatch {
        Mismatch::kinds(self.kind(), other.kind())
    }
}

impl Filter for AnyFilter {
    fn kind(&self) -> Kind {
        each!(self, filter => filter.kind())
    }

    fn hasher(&self) -> &Hasher {
        each!(self, filter => filter.hasher())
    }

    fn contains_digest(&self, digest: Digest) -> bool {
        each!(self, filter => filter.contains_digest(digest))
    }

    fn contains_tile(&self, tile: &[Digest]) -> u64 {
        each!(self, filter => filter.contains_tile(tile))
    }

    fn stats(&self) -> Stats {
        each!(self, filter => filter.stats())
    }

    fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        each!(self, filter => filter.contains_batch(keys))
    }
}

impl Insert for AnyFilter {
    fn insert_digest(&mut self, digest: Digest) -> Result<bool> {
        each!(self, filter => filter.insert_digest(digest))
    }

    fn insert_tile(&mut self, tile: &[Digest]) -> Result<()> {
        each!(self, filter => filter.insert_tile(tile))
    }

    fn insert_tile_new(&mut self, tile: &[Digest]) -> Result<u64> {
        each!(self, filter => filter.insert_tile_new(tile))
    }

    fn insert_batch<B: Batch + ?Sized>(&mut self, keys: &B) -> Result<()> {
        each!(self, filter => filter.insert_batch(keys))
    }
}

impl Remove for AnyFilter {
    /// Refused by the kinds that cannot; see [`Kind::can`].
    fn remove_digest(&mut self, digest: Digest) -> Result<Removed> {
        each!(self, filter => filter.remover()?.remove_digest(digest))
    }
}

impl Algebra for AnyFilter {
    fn mismatch(&self, other: &AnyFilter) -> Option<Mismatch> {
        both!(self, other, a, b => a.mismatch(b), else Some(self.kinds_differ(other)))
    }

    fn union(&mut self, other: &AnyFilter) -> Result<()> {
        both!(&mut *self, other, a, b => a.union(b), else Err(Error::Mismatch(self.kinds_differ(other))))
    }

    fn intersect(&mut self, other: &AnyFilter) -> Result<()> {
        both!(&mut *self, other, a, b => a.intersect(b), else Err(Error::Mismatch(self.kinds_differ(other))))
    }

    fn overlap(&self, other: &AnyFilter) -> Result<Option<Overlap>> {
        both!(self, other, a, b => a.overlap(b), else Err(Error::Mismatch(self.kinds_differ(other))))
    }
}

impl Storable for AnyFilter {
    fn encoder(&self, options: &Options) -> Result<Encoder<'_>> {
        each!(self, filter => filter.encoder(options))
    }
}

/// Whatever a file can hold.
#[derive(Debug)]
#[non_exhaustive]
pub enum Stored {
    /// A set that takes digests.
    Set(AnyFilter),
    /// A set that hashes keys by a family of the literature.
    Literature(Literature),
}

impl Stored {
    /// What kind of filter this is.
    pub fn kind(&self) -> Kind {
        match self {
            Stored::Set(filter) => filter.kind(),
            Stored::Literature(_) => Kind::Literature,
        }
    }

    /// The identity of the hash; `None` for a family of the literature.
    pub fn hash_id(&self) -> Option<HashId> {
        match self {
            Stored::Set(filter) => Some(filter.hasher().id()),
            Stored::Literature(_) => None,
        }
    }

    /// Whether `key` may be a member.
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        match self {
            Stored::Set(filter) => filter.contains(key),
            Stored::Literature(filter) => filter.contains(key),
        }
    }

    /// Asks for many keys; the fast way.
    pub fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        match self {
            Stored::Set(filter) => filter.contains_batch(keys),
            Stored::Literature(filter) => filter.contains_batch(keys),
        }
    }

    /// Inserts `key`; `true` when it was certainly not there before.
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool> {
        match self {
            Stored::Set(filter) => filter.insert(key),
            Stored::Literature(filter) => filter.insert(key),
        }
    }

    /// Inserts many keys; the fast way.
    pub fn insert_batch<B: Batch + ?Sized>(&mut self, keys: &B) -> Result<()> {
        match self {
            Stored::Set(filter) => filter.insert_batch(keys),
            Stored::Literature(filter) => filter.insert_batch(keys),
        }
    }

    /// How full the filter is and what that means.
    pub fn stats(&self) -> Stats {
        match self {
            Stored::Set(filter) => filter.stats(),
            Stored::Literature(filter) => filter.stats(),
        }
    }

    /// The memory, section by section.
    pub fn sections(&self) -> Vec<&Words> {
        match self {
            Stored::Set(filter) => filter.sections(),
            Stored::Literature(filter) => vec![&filter.words],
        }
    }

    /// What the filter was planned for.
    pub fn design(&self) -> Option<Design> {
        match self {
            Stored::Set(filter) => filter.design(),
            Stored::Literature(filter) => filter.design(),
        }
    }

    /// How often something was inserted; `None` after a union, when nobody knows.
    pub fn inserted(&self) -> Option<u64> {
        match self {
            Stored::Set(filter) => filter.inserted(),
            Stored::Literature(filter) => filter.inserted(),
        }
    }

    pub(crate) fn check_contents(&self) -> Result<(), FormatError> {
        match self {
            Stored::Set(filter) => filter.check_contents(),
            Stored::Literature(filter) => check_tail(&filter.words, filter.scheme().m()),
        }
    }

    /// A copy in memory of its own, which can be changed whatever this one is.
    pub fn try_clone_owned(&self) -> Result<Stored> {
        Ok(match self {
            Stored::Set(filter) => Stored::Set(filter.try_clone_owned()?),
            Stored::Literature(filter) => Stored::Literature(filter.try_clone_owned()?),
        })
    }

    /// An empty filter of the same shape, hash and design.
    pub fn try_clone_empty(&self) -> Result<Stored> {
        Ok(match self {
            Stored::Set(filter) => Stored::Set(filter.try_clone_empty()?),
            Stored::Literature(filter) => Stored::Literature(filter.try_clone_empty()?),
        })
    }

    /// Tells the time to a filter that forgets by it; see [`AnyFilter::advance`].
    pub fn advance(&mut self, now: Timestamp) -> Result<()> {
        match self {
            Stored::Set(filter) => filter.advance(now),
            Stored::Literature(_) => Ok(()),
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) -> Result<()> {
        match self {
            Stored::Set(filter) => filter.clear(),
            Stored::Literature(filter) => filter.clear(),
        }
    }

    /// The first thing that keeps the two from being combined, if any.
    pub fn mismatch(&self, other: &Stored) -> Option<Mismatch> {
        match (self, other) {
            (Stored::Set(a), Stored::Set(b)) => a.mismatch(b),
            (Stored::Literature(a), Stored::Literature(b)) => a.mismatch(b),
            _ => Some(Mismatch::kinds(self.kind(), other.kind())),
        }
    }

    /// Becomes the filter of both sets.
    pub fn union(&mut self, other: &Stored) -> Result<()> {
        match (&mut *self, other) {
            (Stored::Set(a), Stored::Set(b)) => a.union(b),
            (Stored::Literature(a), Stored::Literature(b)) => a.union(b),
            _ => Err(self.kinds_differ(other)),
        }
    }

    /// Becomes a filter of the keys that are in both sets; see [`Algebra::intersect`].
    pub fn intersect(&mut self, other: &Stored) -> Result<()> {
        match (&mut *self, other) {
            (Stored::Set(a), Stored::Set(b)) => a.intersect(b),
            (Stored::Literature(a), Stored::Literature(b)) => a.intersect(b),
            _ => Err(self.kinds_differ(other)),
        }
    }

    /// How many keys the two sets have in common; see [`Algebra::overlap`].
    pub fn overlap(&self, other: &Stored) -> Result<Option<Overlap>> {
        match (self, other) {
            (Stored::Set(a), Stored::Set(b)) => a.overlap(b),
            (Stored::Literature(a), Stored::Literature(b)) => a.overlap(b),
            _ => Err(self.kinds_differ(other)),
        }
    }

    fn kinds_differ(&self, other: &Stored) -> Error {
        Error::Mismatch(Mismatch::kinds(self.kind(), other.kind()))
    }
}

impl From<AnyFilter> for Stored {
    fn from(filter: AnyFilter) -> Stored {
        Stored::Set(filter)
    }
}

impl TryFrom<Stored> for AnyFilter {
    type Error = Error;

    /// The filter, if it takes digests.
    fn try_from(filter: Stored) -> Result<AnyFilter> {
        match filter {
            Stored::Set(filter) => Ok(filter),
            other => Err(Error::parameter("kind", other.kind(), "a kind that takes digests")),
        }
    }
}

impl From<Literature> for Stored {
    fn from(filter: Literature) -> Stored {
        Stored::Literature(filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(kind: Kind, capacity: u64) -> AnyFilter {
        AnyFilter::build(kind, &Spec::new(capacity, 0.01).unwrap()).unwrap()
    }

    #[test]
    fn plan_and_build_cannot_disagree() {
        for kind in [Kind::Standard, Kind::Partitioned, Kind::Blocked] {
            for capacity in [1, 1000, 100_000] {
                let spec = Spec::new(capacity, 0.001).unwrap();
                let (plan, filter) = (plan(kind, &spec).unwrap(), AnyFilter::build(kind, &spec).unwrap());
                let stats = filter.stats();
                assert_eq!((plan.kind, plan.stored_bits), (filter.kind(), stats.bits));
                assert_eq!((plan.hashes, plan.bytes), (stats.hashes, stats.bytes));
                assert_eq!((Some(plan.capacity), Some(plan.rate_asked)), (stats.capacity, stats.rate_target));
            }
        }
    }

    #[test]
    fn small_blocked_filters_are_standard_and_say_so() {
        assert_eq!(build(Kind::Blocked, 1000).kind(), Kind::Standard);
        assert_eq!(build(Kind::Blocked, 100_000).kind(), Kind::Blocked);
    }

    #[test]
    fn kinds_do_not_mix() {
        let (mut a, b) = (build(Kind::Standard, 1000), build(Kind::Partitioned, 1000));
        assert_eq!(a.mismatch(&b).unwrap().what, "kind");
        assert!(a.union(&b).is_err() && a.intersect(&b).is_err() && a.overlap(&b).is_err());
        let a = Stored::from(a);
        let family = crate::literature::Family::Murmur3;
        let mut literature = Stored::from(Literature::with_capacity(family, 1000, 0.01).unwrap());
        assert!(matches!(literature.union(&a), Err(Error::Mismatch(Mismatch { what: "kind", .. }))));
    }
}
