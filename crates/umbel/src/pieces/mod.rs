//! Filters in pieces: one filter built by tasks that share neither memory nor files, such as the
//! tasks of Spark or of a batch system.
//!
//! ```text
//!   keys of a task ---> Collector ---> pieces ---+
//!                                                |    all pieces of one part
//!   keys of a task ---> Collector ---> pieces ---+--> Merge ---> bits of a range --+--> Assembly
//!                                                |                                 |
//!   keys of a task ---> Collector ---> pieces ---+--> Merge ---> bits of a range --+--> file
//!                                                |
//!                                                +--> Merge ---> file of a shard
//! ```
//!
//! A [`PiecePlan`] cuts the filter into *parts*: ranges of its bits, or shards. A [`Collector`] takes
//! the keys of one task and returns *pieces*, each of which belongs to one part. A [`Merge`] takes
//! all pieces of one part in any order, and has the bits of the range or the filter of the shard.
//! [`Assembly`] makes a filter in memory of all ranges; or the merges write them to one file, between
//! [`PiecePlan::create_file`] and [`PiecePlan::finish_file`]. The bytes of the file are those of a
//! filter that is built in one piece.
//!
//! No piece is longer than [`MAX_PIECE_BYTES`], a merge holds no more than its part of the filter, and
//! a collector at most 32 MiB of keys. The pieces of a task have 8 bytes for each key and line of a
//! blocked filter, and 4 bytes for each key and bit of another one; or the bits of the filter, if they
//! are less and fit into the same memory. A key that follows itself closely is listed once.
//!
//! Only kinds that are arrays of bits can be built in pieces, for the reason that
//! [`sharded`](crate::sharded) gives. A piece that arrives twice sets the same bits again, but its
//! insertions count twice: the engine must pass on the pieces of one attempt of each task, as all
//! engines do.
//!
//! Pieces live within one job. Their bytes are not a format for files, and may change with any
//! version.
//!
//! ```
//! use umbel::pieces::{Assembly, Collector, Merge, PiecePlan};
//! use umbel::{BloomFilter, Kind, Spec, file};
//! let spec = Spec::new(100_000, 0.01)?;
//! let plan = PiecePlan::new(Kind::Blocked, &spec, None, false)?;
//!
//! // Two tasks.
//! let mut pieces = Vec::new();
//! for keys in [["apple", "pear"], ["plum", "apple"]] {
//!     let mut task = Collector::new(&plan);
//!     task.add(&keys)?;
//!     pieces.extend(task.drain(true));
//! }
//!
//! // One merge for each range, anywhere.
//! let mut assembly = Assembly::new(&plan)?;
//! let mut inserted = 0;
//! for range in 0..plan.parts() {
//!     let mut merge = Merge::new(&plan, range)?;
//!     for (_, piece) in pieces.iter().filter(|(part, _)| *part == range) {
//!         merge.add(piece)?;
//!     }
//!     inserted += merge.inserted();
//!     assembly.set_range(range, &merge.bits()?)?;
//! }
//! let filter = assembly.finish(inserted);
//!
//! let mut whole = BloomFilter::build(&spec)?;
//! whole.insert_batch(&["apple", "pear", "plum", "apple"]);
//! let options = file::Options::default();
//! assert_eq!(file::to_bytes(&filter, &options)?, file::to_bytes(&whole, &options)?);
//! # Ok::<(), umbel::Error>(())
//! ```

mod assembly;
mod bits;
mod collector;
mod merge;
mod piece;
mod plan;
mod route;

pub use assembly::Assembly;
pub use collector::Collector;
pub use merge::Merge;
pub use piece::MAX_PIECE_BYTES;
pub use plan::PiecePlan;
