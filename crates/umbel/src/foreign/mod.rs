//! Filters of other programs: Guava, Spark, DCSO's `bloom`, RedisBloom, Parquet and Apache
//! DataSketches.
//!
//! | format | name | hash | recognised by its bytes |
//! | --- | --- | --- | --- |
//! | Apache DataSketches | `datasketches` | XXH64 | yes |
//! | DCSO `bloom`, version 1, plain or gzip | `dcso` | FNV-1 | yes |
//! | Guava `BloomFilter.writeTo`, both strategies | `guava` | Murmur3-128 | no |
//! | RedisBloom `BF.SCANDUMP` | `redisbloom` | `MurmurHash64A` | no |
//! | Parquet split blocks, with or without header | `sbbf` | XXH64 | no |
//! | Spark `BloomFilterImpl`, version 1 | `spark` | Murmur3-32 | yes |
//! | Spark `BloomFilterImplV2` | `spark2` | Murmur3-32 | yes |
//!
//! A [`ForeignFilter`] reads, answers, fills and writes all of them. The formats are described byte
//! by byte, with their sizes and probe rules, in `docs/foreign-formats.md` of the repository.
//!
//! ```
//! use umbel::foreign::{ForeignFilter, Format, Given, Options};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("hosts.bloom");
//!
//! let mut hosts = ForeignFilter::with_capacity(Format::Dcso, 10_000, 0.001, &Options::default())?;
//! hosts.insert_batch(&["evil.example", "worse.example"])?;
//! hosts.save(&path, Default::default())?;
//!
//! // DCSO's files are recognised. For others, name the format.
//! let hosts = ForeignFilter::map(&path, Given::default())?;
//! assert!(hosts.contains(b"evil.example")?);
//! assert_eq!(hosts.facts().keys, Some(2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! None of these formats has a checksum. What can be checked is checked: lengths, counts and limits.
//! A damaged file that passes gives wrong answers, as it does in the program that wrote it.

mod bits;
mod datasketches;
mod dcso;
mod filter;
mod format;
mod funnel;
mod guava;
mod hash;
mod redis_cuckoo;
mod redisbloom;
mod rule;
pub mod sbbf;
mod scandump;
mod scattered;
mod sizing;
mod source;
mod spark;

pub use filter::{Facts, ForeignFilter, Given, Options, Probe};
pub use format::Format;
pub use funnel::Funnel;
pub use redis_cuckoo::RedisCuckoo;
pub use redisbloom::{Chain as RedisBloomChain, LinkFacts};
pub use scandump::Dump;
