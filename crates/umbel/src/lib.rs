//! Bloom filters and their relatives on one stem: key, digest, probes, bits.

mod algebra;
mod any;
mod arch;
mod bloom;
mod error;
mod filter;
pub mod hash;
mod key;
mod kind;
pub mod literature;
pub mod sizing;
mod spec;
mod stats;
pub mod words;

pub use algebra::{Algebra, Mismatch};
pub use any::{AnyFilter, Stored};
pub use arch::Level;
pub use bloom::{Blocked, Bloom, Concurrent, Design, Layout, Partitioned, Standard};
pub use error::{Error, Result};
pub use filter::{Answers, Filter, Insert, TILE};
pub use hash::{Digest, HashId, Hasher, KeyRing, Strength};
pub use key::{Arena, Batch, Key};
pub use kind::Kind;
pub use spec::{AnyLayout, Plan, Spec, plan};
pub use stats::Stats;
