//! Bloom filters and their relatives on one stem: key, digest, probes, bits.
//!
//! A Bloom filter answers "certainly not" or "probably yes" about membership, in a few bits per key.
//!
//! ```
//! use umbel::{Blocked, Bloom, Filter, Insert};
//!
//! // One million keys, one false "yes" in a hundred: 1.2 MiB.
//! let mut filter = Bloom::<Blocked>::with_capacity(1_000_000, 0.01)?;
//! filter.insert("apple")?;
//! filter.insert(&42u64)?;
//! assert!(filter.contains("apple"));
//! assert!(!filter.contains("pear"), "certainly not");
//!
//! // Many keys at once are several times faster: the next keys are fetched while these are tested.
//! let keys: Vec<u64> = (0..1000).collect();
//! filter.insert_batch(&keys)?;
//! assert_eq!(filter.contains_batch(&keys).count(), 1000);
//!
//! let stats = filter.stats();
//! println!("about {} keys, false-positive rate now {:.2e}", stats.estimate, stats.rate_now);
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # Which kind
//!
//! | kind | bits per key at 1 % | a lookup touches | use it |
//! | --- | --- | --- | --- |
//! | [`Blocked`] | 10.1 | one cache line (two to four below about 0.05 %) | by default |
//! | [`Standard`] | 9.6 | up to k lines, 2 on average for a non-member | when space matters most, or the filter is small |
//! | [`Partitioned`] | 10.1 | like standard | when every key must set exactly k bits |
//! | [`Fuse`] | 7.9 | three lines | when all keys are known at once and none will be added: the smallest |
//! | [`Cuckoo`] | 10.6 | two to four lines | to remove keys that are there once each |
//! | [`Quotient`] | 12.5 | two or three lines | to remove and count keys, to merge, and to resize without the keys |
//! | [`Counting`] | 38.3 | like standard | to remove keys, and to send the bits that flip to others |
//! | [`VariableIncrement`] | 28.8 | like standard | to remove keys in less memory than counting |
//! | [`Deletable`] | 12.0 | like standard | when most keys, not all, must be removable |
//! | [`Scalable`] | 14.6, grown 17 to 22 | a line for each doubling | when nobody knows how many keys will come |
//! | [`Aging`] | 15.1 | a line for each of eight generations | when keys are to be forgotten, after a time or after others |
//! | [`Floom`] | 9.6 | like standard, and one line | never: it is here to be measured |
//! | [`Literature`](literature::Literature) | 9.6 | like standard | to reproduce what others have measured |
//!
//! [`AnyFilter`] is one enum over the kinds, [`plan()`] tells what a filter will be before it is built, and both start
//! from the same [`Spec`]; [`Set`] is what all of them are that can be filled. [`Remove`] takes keys out. [`Concurrent`]
//! shares a filter between threads. [`mod@file`] saves, loads and maps filters, and [`Algebra`] unites, intersects and
//! compares them.
//!
//! # More than yes or no
//!
//! | kind | answers | in |
//! | --- | --- | --- |
//! | [`Bloomier`] | the value of a key; of a stranger none, but for the rate | 1.13 times the bits of a value and log2(1 / rate) |
//! | [`BloomierMutable`] | the same, and values can be changed | 1.13 times the bits of a value and log2(3 / rate) |
//! | [`SpaceCode`] | how often a key was recorded, up to about a hundred times | 11 bits for each recording |
//! | [`MultiResolution`] | the same, up to millions of times | 15 bits for each recording, less for those of few keys |
//!
//! ```
//! use umbel::{Bloomier, Count, Map, MultiResolution};
//!
//! let sections = Bloomier::new(&["bash", "vim", "gcc"], &[0, 1, 2], 0.01)?;
//! assert_eq!(sections.get("vim"), Some(1));
//!
//! let mut visits = MultiResolution::with_capacity(10_000, 0.005)?;
//! (0..500).try_for_each(|_| visits.record("/index.html"))?;
//! assert!((300.0..800.0).contains(&visits.count("/index.html").value));
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! [`Map`], [`Update`] and [`Count`] are what they can do, [`AnyMap`] and [`AnyCount`] the enums over them. All of them, and
//! the sets, are a [`Structure`], which is what files hold.
//!
//! # The stem
//!
//! 1. A [`Key`] has documented bytes, the same on every platform.
//! 2. A [`Hasher`] turns them into a 64-bit [`Digest`], exactly once; every filter takes digests.
//! 3. A digest opens a [probe stream](hash::Stream), from which a [`Layout`] takes positions.
//! 4. The bits live in [`Words`](words::Words), owned, mapped or static.
//!
//! The mathematics is in [`sizing`], as pure functions. Everything that can go wrong is an [`Error`]; nothing panics on
//! input.

pub mod aging;
mod algebra;
mod any;
mod arch;
mod bloom;
pub mod bloomier;
mod chain;
mod count;
pub mod counting;
pub mod cuckoo;
pub mod deletable;
mod error;
pub mod file;
mod filter;
pub mod floom;
pub mod fuse;
pub mod hash;
mod key;
mod kind;
mod lines;
pub mod literature;
mod map;
pub mod quotient;
mod retrieval;
pub mod scalable;
mod set;
pub mod sizing;
pub mod space_code;
mod spec;
mod stats;
mod structure;
mod tile;
pub mod variable_increment;
pub mod words;

pub use aging::Aging;
pub use algebra::{Algebra, Mismatch};
pub use any::{AnyConcurrent, AnyCount, AnyFilter, AnyMap, Stored};
pub use arch::Level;
pub use bloom::{Blocked, Bloom, Concurrent, Layout, Partitioned, Standard};
pub use bloomier::{Bloomier, BloomierMutable, CodeBook};
pub use count::{Count, Multiplicity};
pub use counting::Counting;
pub use cuckoo::Cuckoo;
pub use deletable::Deletable;
pub use error::{Error, Result};
pub use filter::{Answers, Filter, Insert, Remove, Removed, TILE};
pub use floom::Floom;
pub use fuse::Fuse;
pub use hash::{Digest, HashId, Hasher, KeyRing, Strength};
pub use key::{Arena, Batch, Hashed, Key, Offset};
pub use kind::{Holds, Kind};
pub use lines::split_lines;
pub use map::{Map, Update};
pub use quotient::Quotient;
pub use retrieval::Construction;
pub use scalable::Scalable;
pub use set::Set;
pub use space_code::{MultiResolution, SpaceCode};
pub use spec::{Plan, Spec, Tuning, plan};
pub use stats::Stats;
pub use structure::{Can, Design, Probe, Structure};
pub use variable_increment::VariableIncrement;

/// Property tests draw the same cases in every run.
#[cfg(test)]
fn fixed_cases() -> proptest::prelude::ProptestConfig {
    let rng_seed = proptest::test_runner::RngSeed::Fixed(1);
    proptest::prelude::ProptestConfig { rng_seed, failure_persistence: None, ..Default::default() }
}

/// The README's code, kept true.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
