//! `UMBEL.*`: every kind of the library, with unions, intersections, similarity, estimates, and the
//! files of the command line.
//!
//! [`Any`] is the value of kinds that have no commands of their own. [`OpenFilter`] is a filter of
//! any type, for commands that accept all of them. The commands are in [`commands`], [`algebra`]
//! and [`files`].

pub mod algebra;
pub mod commands;
pub mod files;

use crate::bloom::{Bloom, BloomValue};
use crate::config;
use crate::cuckoo::{CuckooChain, CuckooValue};
use crate::error::{self, Error};
use crate::persist::{Entry, Persist};
use crate::server::memory::Charge;
use crate::server::{Context, Failure, Key, Result, Text, TypeHandle};
use std::ffi::CStr;
use umbel::any::Stored;
use umbel::file::Storable;
use umbel::hash::HashId;
use umbel::kind::Category;
use umbel::memory::{Mover, Words};
use umbel::{AnyFilter, Filter, Kind, Stats};

/// A structure of any kind under a key.
#[derive(Debug)]
pub struct Any {
    stored: Stored,
    /// The bytes of the items of a sketch.
    charge: Charge,
}

impl Any {
    /// Wraps a structure, if the limits allow its items.
    fn new(stored: Stored) -> umbel::Result<Any> {
        let mut charge = Charge::default();
        if stored.kind().category() == Category::Sketch {
            let bytes = (stored.stats().bytes as usize).saturating_sub(section_bytes(&stored));
            if !charge.set(bytes) {
                return Err(umbel::Error::OutOfMemory { bytes: bytes as u64 });
            }
        }
        Ok(Any { stored, charge })
    }

    /// Returns the structure.
    pub fn stored(&self) -> &Stored {
        &self.stored
    }

    /// Returns the structure itself.
    pub fn into_stored(self) -> Stored {
        self.stored
    }

    /// Returns the structure as a set, to be changed.
    ///
    /// # Errors
    ///
    /// If it is not a set.
    pub fn set(&mut self) -> Result<&mut AnyFilter> {
        let kind = self.stored.kind();
        match &mut self.stored {
            Stored::Set(filter) => Ok(filter),
            _ => Err(Failure::new(format!("{} {kind} is not a set", kind.article()))),
        }
    }
}

/// Returns the bytes of the memory that the allocator counts.
fn section_bytes(stored: &Stored) -> usize {
    stored.sections().iter().map(|words| size_of_val(words.lines())).sum()
}

static TYPE_HANDLE: TypeHandle = TypeHandle::new();

impl Persist for Any {
    const NAME: &'static CStr = c"umbel-any";

    const LOAD_COMMAND: &'static CStr = c"UMBEL.LOADCHUNK";

    fn type_handle() -> &'static TypeHandle {
        &TYPE_HANDLE
    }

    fn hash_id(&self) -> Option<HashId> {
        self.stored.hash_id()
    }

    fn numbers(&self) -> Vec<u64> {
        Vec::new()
    }

    fn filters(&self) -> Vec<&dyn Storable> {
        vec![&self.stored]
    }

    fn sections(&self) -> Vec<&Words> {
        self.stored.sections()
    }

    fn restore(_numbers: &[u64], filters: Vec<Stored>, _extra: &[u8]) -> error::Result<Any> {
        let [stored] = <[Stored; 1]>::try_from(filters).map_err(|_| Error::CONTRADICTORY)?;
        Ok(Any::new(stored)?)
    }

    fn memory_bytes(&self) -> usize {
        section_bytes(&self.stored) + self.charge.bytes() + size_of::<Stored>()
    }

    fn copy(&self) -> umbel::Result<Any> {
        Any::new(self.stored.try_clone()?)
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.stored.relocate(mover);
    }
}

/// The filter of an open key, of any type.
pub enum OpenFilter<'a> {
    Bloom(Key<'a, Entry<BloomValue>>),
    Cuckoo(Key<'a, Entry<CuckooValue>>),
    Any(Key<'a, Entry<Any>>),
}

impl<'a> OpenFilter<'a> {
    /// Opens a key, if it exists.
    ///
    /// # Errors
    ///
    /// [`Failure::WrongType`] if it does not hold a filter.
    pub fn open(context: &'a Context, key: &Text) -> Result<Option<OpenFilter<'a>>> {
        match context.read::<Entry<BloomValue>>(key) {
            Err(Failure::WrongType) => {}
            other => return Ok(other?.map(OpenFilter::Bloom)),
        }
        match context.read::<Entry<CuckooValue>>(key) {
            Err(Failure::WrongType) => Ok(context.read::<Entry<Any>>(key)?.map(OpenFilter::Any)),
            other => Ok(other?.map(OpenFilter::Cuckoo)),
        }
    }

    /// Opens a key that must exist; see [`OpenFilter::open`].
    pub fn existing(context: &'a Context, key: &Text) -> Result<OpenFilter<'a>> {
        OpenFilter::open(context, key)?.ok_or_else(|| Failure::new("not found"))
    }

    /// Returns the structure of the filter.
    ///
    /// # Errors
    ///
    /// If it consists of several, as a cuckoo filter that has grown does.
    pub fn structure(&self) -> Result<StructureRef<'_>> {
        match self {
            OpenFilter::Bloom(entry) => Ok(StructureRef::Set(entry.ready()?.filter()?)),
            OpenFilter::Cuckoo(entry) => match entry.ready()?.own()? {
                chain if chain.levels() == 1 => Ok(StructureRef::Cuckoo(chain.first())),
                _ => Err(Failure::new("it has grown to several filters: CF.COMPACT may merge them")),
            },
            OpenFilter::Any(entry) => Ok(StructureRef::Stored(entry.ready()?.stored())),
        }
    }

    /// Returns the statistics of the filter at this time.
    pub fn stats(&self, context: &Context) -> Result<Stats> {
        Ok(match self {
            OpenFilter::Bloom(entry) => entry.ready()?.filter()?.stats(),
            OpenFilter::Cuckoo(entry) => entry.ready()?.own()?.stats(),
            OpenFilter::Any(entry) => match entry.ready()?.stored() {
                Stored::Set(AnyFilter::Aging(filter)) => filter.at(context.now()).stats(),
                stored => stored.stats(),
            },
        })
    }

    /// Returns the kind of the filter.
    pub fn kind(&self) -> Result<Kind> {
        Ok(match self {
            OpenFilter::Bloom(entry) => entry.ready()?.filter()?.kind(),
            OpenFilter::Cuckoo(_) => Kind::Cuckoo,
            OpenFilter::Any(entry) => entry.ready()?.stored().kind(),
        })
    }

    /// Returns the identity of the hash function, if the filter has one.
    pub fn hash(&self) -> Result<Option<HashId>> {
        Ok(match self {
            OpenFilter::Bloom(entry) => Some(entry.ready()?.filter()?.hasher().id()),
            OpenFilter::Cuckoo(entry) => Some(entry.ready()?.own()?.first().hasher().id()),
            OpenFilter::Any(entry) => entry.ready()?.stored().hash_id(),
        })
    }

    /// Returns a copy of the structure.
    pub fn to_stored(&self) -> Result<Stored> {
        Ok(match self.structure()? {
            StructureRef::Set(filter) => Stored::Set(filter.try_clone()?),
            StructureRef::Cuckoo(filter) => {
                Stored::Set(umbel::internals::Structure::try_clone(filter)?.into())
            }
            StructureRef::Stored(stored) => stored.try_clone()?,
        })
    }
}

/// The type of the value under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    Bloom,
    Cuckoo,
    Any,
}

impl OpenFilter<'_> {
    /// Returns the type of the value.
    pub fn value_type(&self) -> ValueType {
        match self {
            OpenFilter::Bloom(_) => ValueType::Bloom,
            OpenFilter::Cuckoo(_) => ValueType::Cuckoo,
            OpenFilter::Any(_) => ValueType::Any,
        }
    }
}

/// A borrowed structure of the library.
pub enum StructureRef<'a> {
    Set(&'a AnyFilter),
    Cuckoo(&'a umbel::Cuckoo),
    Stored(&'a Stored),
}

/// Stores a structure under a key, as the type whose commands support its kind: `BF.*`, `CF.*` or
/// `UMBEL.*`.
pub fn store(context: &Context, key: &Text, stored: Stored) -> Result<()> {
    config::check_memory(stored.stats().bytes)?;
    match stored {
        Stored::Set(filter)
            if matches!(
                Filter::kind(&filter),
                Kind::Scalable | Kind::Blocked | Kind::Standard | Kind::Partitioned
            ) =>
        {
            replace(context, key, BloomValue::Own(Bloom::from_filter(filter)))
        }
        Stored::Set(AnyFilter::Cuckoo(filter)) => {
            replace(context, key, CuckooValue::Own(CuckooChain::from_filter(filter)))
        }
        stored => replace(context, key, Any::new(stored)?),
    }
}

/// Stores a value under a key. If the key holds the same type, its expiry stays.
pub fn replace<P: Persist>(context: &Context, key: &Text, value: P) -> Result<()> {
    if let Ok(Some(mut entry)) = context.write::<Entry<P>>(key) {
        *entry = Entry::Ready(value);
        return Ok(());
    }
    context.set(key, Entry::Ready(value))
}

/// Builds an empty structure of a kind.
///
/// # Errors
///
/// If it is too large, or the kind cannot be filled by commands.
pub fn build(kind: Kind, spec: &umbel::Spec) -> Result<Stored> {
    if kind.category() == Category::Sketch {
        return Err(Failure::new(format!(
            "{} {kind} sketch cannot be reserved here: use CMS.* or TOPK.*, or load a saved one with UMBEL.IMPORT",
            kind.article()
        )));
    }
    config::check_memory(umbel::spec::plan(kind, spec)?.bytes)?;
    let (noun, command) = match kind.category() {
        Category::Map => ("map", "umbel map build"),
        Category::Multiset => ("multiset", "umbel count build"),
        _ => ("filter", "umbel build"),
    };
    let reason = if kind.capabilities().fixed {
        "is built from all its items at once"
    } else if matches!(kind, Kind::SpaceCode | Kind::MultiResolution) {
        "records at random, so that replicas would differ"
    } else {
        return Ok(Stored::Set(AnyFilter::build(kind, spec)?));
    };
    Err(Failure::new(format!(
        "{} {kind} {noun} {reason}, and cannot be filled by commands: build it with `{command}`, and load it with UMBEL.IMPORT",
        kind.article()
    )))
}
