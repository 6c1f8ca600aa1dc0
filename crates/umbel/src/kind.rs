//! The kinds of structures, with the names that files, the command line and people use.

use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A kind of filter.
///
/// ```
/// use umbel::Kind;
/// assert_eq!("blocked".parse::<Kind>()?, Kind::default());
/// assert_eq!(Kind::Standard.to_string(), "standard");
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// `k` bits anywhere: the least space of the Bloom filters, the most cache misses.
    Standard = 1,
    /// `k` slices, one bit in each.
    Partitioned = 2,
    /// All bits of a key in one cache line or a few: the default.
    #[default]
    Blocked = 3,
    /// A standard filter whose positions come from one of the literature's hash families.
    Literature = 4,
    /// A standard filter with counters instead of bits, so that keys can be removed.
    Counting = 5,
    /// A counting filter whose probes add different amounts, which distinguishes more keys.
    VariableIncrement = 6,
    /// A standard filter with one bit per region that records whether keys collide there. Keys with
    /// a bit in a region without collisions can be removed.
    Deletable = 7,
    /// A chain of filters that grows with its keys and keeps its rate.
    Scalable = 8,
    /// A ring of filters that forgets keys older than its window.
    Aging = 9,
    /// A standard filter with a table of the region patterns that keys have hit. Here to be
    /// measured, not to be used.
    Floom = 10,
    /// Fingerprints in buckets: keys can be removed, and it is smaller than a Bloom filter below
    /// 0.4 %, semi-sorted below 2.5 %.
    Cuckoo = 11,
    /// The exact multiset of fingerprints: supports removal, merging and resizing without the keys.
    Quotient = 12,
    /// A static set of fingerprints: built from all its keys at once, and the smallest kind.
    Fuse = 13,
    /// A static map from keys to values.
    Bloomier = 14,
    /// A map whose values can be changed; its keys cannot.
    BloomierMutable = 15,
    /// A multiset that estimates how often a key was recorded, up to about a hundred times.
    SpaceCode = 16,
    /// A multiset for keys that are recorded up to millions of times: several space-code filters,
    /// each with a smaller sample.
    MultiResolution = 17,
    /// A sketch that estimates the number of distinct keys: HyperLogLog.
    Distinct = 18,
    /// A sketch that estimates how often each key was counted, never too low.
    CountMin = 19,
    /// A sketch of the most frequent keys: HeavyKeeper.
    TopK = 20,
    /// A sketch of every key above a share of the total: Misra and Gries.
    Frequent = 21,
}

/// The category of a structure, which determines the queries it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Category {
    /// Answers whether a key is a member; see [`Filter`](crate::Filter).
    Set,
    /// Answers which value a key has; see [`Map`](crate::Map).
    Map,
    /// Answers how often a key was recorded; see [`Count`](crate::Count).
    Multiset,
    /// Summarizes many keys; see [`sketch`](crate::sketch).
    Sketch,
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Category::Set => "set",
            Category::Map => "map",
            Category::Multiset => "multiset",
            Category::Sketch => "sketch",
        })
    }
}

/// The operations that a kind supports beyond lookups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// The structure is built from all its keys at once, and none can be added later.
    pub fixed: bool,
    /// Keys can be removed; see [`Remove`](crate::Remove).
    pub remove: bool,
    /// The structure grows beyond its capacity and keeps its rate.
    pub grow: bool,
    /// The structure forgets old keys by itself.
    pub forget: bool,
    /// Two structures can be united.
    pub union: bool,
    /// Two structures can be intersected.
    pub intersect: bool,
    /// The structure can be folded in half.
    pub fold: bool,
    /// Every insertion takes room, even of a key that is already there.
    pub multiset: bool,
    /// Parts that were filled separately can be joined; see
    /// [`BloomFilter::absorb`](crate::BloomFilter::absorb).
    pub absorb: bool,
    /// Several threads can fill the structure at once; see [`Concurrent`](crate::Concurrent).
    pub share: bool,
}

impl Capabilities {
    /// No capabilities.
    pub(crate) const NOTHING: Capabilities = Capabilities {
        fixed: false,
        remove: false,
        grow: false,
        forget: false,
        union: false,
        intersect: false,
        fold: false,
        multiset: false,
        absorb: false,
        share: false,
    };
}

/// The parameters that a structure was planned for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Design {
    /// The number of keys.
    pub capacity: u64,
    /// The false-positive rate at capacity.
    pub rate: f64,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: &[Kind] = &[
        Kind::Standard,
        Kind::Partitioned,
        Kind::Blocked,
        Kind::Literature,
        Kind::Counting,
        Kind::VariableIncrement,
        Kind::Deletable,
        Kind::Scalable,
        Kind::Aging,
        Kind::Floom,
        Kind::Cuckoo,
        Kind::Quotient,
        Kind::Fuse,
        Kind::Bloomier,
        Kind::BloomierMutable,
        Kind::SpaceCode,
        Kind::MultiResolution,
        Kind::Distinct,
        Kind::CountMin,
        Kind::TopK,
        Kind::Frequent,
    ];

    /// Returns the category of this kind, which determines the queries it answers.
    pub const fn category(self) -> Category {
        match self {
            Kind::Bloomier | Kind::BloomierMutable => Category::Map,
            Kind::SpaceCode | Kind::MultiResolution => Category::Multiset,
            Kind::Distinct | Kind::CountMin | Kind::TopK | Kind::Frequent => Category::Sketch,
            _ => Category::Set,
        }
    }

    /// Returns the number of this kind in files. It never changes.
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// Returns the kind with this number.
    pub fn from_number(number: u16) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.number() == number)
    }

    /// Returns the indefinite article before the name in a sentence: "a" or "an".
    pub const fn article(self) -> &'static str {
        match self {
            Kind::Aging => "an",
            _ => "a",
        }
    }

    /// Describes the kind in a sentence, such as "a blocked filter" or "a count-min sketch".
    pub(crate) fn described(self) -> String {
        let noun = if self.category() == Category::Sketch { "sketch" } else { "filter" };
        format!("{} {self} {noun}", self.article())
    }

    const fn name(self) -> &'static str {
        match self {
            Kind::Standard => "standard",
            Kind::Partitioned => "partitioned",
            Kind::Blocked => "blocked",
            Kind::Literature => "literature",
            Kind::Counting => "counting",
            Kind::VariableIncrement => "variable-increment",
            Kind::Deletable => "deletable",
            Kind::Scalable => "scalable",
            Kind::Aging => "aging",
            Kind::Floom => "floom",
            Kind::Cuckoo => "cuckoo",
            Kind::Quotient => "quotient",
            Kind::Fuse => "fuse",
            Kind::Bloomier => "bloomier",
            Kind::BloomierMutable => "bloomier-mutable",
            Kind::SpaceCode => "space-code",
            Kind::MultiResolution => "multi-resolution",
            Kind::Distinct => "distinct",
            Kind::CountMin => "count-min",
            Kind::TopK => "top-k",
            Kind::Frequent => "frequent",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Kind> {
        let found = Kind::ALL.iter().copied().find(|kind| kind.name() == text);
        let names = || Kind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
        found.ok_or_else(|| Error::parameter("kind", text, format!("one of {}", names())))
    }
}
