//! Bloom filters in Parquet files: which row groups can hold a value, and how good the filters are.
//!
//! A Parquet file may have a split-block Bloom filter for each column of each row group. This crate
//! reads them where they lie: [`ParquetFile`] reads the footer, and [`ParquetFile::find`] only the
//! blocks of the filters that a value would be in. Data pages are not read.
//!
//! ```no_run
//! use umbel_parquet::ParquetFile;
//!
//! let file = ParquetFile::open("orders.parquet")?;
//! let column = file.column("customer")?;
//! let value = column.values().value(b"1042")?;
//! for found in file.find(&column, &[value])? {
//!     println!("row group {} may have it", found.row_group);
//! }
//! # Ok::<(), umbel_parquet::Error>(())
//! ```
//!
//! [`ParquetFile::add_filter`] adds filters to a file that has none, and [`index`] asks thousands of files
//! at once. [`values`] reads texts as the values of a column, and [`health`] judges filters. No file makes
//! these functions panic, or take more memory than its own length justifies.
//!
//! The command `umbel` offers them as `umbel parquet`.

mod bounds;
mod catch;
mod codec;
mod error;
mod file;
mod filter;
mod footer;
pub mod health;
pub mod index;
mod pages;
mod query;
mod read;
mod rewrite;
pub mod values;

pub use error::{Error, Result};
pub use file::{Column, ParquetFile};
pub use filter::ChunkFilter;
pub use query::Found;
pub use rewrite::AddedFilter;
