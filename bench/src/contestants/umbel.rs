//! umbel's own kinds: a key at a time, in batches, and shared between threads.

use super::{Filter, Job, Shared};
use crate::keys::Strings;
use ::umbel::{Arena, Bloom, Concurrent, Filter as _, Hasher, Insert as _, Layout, Spec};

/// A key at a time.
pub struct Single<L: Layout>(Bloom<L>);
/// Whole runs at once.
pub struct Batched<L: Layout>(Bloom<L>);
/// Through `&self`, whole runs at once; `None` only while it is being emptied.
pub struct Atomic<L: Layout>(Option<Concurrent<L>>);

fn create<L: Layout>(job: &Job) -> Bloom<L> {
    let spec = Spec::new(job.n, job.p).expect("sizes that peers accept").hasher(Hasher::fast(job.seed));
    Bloom::build(&spec).expect("memory for a filter")
}

impl<L: Layout> Atomic<L> {
    fn get(&self) -> &Concurrent<L> {
        self.0.as_ref().expect("only away while it is emptied")
    }
}

const OWNED: &str = "a filter that was built here owns its memory";

/// What a run of keys is to umbel.
macro_rules! batch {
    (u64, $keys:expr) => {
        $keys
    };
    ([u8], $keys:expr) => {
        &Arena::new($keys.bytes, $keys.offsets).expect("offsets that rise")
    };
}

macro_rules! keys {
    ($key:tt, $list:ty) => {
        impl<L: Layout> Filter<$key> for Single<L> {
            fn create(job: &Job) -> Self {
                Single(create(job))
            }

            fn wipe(&mut self) {
                self.0.clear().expect(OWNED);
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
                self.0.layout().lines() * 512
            }
        }

        impl<L: Layout> Filter<$key> for Batched<L> {
            fn create(job: &Job) -> Self {
                Batched(create(job))
            }

            fn wipe(&mut self) {
                self.0.clear().expect(OWNED);
            }

            fn insert_all(&mut self, keys: $list) {
                self.0.insert_batch(batch!($key, keys)).expect(OWNED);
            }

            fn count(&self, keys: $list) -> u64 {
                self.0.contains_batch(batch!($key, keys)).count()
            }

            fn memory_bits(&self) -> u64 {
                self.0.layout().lines() * 512
            }
        }

        impl<L: Layout> Filter<$key> for Atomic<L> {
            fn create(job: &Job) -> Self {
                Atomic(Some(Concurrent::new(create(job)).expect(OWNED)))
            }

            fn wipe(&mut self) {
                let mut filter = self.0.take().expect("only away while it is emptied").into_filter();
                filter.clear().expect(OWNED);
                self.0 = Some(Concurrent::new(filter).expect(OWNED));
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

        impl<L: Layout> Shared<$key> for Atomic<L> {
            fn insert_shared(&self, keys: $list) {
                self.get().insert_batch(batch!($key, keys));
            }
        }
    };
}
keys!(u64, &[u64]);
keys!([u8], Strings<'_>);
