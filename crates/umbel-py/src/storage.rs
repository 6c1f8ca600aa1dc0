//! [`Storage`]: the structure in a Python object, in memory or in a mapped file.

use umbel::any::Stored;
use umbel::file::Mapped;
use umbel::kind::Design;
use umbel::{Answers, AnyFilter, Batch, Digest, Error, Kind, Result};

/// A structure in memory, or one that is read where its file lies.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one per Python object, and the usual one is on the hot path"
)]
pub enum Storage {
    Owned(Stored),
    Mapped(Box<Mapped>),
}

impl Storage {
    pub fn kind(&self) -> Kind {
        match self {
            Storage::Owned(stored) => stored.kind(),
            Storage::Mapped(mapped) => mapped.kind(),
        }
    }

    /// Returns the number of keys and the rate it was planned for, and the number of insertions,
    /// without reading the rest of a mapped file.
    pub fn head(&self) -> (Option<Design>, Option<u64>) {
        match self {
            Storage::Owned(stored) => (stored.design(), stored.inserted()),
            Storage::Mapped(mapped) => {
                let info = mapped.info();
                (info.design, info.inserted)
            }
        }
    }

    pub fn is_read_only(&self) -> bool {
        matches!(self, Storage::Mapped(_))
    }

    /// Returns the structure to read all of it. Verifies a mapped file first, once.
    pub fn view(&self) -> Result<&Stored> {
        match self {
            Storage::Owned(stored) => Ok(stored),
            Storage::Mapped(mapped) => mapped.verified(),
        }
    }

    /// Returns the structure to change it.
    pub fn change(&mut self) -> Result<&mut Stored> {
        match self {
            Storage::Owned(stored) => Ok(stored),
            Storage::Mapped(mapped) => Err(read_only(mapped.kind())),
        }
    }

    /// Returns the set to change it.
    #[inline]
    pub fn change_set(&mut self) -> Result<&mut AnyFilter> {
        match self {
            Storage::Owned(Stored::Set(filter)) => Ok(filter),
            other => Err(other.no_set()),
        }
    }

    /// Returns the set to read all of it.
    pub fn set(&self) -> Result<&AnyFilter> {
        match self.view()? {
            Stored::Set(filter) => Ok(filter),
            _ => Err(self.no_set()),
        }
    }

    #[inline]
    pub fn contains_digest(&self, digest: Digest) -> Result<bool> {
        match self {
            Storage::Owned(Stored::Set(filter)) => Ok(filter.contains_digest(digest)),
            Storage::Mapped(mapped) => Ok(mapped.contains_tile(&[digest])? == 1),
            Storage::Owned(_) => Err(self.no_set()),
        }
    }

    pub fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Result<Answers> {
        match self {
            Storage::Owned(Stored::Set(filter)) => Ok(filter.contains_batch(keys)),
            Storage::Mapped(mapped) => mapped.contains_batch(keys),
            Storage::Owned(_) => Err(self.no_set()),
        }
    }

    #[cold]
    fn no_set(&self) -> Error {
        match self {
            Storage::Mapped(mapped) => read_only(mapped.kind()),
            Storage::Owned(stored) => Error::parameter("kind", stored.kind(), "a kind that holds a set"),
        }
    }
}

fn read_only(kind: Kind) -> Error {
    Error::Cannot {
        kind,
        what: "be changed",
        why: "it was opened for reading only: `umbel.load` makes a copy that can be changed",
    }
}
