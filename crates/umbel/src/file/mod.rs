//! Filters on disk: one versioned container for every kind, checked before it is believed.
//!
//! There are two ways to open a file. [`load`] reads and verifies everything and returns a filter in memory of its own.
//! [`map`] takes a time that does not depend on the file's size and answers at once, checking each part of the file
//! when it is first touched; [`Mapped::verify`] checks the rest and turns it into a filter over the mapped memory.
//!
//! [`save`] writes a file wholly or not at all: into a temporary file beside the target, flushed to the disk, then
//! renamed. `docs/format.md` in the repository describes the bytes.
//!
//! ```
//! use umbel::hash::KeyRing;
//! use umbel::{Blocked, Bloom, file};
//! let directory = tempfile::tempdir()?;
//! let path = directory.path().join("fruit.umbel");
//! let mut filter = Bloom::<Blocked>::with_capacity(100_000, 0.01)?;
//! filter.insert("apple");
//! file::save(&path, &filter, &file::Options::default())?;
//!
//! let filter = file::load(&path, &KeyRing::new())?.filter;
//! assert!(filter.contains("apple"));
//!
//! let mapped = file::map(&path, &KeyRing::new())?;
//! assert!(mapped.contains("apple")?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod decode;
mod encode;
pub mod fields;
mod header;
mod image;
#[cfg(feature = "mmap")]
mod mapped;
#[cfg(feature = "files")]
mod part;
mod read_only;

pub use crate::error::FormatError;
pub use decode::{Aligned, Info, Loaded, from_bytes, from_static, inspect, inspect_start, load, read};
pub(crate) use encode::{Encoder, expect_kind};
pub use encode::{Storable, size, to_bytes, write};
#[cfg(feature = "files")]
pub use encode::{save, save_bytes, save_with};
pub use header::MAGIC;
pub use image::Image;
#[cfg(all(feature = "files", feature = "mmap"))]
pub use mapped::set_meta;
#[cfg(feature = "mmap")]
pub use mapped::{Examined, Mapped, examine, map};
pub use read_only::ReadOnly;

use std::collections::BTreeMap;

/// Free-form names and values that travel with a filter.
pub type Meta = BTreeMap<String, String>;

/// What goes into a file beside the filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Metadata.
    pub meta: Meta,
    /// Whether the secret of a `keyed` hash is written into the file. Whoever has the file can then build false
    /// positives; without it the file can only be used with the secret. A `sealed` secret is never written.
    pub embed_key: bool,
    /// Whether [`save`] refuses to replace a file that is there already.
    pub create_new: bool,
}

/// How a file takes its place.
#[cfg(feature = "files")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placing {
    /// Whether it refuses to replace a file that is there already.
    pub create_new: bool,
    /// Whether a new file is for its owner alone; one that is replaced passes on its permissions.
    pub private: bool,
    /// Whether it is locked before it has its name, so that nobody else can be the first to lock it.
    pub locked: bool,
}
