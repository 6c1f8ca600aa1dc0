//! umbel's own kinds: one key at a time, in batches, and shared between threads.

use super::{Filter, GROWN, Job, Shared};
use crate::keys::Strings;
use ::umbel::any::Stored;
use ::umbel::cuckoo::Form;
use ::umbel::file::ReadOnly;
use ::umbel::hash::KeyRing;
use ::umbel::internals::{Layout, Set};
use ::umbel::spec::KindOptions;
use ::umbel::{Arena, Blocked, Bloom, Concurrent, Cuckoo, Hasher, Scalable, Spec, file};

/// Processes one key at a time.
pub struct Single<S>(S);
/// Processes whole runs at once.
pub struct Batched<S>(S);
/// Processes whole runs at once through `&self`; `None` only while the filter is being emptied.
pub struct Atomic<L: Layout>(Option<Concurrent<L>>);

/// A verified mapping of the file that the filter was saved to. Its insert time includes
/// everything: build, save, map, verify.
pub struct Mapped {
    empty: Option<Bloom<Blocked>>,
    mapped: Option<ReadOnly<Stored>>,
}

impl Mapped {
    fn save_and_map(&mut self) {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let path = folder.path().join("filter.umbel");
        let filter = self.empty.take().expect("built once");
        file::save(&path, &filter, &file::Options::default()).expect("room for a temporary file");
        drop(filter);
        let mapped = file::map(&path, &KeyRing::new()).and_then(file::Mapped::verify);
        // The folder is removed here; the mapping remains valid.
        self.mapped = Some(mapped.expect("an intact file").filter);
    }
}

/// A scalable filter planned for so few keys that it grows to eight stages; processes whole runs at
/// once.
pub struct Grown(Scalable);
/// A cuckoo filter with sorted fingerprints; processes whole runs at once.
pub struct SemiSorted(Cuckoo);

fn create<S: Set>(job: &Job) -> S {
    tuned(job, job.n, KindOptions::default())
}

fn tuned<S: Set>(job: &Job, capacity: u64, options: KindOptions) -> S {
    let spec = Spec::new(capacity.max(1), job.p).expect("sizes that peers accept");
    S::build(&spec.with_hasher(Hasher::fast(job.seed)).with_options(options)).expect("memory for a filter")
}

impl Grown {
    fn create(job: &Job) -> Grown {
        Grown(tuned(job, job.n.div_ceil(GROWN), KindOptions::default()))
    }
}

impl SemiSorted {
    fn create(job: &Job) -> SemiSorted {
        let mut options = KindOptions::default();
        options.cuckoo.form = Form::SemiSorted;
        SemiSorted(tuned(job, job.n, options))
    }
}

/// Returns the bits of a filter's memory.
fn memory(filter: &impl Set) -> u64 {
    filter.stats().bytes * 8
}

impl<L: Layout> Atomic<L> {
    fn get(&self) -> &Concurrent<L> {
        self.0.as_ref().expect("only away while it is emptied")
    }
}

const OWNED: &str = "a filter that was built here owns its memory";

/// Converts a run of keys to a batch of umbel.
macro_rules! batch {
    (u64, $keys:expr) => {
        $keys
    };
    ([u8], $keys:expr) => {
        &Arena::new($keys.bytes, $keys.offsets).expect("offsets that rise")
    };
}

/// Implements [`Filter`] for a filter that processes whole runs at once.
macro_rules! batched {
    (impl<$($generic:ident: $bound:ident)?> $key:tt, $list:ty, $type:ty, |$job:ident| $create:expr) => {
        impl<$($generic: $bound)?> Filter<$key> for $type {
            fn create($job: &Job) -> Self {
                $create
            }

            fn wipe(&mut self) {
                self.0.clear();
            }

            fn insert_all(&mut self, keys: $list) {
                self.0.insert_batch(batch!($key, keys)).expect("room for n keys");
            }

            fn count(&self, keys: $list) -> u64 {
                self.0.contains_batch(batch!($key, keys)).count()
            }

            fn memory_bits(&self) -> u64 {
                memory(&self.0)
            }
        }
    };
}

macro_rules! keys {
    ($key:tt, $list:ty) => {
        impl<S: Set> Filter<$key> for Single<S> {
            fn create(job: &Job) -> Self {
                Single(create(job))
            }

            fn wipe(&mut self) {
                self.0.clear();
            }

            fn insert_all(&mut self, keys: $list) {
                for key in crate::keys::List::iter(keys) {
                    self.0.insert(key).expect(OWNED);
                }
            }

            fn count(&self, keys: $list) -> u64 {
                crate::keys::List::iter(keys).map(|key| u64::from(self.0.contains(key))).sum()
            }

            fn memory_bits(&self) -> u64 {
                memory(&self.0)
            }
        }

        batched!(impl<S: Set> $key, $list, Batched<S>, |job| Batched(create(job)));
        batched!(impl<> $key, $list, Grown, |job| Grown::create(job));
        batched!(impl<> $key, $list, SemiSorted, |job| SemiSorted::create(job));

        impl<L: Layout> Filter<$key> for Atomic<L> {
            fn create(job: &Job) -> Self {
                Atomic(Some(Concurrent::new(create(job))))
            }

            fn wipe(&mut self) {
                let mut filter = self.0.take().expect("only away while it is emptied").into_filter();
                filter.clear();
                self.0 = Some(Concurrent::new(filter));
            }

            fn insert_all(&mut self, keys: $list) {
                self.get().insert_batch(batch!($key, keys));
            }

            fn count(&self, keys: $list) -> u64 {
                self.get().contains_batch(batch!($key, keys)).count()
            }

            fn memory_bits(&self) -> u64 {
                self.get().layout().lines() * 512
            }

            fn shared(&self) -> Option<&dyn Shared<$key>> {
                Some(self)
            }
        }

        impl Filter<$key> for Mapped {
            fn create(job: &Job) -> Self {
                Mapped { empty: Some(create(job)), mapped: None }
            }

            fn wipe(&mut self) {
                self.empty.as_mut().expect("wiped before it is filled").clear();
            }

            fn insert_all(&mut self, keys: $list) {
                self.empty.as_mut().expect("filled once").insert_batch(batch!($key, keys));
                self.save_and_map();
            }

            fn count(&self, keys: $list) -> u64 {
                self.mapped
                    .as_ref()
                    .expect("filled before it is asked")
                    .contains_batch(batch!($key, keys))
                    .count()
            }

            fn memory_bits(&self) -> u64 {
                self.mapped.as_ref().map_or(0, |filter| {
                    filter.sections().iter().map(|words| words.lines().len() as u64 * 512).sum()
                })
            }
        }

        impl<L: Layout> Shared<$key> for Atomic<L> {
            fn insert_shared(&self, keys: $list) {
                self.get().insert_batch(batch!($key, keys));
            }
        }
    };
}
keys!(u64, &[u64]);
keys!([u8], Strings<'_>);
