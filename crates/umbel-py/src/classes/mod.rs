//! The Python classes.
//!
//! ```text
//! Structure                     files, bytes, pickles, copies, statistics
//!   Filter                      sets: add, in, update, contains_many, set operators
//!     Bloom  Cuckoo  Counting  Quotient  Scalable  Aging  Fuse
//!   Map  Count  Distinct  CountMin  TopK  Frequent
//! Foreign                       filters of other libraries, which have none of this in common
//! Sharded                       filters in folders of files, for lookups only
//! _Layout  _Collector  _Merge   one filter built by many processes, for umbel.spark
//! ```
//!
//! `Structure` holds all data; the classes below add methods and constructors. The classes that
//! programs see are derived from these once more, see [`leaf`].

mod filter;
mod foreign;
mod kinds;
mod leaf;
mod lookup;
mod map;
mod pieces;
mod sharded;
mod sketches;
mod structure;

pub use filter::Filter;
use foreign::Foreign;
pub use foreign::restore_foreign;
pub use kinds::plan;
use sharded::Sharded;
pub use sharded::restore_sharded;
pub use structure::{Structure, load, open, path_of, restore};

use pyo3::prelude::*;

/// Adds all classes to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Structure>()?;
    module.add_class::<Filter>()?;
    module.add_class::<Foreign>()?;
    module.add_class::<Sharded>()?;
    leaf::add_to(module)?;
    pieces::add_to(module)
}
