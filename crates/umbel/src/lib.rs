//! Approximate sets, maps and multisets in a few bits per key, and sketches of streams: Bloom
//! filters and their relatives.
//!
//! A Bloom filter answers "certainly not" or "probably yes". You choose in advance how often a
//! "yes" may be wrong: the *rate*.
//!
//! ```
//! use umbel::BloomFilter;
//!
//! // One million keys, one false "yes" in a hundred: 1.2 MiB.
//! let mut seen = BloomFilter::with_capacity(1_000_000, 0.01)?;
//! let new: bool = seen.insert("apple");
//! assert!(new && seen.contains("apple"));
//! assert!(!seen.contains("pear"), "certainly not");
//!
//! // Many keys at once are several times faster: the next keys are fetched while these are tested.
//! let keys: Vec<u64> = (0..1000).collect();
//! seen.insert_batch(&keys);
//! assert_eq!(seen.contains_batch(&keys).count(), 1000);
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! Every kind has these operations as inherent methods, so a program imports the kinds it uses and
//! nothing else. Operations that cannot fail return no `Result`: [`BloomFilter::insert`] returns a
//! `bool`, while [`Cuckoo::insert`] returns an error if the filter is full.
//!
//! # Keys
//!
//! Text, bytes, characters, integers, Booleans, network addresses and paths are keys, and so are
//! tuples, arrays and options of keys. The table in [`key`] lists the bytes that are hashed for
//! each type. They are the same on every platform and in every language.
//!
//! **The integer 42 and the text "42" are different keys**, while `42u8`, `42i32` and `42usize` are
//! one. A filter that the command line built from lines of text holds the text "42".
//!
//! [`Hashable`] makes a key of any value that implements `Hash`, for use within one process.
//!
//! ```
//! use std::net::Ipv4Addr;
//! use umbel::{BloomFilter, Hashable};
//!
//! #[derive(Hash)]
//! struct Point { x: i32, y: i32 }
//!
//! let mut seen = BloomFilter::with_capacity(1000, 0.001)?;
//! seen.insert(&(Ipv4Addr::LOCALHOST, "GET", Some(200)));
//! seen.insert(&Hashable(&Point { x: 1, y: 2 }));
//! assert!(seen.contains(&Hashable(&Point { x: 1, y: 2 })));
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # Which kind
//!
//! | kind | bits per key at 1 % | a lookup touches | use it |
//! | --- | --- | --- | --- |
//! | [`BloomFilter`] | 10.1 | one cache line (two to four below about 0.05 %) | by default |
//! | [`Bloom<Standard>`](Standard) | 9.6 | up to k lines, 2 on average for a non-member | when space matters most |
//! | [`Bloom<Partitioned>`](Partitioned) | 10.1 | like standard | when every key must set exactly k bits |
//! | [`Fuse`] | 7.9 | three lines | when all keys are known at once and none will be added: the smallest |
//! | [`Cuckoo`] | 10.6 | two to four lines | to remove keys that were inserted once each |
//! | [`Quotient`] | 12.5 | two or three lines | to remove and count keys, to merge, and to resize without the keys |
//! | [`Counting`] | 38.3 | like standard | to remove keys, and to send changed bits to other processes |
//! | [`VariableIncrement`] | 28.8 | like standard | to remove keys in less memory than counting |
//! | [`Deletable`] | 12.0 | like standard | when most keys, but not all, must be removable |
//! | [`Scalable`] | 14.6, grown 17 to 22 | a line for each doubling | when the number of keys is unknown |
//! | [`Aging`] | 15.1 | a line for each of eight generations | when keys expire, after a time or after a number of other keys |
//! | [`Floom`](floom::Floom) | 9.6 | like standard, and one line | never: it is here only to be measured |
//! | [`Literature`](literature::Literature) | 9.6 | like standard | to reproduce published measurements |
//!
//! [`AnyFilter`] is an enum of the set kinds, for programs that choose one at run time from a
//! [`Spec`]. [`spec::plan`] computes the size and rate of a filter without building it.
//! [`Concurrent`] shares a filter between threads.
//!
//! # More than yes or no
//!
//! | kind | answers | memory |
//! | --- | --- | --- |
//! | [`Bloomier`] | the value of a key; a key that is not in the map has no value, except at the rate | 1.13 times the bits of a value and log2(1 / rate) |
//! | [`BloomierMutable`] | the same, and values can be changed | 1.13 times the bits of a value and log2(3 / rate) |
//! | [`SpaceCode`] | how often a key was recorded, up to about a hundred times | 11 bits for each recording |
//! | [`MultiResolution`] | the same, up to millions of times | 15 bits for each recording, fewer if there are few distinct keys |
//!
//! ```
//! use umbel::{Bloomier, MultiResolution};
//!
//! let sections = Bloomier::new(&["bash", "vim", "gcc"], &[0, 1, 2], 0.01)?;
//! assert_eq!(sections.get("vim"), Some(1));
//!
//! let mut visits = MultiResolution::with_capacity(10_000, 0.005)?;
//! (0..500).for_each(|_| visits.insert("/index.html"));
//! assert!((300.0..800.0).contains(&visits.count("/index.html").value));
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # Sketches
//!
//! A sketch summarizes a whole stream of keys in memory that does not grow with the stream.
//! [`sketch::Distinct`] counts distinct keys, [`sketch::CountMin`] counts each key and never too
//! low, [`sketch::TopK`] lists the most frequent keys, and [`sketch::Frequent`] finds every key
//! above a given share of the total.
//!
//! ```
//! use umbel::sketch::Distinct;
//!
//! let mut visitors = Distinct::with_error(0.01)?;
//! visitors.insert_batch(&["alice", "bob", "alice"]);
//! assert_eq!(visitors.count().to_string(), "2.00 ± 0.01");
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # Files
//!
//! `save` writes a file completely or not at all. `load` reads and verifies the whole file. `map`
//! opens a file for lookups only, in a time that does not depend on its size. All kinds share one
//! format, which the command line reads and writes, too. See the module [`mod@file`] for options
//! and metadata. A filter that is too large to be built in one piece is a folder of such files; see
//! the module `sharded`.
//!
//! # How it works
//!
//! 1. A [`Key`] has documented bytes, the same on every platform.
//! 2. A [`Hasher`] turns them into a 64-bit [`Digest`], exactly once; every filter takes digests.
//! 3. A digest starts a [probe stream](hash::Stream), from which each kind takes its positions.
//! 4. All formulas are pure functions in [`sizing`], and one [`Spec`] feeds both plan and build.
//!
//! Every failure is an [`Error`]; the library does not panic on bad input. The traits [`Filter`],
//! [`Insert`], [`Remove`], [`Map`] and [`Count`] are for functions that are generic over the kind.
//!
//! # Features
//!
//! | feature | default | adds |
//! | --- | --- | --- |
//! | `files` | yes | `save`, which writes a file completely or not at all |
//! | `mmap` | yes | `map`, and huge pages for large filters |
//! | `secrets` | yes | [`Hasher::keyed`] (SipHash) and [`Hasher::sealed`] (BLAKE3) |
//! | `literature` | yes | the hash families MD5 and SHA-1 of [`literature`] |
//! | `foreign` | no | [`foreign`]: the filters of Guava, Spark, DCSO, RedisBloom, Parquet and DataSketches |
//! | `serde` | no | `Serialize` and `Deserialize`, as the checked bytes of a file |
//!
//! Without default features, filters still work in memory, and `to_bytes`, `from_bytes` and `load`
//! are available.

#![warn(clippy::doc_markdown, clippy::missing_errors_doc, clippy::missing_panics_doc)]

pub mod aging;
mod algebra;
pub mod any;
mod arch;
pub mod bloom;
pub mod bloomier;
mod builder;
mod chain;
mod count;
pub mod counting;
pub mod cuckoo;
pub mod deletable;
pub mod error;
pub mod file;
mod filter;
pub mod floom;
#[cfg(feature = "foreign")]
pub mod foreign;
pub mod fuse;
pub mod hash;
pub mod key;
pub mod kind;
mod lines;
pub mod literature;
mod map;
#[doc(hidden)]
pub mod memory;
mod methods;
#[cfg(all(feature = "files", feature = "mmap"))]
#[doc(hidden)]
pub mod pieces;
pub mod quotient;
mod retrieval;
pub mod scalable;
#[cfg(feature = "serde")]
mod serialize;
mod set;
#[cfg(all(feature = "files", feature = "mmap"))]
pub mod sharded;
pub mod sizing;
pub mod sketch;
pub mod space_code;
pub mod spec;
mod stats;
mod structure;
mod tile;
mod timestamp;
pub mod variable_increment;

pub use aging::Aging;
pub use any::{AnyCount, AnyFilter, AnyMap};
pub use bloom::{Blocked, Bloom, BloomFilter, Concurrent, Partitioned, Standard};
pub use bloomier::{Bloomier, BloomierMutable};
pub use builder::Builder;
pub use count::Count;
pub use counting::Counting;
pub use cuckoo::Cuckoo;
pub use deletable::Deletable;
pub use error::{Error, Result};
pub use filter::{Filter, Insert, Remove, Removed};
pub use fuse::Fuse;
pub use hash::{Digest, Hasher};
pub use key::{Arena, Batch, Hashable, Key};
pub use kind::Kind;
pub use map::Map;
pub use quotient::Quotient;
pub use scalable::Scalable;
#[cfg(all(feature = "files", feature = "mmap"))]
pub use sharded::Sharded;
pub use space_code::{MultiResolution, SpaceCode};
pub use spec::{Plan, Spec};
pub use stats::Stats;
pub use tile::Answers;
pub use timestamp::Timestamp;
pub use variable_increment::VariableIncrement;

// The internal vocabulary of the kinds, shared by the modules of this crate; not public API.
use algebra::{Algebra, Mismatch};
use any::Stored;
use arch::Level;
use bloom::Layout;
use bloomier::CodeBook;
use hash::{HashId, KeyRing, Strength};
use key::Hashed;
use kind::{Capabilities, Category, Design};
use retrieval::Construction;
use set::Set;
use space_code::Multiplicity;
use spec::plan;
use structure::{Probe, Structure};
use tile::TILE;

/// The machinery under the kinds and small helpers that the crates of this workspace share. Not
/// part of the public API: anything here may change without notice.
#[doc(hidden)]
pub mod internals {
    #[cfg(feature = "files")]
    pub mod file_lock;
    pub mod hex;
    #[cfg(all(unix, feature = "files", feature = "secrets"))]
    pub mod key_file;
    pub mod parallel;
    pub mod regular_file;
    pub mod secret;
    #[cfg(all(unix, feature = "files"))]
    pub mod secret_file;
    pub mod sync;
    pub mod text;

    pub use crate::algebra::Algebra;
    pub use crate::arch::Level;
    pub use crate::bloom::Layout;
    pub use crate::error::write_causes;
    pub use crate::set::Set;
    pub use crate::structure::{Probe, Structure};
    pub use crate::tile::TILE;
}

/// Makes property tests draw the same cases in every run.
#[cfg(test)]
fn fixed_cases() -> proptest::prelude::ProptestConfig {
    let rng_seed = proptest::test_runner::RngSeed::Fixed(1);
    proptest::prelude::ProptestConfig { rng_seed, failure_persistence: None, ..Default::default() }
}

/// Compiles and runs the examples in the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateReadme;

/// Compiles and runs the examples in the project's README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The code of the guide to the library, kept true.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/rust.md")]
struct RustGuide;
