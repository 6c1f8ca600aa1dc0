//! `fastbloom`: a classic filter with k probes anywhere. Its default hash is SipHash-1-3; with
//! `foldhash` it is the reference.

use super::{Filter, Job, Shared};
use crate::keys::{Key, List};
use ::fastbloom::{AtomicBloomFilter, BloomFilter};
use foldhash::fast::FixedState;

pub type Siphash = BloomFilter;
pub type Foldhash = BloomFilter<FixedState>;
pub type AtomicFoldhash = AtomicBloomFilter<FixedState>;

macro_rules! filter {
    ($type:ty, |$job:ident| $create:expr, $($shared:tt)*) => {
        impl<K: Key + ?Sized> Filter<K> for $type {
            fn create($job: &Job) -> Self {
                $create
            }

            fn wipe(&mut self) {
                self.clear();
            }

            fn insert_all(&mut self, keys: K::List<'_>) {
                for key in keys.iter() {
                    self.insert(key);
                }
            }

            fn count(&self, keys: K::List<'_>) -> u64 {
                keys.iter().map(|key| u64::from(self.contains(key))).sum()
            }

            fn memory_bits(&self) -> u64 {
                self.num_bits() as u64
            }

            $($shared)*
        }
    };
}

filter! {
    Siphash,
    |job| BloomFilter::with_false_pos(job.p).seed(&u128::from(job.seed)).expected_items(job.n as usize),
}

filter! {
    Foldhash,
    |job| BloomFilter::with_false_pos(job.p)
        .hasher(FixedState::with_seed(job.seed))
        .expected_items(job.n as usize),
}

filter! {
    AtomicFoldhash,
    |job| AtomicBloomFilter::with_false_pos(job.p)
        .hasher(FixedState::with_seed(job.seed))
        .expected_items(job.n as usize),
    fn shared(&self) -> Option<&dyn Shared<K>> {
        Some(self)
    }
}

impl<K: Key + ?Sized> Shared<K> for AtomicFoldhash {
    fn insert_shared(&self, keys: K::List<'_>) {
        for key in keys.iter() {
            self.insert(key);
        }
    }
}
