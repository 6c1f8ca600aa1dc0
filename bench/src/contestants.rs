//! The contestants: one short file per family of filters, and the list of all of them.

mod bloomfilter;
mod cuckoo;
mod fastbloom;
mod fastbloom_rs;
mod growable;
mod qfilter;
mod sbbf;
mod statics;
mod umbel;
mod xorf;

use crate::keys::Key;
use crate::limit::Limit;
use ::umbel::floom::Floom;
use ::umbel::{
    Aging, Blocked, Bloom, Bloomier, BloomierMutable, Counting, Cuckoo, Deletable, Fuse, Partitioned,
    Quotient, Scalable, Standard, VariableIncrement,
};

/// The parameters that a filter is built for.
pub struct Job {
    pub n: u64,
    pub p: f64,
    pub seed: u64,
}

/// A growing filter is planned for 1/255 of the keys: eight stages, each twice as large as the one
/// before, then hold all of them.
const GROWN: u64 = 255;

/// A filter for keys of type `K`.
///
/// `insert_all` and `count` are the timed loops. They take a whole run of keys, so that each filter
/// compiles its own loop around its own lookup. A filter with a batch interface splits the run as
/// it likes.
pub trait Filter<K: Key + ?Sized>: Sized + Sync {
    /// Creates an empty filter, sized by its own constructor.
    fn create(job: &Job) -> Self;
    /// Empties the filter by writing all of its memory, so that every page is present and no insert
    /// waits for one.
    fn wipe(&mut self);
    fn insert_all(&mut self, keys: K::List<'_>);
    /// Returns how many of the keys the filter reports as present.
    fn count(&self, keys: K::List<'_>) -> u64;
    /// Returns the bits of memory that the filter really uses.
    fn memory_bits(&self) -> u64;
    /// Returns the filter itself if several threads may insert at once.
    fn shared(&self) -> Option<&dyn Shared<K>> {
        None
    }
}

/// Insertion from several threads.
pub trait Shared<K: Key + ?Sized>: Sync {
    fn insert_shared(&self, keys: K::List<'_>);
}

/// A filter, or the physical limit, as the measurement sees it. Called once per section, never per
/// key.
pub trait Contestant<K: Key + ?Sized> {
    fn name(&self) -> &'static str;
    /// Returns whether this is a filter. Anything else has only a mixed section and is not
    /// verified.
    fn is_filter(&self) -> bool {
        true
    }
    /// Creates an empty filter whose memory has been touched.
    fn prepare(&mut self, job: &Job);
    fn insert(&mut self, keys: K::List<'_>);
    fn count(&self, keys: K::List<'_>) -> u64;
    fn bits(&self) -> u64;
    fn shared(&self) -> Option<&dyn Shared<K>>;
    /// Frees the memory.
    fn release(&mut self);
}

struct Slot<F> {
    name: &'static str,
    filter: Option<F>,
}

impl<F> Slot<F> {
    fn filter(&self) -> &F {
        self.filter.as_ref().expect("prepared before use")
    }
}

impl<K: Key + ?Sized, F: Filter<K>> Contestant<K> for Slot<F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn prepare(&mut self, job: &Job) {
        self.filter = None;
        let mut filter = F::create(job);
        filter.wipe();
        self.filter = Some(filter);
    }

    #[inline(never)]
    fn insert(&mut self, keys: K::List<'_>) {
        self.filter.as_mut().expect("prepared before use").insert_all(keys);
    }

    #[inline(never)]
    fn count(&self, keys: K::List<'_>) -> u64 {
        self.filter().count(keys)
    }

    fn bits(&self) -> u64 {
        self.filter().memory_bits()
    }

    fn shared(&self) -> Option<&dyn Shared<K>> {
        self.filter().shared()
    }

    fn release(&mut self) {
        self.filter = None;
    }
}

fn slot<K: Key + ?Sized, F: Filter<K> + 'static>(name: &'static str) -> Box<dyn Contestant<K>> {
    Box::new(Slot::<F> { name, filter: None })
}

/// A type of key that has contestants.
pub trait Roster: Key {
    fn roster() -> Vec<Box<dyn Contestant<Self>>>;
}

macro_rules! roster {
    ($key:ty) => {
        impl Roster for $key {
            fn roster() -> Vec<Box<dyn Contestant<Self>>> {
                vec![
                    slot::<$key, umbel::Single<Bloom<Standard>>>("umbel standard"),
                    slot::<$key, umbel::Batched<Bloom<Standard>>>("umbel standard batch"),
                    slot::<$key, umbel::Atomic<Standard>>("umbel standard atomic"),
                    slot::<$key, umbel::Batched<Bloom<Partitioned>>>("umbel partitioned batch"),
                    slot::<$key, umbel::Single<Bloom<Blocked>>>("umbel blocked"),
                    slot::<$key, umbel::Batched<Bloom<Blocked>>>("umbel blocked batch"),
                    slot::<$key, umbel::Atomic<Blocked>>("umbel blocked atomic"),
                    slot::<$key, umbel::Mapped>("umbel blocked mapped"),
                    slot::<$key, umbel::Batched<Counting>>("umbel counting batch"),
                    slot::<$key, umbel::Batched<VariableIncrement>>("umbel variable-increment batch"),
                    slot::<$key, umbel::Batched<Deletable>>("umbel deletable batch"),
                    slot::<$key, umbel::Batched<Scalable>>("umbel scalable batch"),
                    slot::<$key, umbel::Grown>("umbel scalable grown batch"),
                    slot::<$key, umbel::Batched<Aging>>("umbel aging batch"),
                    slot::<$key, umbel::Batched<Floom>>("umbel floom batch"),
                    slot::<$key, umbel::Single<Cuckoo>>("umbel cuckoo"),
                    slot::<$key, umbel::Batched<Cuckoo>>("umbel cuckoo batch"),
                    slot::<$key, umbel::SemiSorted>("umbel cuckoo semi-sorted batch"),
                    slot::<$key, umbel::Single<Quotient>>("umbel quotient"),
                    slot::<$key, umbel::Batched<Quotient>>("umbel quotient batch"),
                    slot::<$key, statics::Single<Fuse>>("umbel fuse 8"),
                    slot::<$key, statics::Batched<Fuse>>("umbel fuse 8 batch"),
                    slot::<$key, statics::Threaded<Fuse>>("umbel fuse 8 threads"),
                    slot::<$key, statics::Single<Bloomier>>("umbel bloomier 8"),
                    slot::<$key, statics::Batched<Bloomier>>("umbel bloomier 8 batch"),
                    slot::<$key, statics::Batched<BloomierMutable>>("umbel bloomier-mutable 8 batch"),
                    slot::<$key, fastbloom::Siphash>("fastbloom"),
                    slot::<$key, fastbloom::Foldhash>("fastbloom foldhash"),
                    slot::<$key, fastbloom::AtomicFoldhash>("fastbloom atomic foldhash"),
                    slot::<$key, sbbf::Filter>("sbbf-rs-safe"),
                    slot::<$key, sbbf::Batched>("umbel split-block batch"),
                    slot::<$key, xorf::Fuse8>("xorf BinaryFuse8"),
                    slot::<$key, bloomfilter::Bloom<$key>>("bloomfilter"),
                    slot::<$key, fastbloom_rs::Counting>("fastbloom-rs counting"),
                    slot::<$key, growable::Planned>("growable-bloom-filter"),
                    slot::<$key, growable::Grown>("growable-bloom-filter grown"),
                    slot::<$key, cuckoo::Plain>("cuckoofilter"),
                    slot::<$key, cuckoo::Scalable<$key>>("scalable_cuckoo_filter"),
                    slot::<$key, qfilter::Quotient>("qfilter"),
                    Box::new(Limit::default()),
                ]
            }
        }
    };
}

roster!(u64);
roster!([u8]);
