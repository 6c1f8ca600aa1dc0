//! Filters on disk: one versioned container for every kind, verified before it is used.
//!
//! There are two ways to open a file. [`load`] reads and verifies everything and returns a filter
//! that owns its memory. [`map`] takes a time that does not depend on the file's size, and checks
//! each part of the file when it is first touched; [`Mapped::verify`] checks the rest and returns a
//! filter over the mapped memory.
//!
//! [`save`] writes a file completely or not at all: it writes to a temporary file beside the
//! target, flushes it to disk and renames it. `docs/format.md` in the repository describes the
//! bytes.
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
#[cfg(all(feature = "files", feature = "mmap"))]
mod ranged;
mod read_only;

pub use crate::error::FormatError;
#[cfg(feature = "foreign")]
pub(crate) use decode::open;
pub use decode::{Aligned, Info, Loaded, from_bytes, from_static, inspect, inspect_start, load, read};
#[cfg(all(feature = "files", feature = "mmap"))]
pub(crate) use encode::embeddable;
pub(crate) use encode::{Encoder, expect_kind};
pub use encode::{Storable, size, to_bytes, write};
#[cfg(feature = "files")]
pub use encode::{save, save_bytes, save_with};
#[cfg(all(feature = "files", feature = "mmap"))]
pub(crate) use header::chunk_log2;
pub use header::{MAGIC, MAX_HEADER_BYTES};
pub use image::Image;
#[cfg(all(feature = "files", feature = "mmap"))]
pub use mapped::set_meta;
#[cfg(feature = "mmap")]
pub use mapped::{Examined, Mapped, examine, map};
#[cfg(all(feature = "files", feature = "mmap"))]
pub(crate) use ranged::RangedFile;
pub use read_only::ReadOnly;

use std::collections::BTreeMap;

/// Free-form names and values that are stored with a filter.
pub type Meta = BTreeMap<String, String>;

/// Options for writing a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Metadata.
    pub meta: Meta,
    /// Whether the secret of a `keyed` hash is written into the file. Anyone with the file can then
    /// construct false positives; without the secret in it, the file can be used only by those who
    /// have the secret. A `sealed` secret is never written.
    pub embed_key: bool,
    /// Whether [`save`] refuses to replace an existing file.
    pub create_new: bool,
}

/// How a new file is put in place.
#[cfg(feature = "files")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placing {
    /// Whether to refuse to replace an existing file.
    pub create_new: bool,
    /// Whether a new file is readable by its owner alone. A file that replaces another takes over
    /// its permissions.
    pub private: bool,
    /// Whether the file is locked before it gets its name, so that no other process can lock it
    /// first.
    pub locked: bool,
}
