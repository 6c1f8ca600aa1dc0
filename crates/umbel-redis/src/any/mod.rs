//! `UMBEL.*`: every kind of the library, and what others lack: unions, intersections, likeness, estimates, and the files of
//! the command line.
//!
//! [`Any`] is the value of kinds that have no commands of their own; [`Held`] is whatever filter is under a key, for the
//! commands that take them all. [`commands`] is what can be done.

pub mod algebra;
pub mod commands;
pub mod files;

use crate::bloom::Bloom;
use crate::config;
use crate::cuckoo::CuckooChain;
use crate::persist::{Entry, Persist};
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
pub struct Any(Stored);

impl Any {
    pub fn stored(&self) -> &Stored {
        &self.0
    }

    /// The set, if it is one to which keys can be added.
    pub fn set(&mut self) -> Result<&mut AnyFilter> {
        let kind = self.0.kind();
        match &mut self.0 {
            Stored::Set(filter) => Ok(filter),
            _ => Err(Failure::new(format!("{} {kind} is not a set", kind.article()))),
        }
    }
}

static TYPE_HANDLE: TypeHandle = TypeHandle::new();

impl Persist for Any {
    const NAME: &'static CStr = c"umbel-any";

    const LOAD_COMMAND: &'static CStr = c"UMBEL.LOADCHUNK";

    fn type_handle() -> &'static TypeHandle {
        &TYPE_HANDLE
    }

    fn numbers(&self) -> Vec<u64> {
        Vec::new()
    }

    fn filters(&self) -> Vec<&dyn Storable> {
        vec![&self.0]
    }

    fn sections(&self) -> Vec<&Words> {
        self.0.sections()
    }

    fn restore(_numbers: &[u64], filters: Vec<Stored>, _extra: &[u8]) -> Option<Any> {
        let [stored] = <[Stored; 1]>::try_from(filters).ok()?;
        Some(Any(stored))
    }

    fn memory_bytes(&self) -> usize {
        let words = self.0.sections();
        words.iter().map(|words| size_of_val(words.lines())).sum::<usize>() + size_of::<Stored>()
    }

    fn copy(&self) -> umbel::Result<Any> {
        self.0.try_clone().map(Any)
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.0.relocate(mover);
    }
}

/// Whatever filter is under a key.
pub enum Held<'a> {
    Bloom(Key<'a, Entry<Bloom>>),
    Cuckoo(Key<'a, Entry<CuckooChain>>),
    Any(Key<'a, Entry<Any>>),
}

impl<'a> Held<'a> {
    /// What is under a key, if there is anything.
    pub fn open(context: &'a Context, key: &Text) -> Result<Option<Held<'a>>> {
        match context.read::<Entry<Bloom>>(key) {
            Err(Failure::WrongType) => {}
            other => return Ok(other?.map(Held::Bloom)),
        }
        match context.read::<Entry<CuckooChain>>(key) {
            Err(Failure::WrongType) => Ok(context.read::<Entry<Any>>(key)?.map(Held::Any)),
            other => Ok(other?.map(Held::Cuckoo)),
        }
    }

    /// What is under a key.
    pub fn existing(context: &'a Context, key: &Text) -> Result<Held<'a>> {
        Held::open(context, key)?.ok_or_else(|| Failure::new("not found"))
    }

    /// The one structure it is.
    pub fn structure(&self) -> Result<Structure<'_>> {
        match self {
            Held::Bloom(entry) => Ok(Structure::Set(entry.ready()?.filter())),
            Held::Cuckoo(entry) => match entry.ready()? {
                filters if filters.levels() == 1 => Ok(Structure::Cuckoo(filters.first())),
                _ => Err(Failure::new("it has grown to several filters: CF.COMPACT may bring them together")),
            },
            Held::Any(entry) => Ok(Structure::Stored(entry.ready()?.stored())),
        }
    }

    /// How full it is and what that means, at this time.
    pub fn stats(&self, context: &Context) -> Result<Stats> {
        Ok(match self {
            Held::Bloom(entry) => entry.ready()?.filter().stats(),
            Held::Cuckoo(entry) => entry.ready()?.stats(),
            Held::Any(entry) => match entry.ready()?.stored() {
                Stored::Set(AnyFilter::Aging(filter)) => filter.at(context.now()).stats(),
                stored => stored.stats(),
            },
        })
    }

    /// Its kind.
    pub fn kind(&self) -> Result<Kind> {
        Ok(match self {
            Held::Bloom(entry) => entry.ready()?.filter().kind(),
            Held::Cuckoo(_) => Kind::Cuckoo,
            Held::Any(entry) => entry.ready()?.stored().kind(),
        })
    }

    /// Its hash.
    pub fn hash(&self) -> Result<Option<HashId>> {
        Ok(match self {
            Held::Bloom(entry) => Some(entry.ready()?.filter().hasher().id()),
            Held::Cuckoo(entry) => Some(entry.ready()?.first().hasher().id()),
            Held::Any(entry) => entry.ready()?.stored().hash_id(),
        })
    }

    /// A structure of its own like it.
    pub fn cloned(&self) -> Result<Stored> {
        Ok(match self.structure()? {
            Structure::Set(filter) => Stored::Set(filter.try_clone()?),
            Structure::Cuckoo(filter) => Stored::Set(umbel::internals::Structure::try_clone(filter)?.into()),
            Structure::Stored(stored) => stored.try_clone()?,
        })
    }
}

/// Which type of value is under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Bloom,
    Cuckoo,
    Any,
}

impl Held<'_> {
    /// Which type it is.
    pub fn type_of(&self) -> Type {
        match self {
            Held::Bloom(_) => Type::Bloom,
            Held::Cuckoo(_) => Type::Cuckoo,
            Held::Any(_) => Type::Any,
        }
    }
}

/// A structure, wherever it is.
pub enum Structure<'a> {
    Set(&'a AnyFilter),
    Cuckoo(&'a umbel::Cuckoo),
    Stored(&'a Stored),
}

/// Puts a structure under a key, so that it has the commands of its kind: `BF.*`, `CF.*`, or those for all.
pub fn put(context: &Context, key: &Text, stored: Stored) -> Result<()> {
    config::check_memory(stored.stats().bytes)?;
    match stored {
        Stored::Set(filter)
            if matches!(Filter::kind(&filter), Kind::Scalable | Kind::Blocked | Kind::Standard) =>
        {
            replace(context, key, Bloom::from_filter(filter))
        }
        Stored::Set(AnyFilter::Cuckoo(filter)) => replace(context, key, CuckooChain::from_filter(filter)),
        stored => replace(context, key, Any(stored)),
    }
}

/// Puts a value under a key. In place of one of its type it lives as long as that was to.
pub fn replace<P: Persist>(context: &Context, key: &Text, value: P) -> Result<()> {
    if let Ok(Some(mut entry)) = context.write::<Entry<P>>(key) {
        *entry = Entry::Ready(value);
        return Ok(());
    }
    context.set(key, Entry::Ready(value))
}

/// A new structure of a kind.
pub fn build(kind: Kind, spec: &umbel::Spec) -> Result<Stored> {
    if kind.category() == Category::Sketch {
        return Err(Failure::new(format!(
            "{} {kind} sketch is not reserved here: CMS.* and TOPK.* have sketches, and UMBEL.IMPORT takes saved ones",
            kind.article()
        )));
    }
    config::check_memory(umbel::spec::plan(kind, spec)?.bytes)?;
    // Multisets record by chance, and every server would have its own.
    if kind.capabilities().fixed || matches!(kind, Kind::SpaceCode | Kind::MultiResolution) {
        return Err(Failure::new(format!(
            "{} {kind} is not filled here: make it with `umbel build`, `umbel map` or `umbel count`, and bring it with UMBEL.IMPORT",
            kind.article()
        )));
    }
    Ok(Stored::Set(AnyFilter::build(kind, spec)?))
}
