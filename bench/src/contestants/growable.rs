//! `growable-bloom-filter`: a scalable filter with partitioned stages, planned for all keys or
//! grown from few.

use super::{Filter, GROWN, Job};
use crate::keys::{Key, List};
use growable_bloom_filter::GrowableBloom;
use std::io::{self, Write};

/// Planned for all keys.
pub struct Planned(GrowableBloom);
/// Planned for so few keys that it grows to eight stages.
pub struct Grown(GrowableBloom);

macro_rules! filter {
    ($type:ident, $share:expr) => {
        impl<K: Key + ?Sized> Filter<K> for $type {
            fn create(job: &Job) -> Self {
                $type(GrowableBloom::new(job.p, (job.n / $share).max(1) as usize))
            }

            fn wipe(&mut self) {
                self.0.clear();
            }

            fn insert_all(&mut self, keys: K::List<'_>) {
                for key in keys.iter() {
                    self.0.insert(key);
                }
            }

            fn count(&self, keys: K::List<'_>) -> u64 {
                keys.iter().map(|key| u64::from(self.0.contains(key))).sum()
            }

            fn memory_bits(&self) -> u64 {
                bits(&self.0)
            }
        }
    };
}

filter!(Planned, 1);
filter!(Grown, GROWN);

/// Returns the bits of a filter. The crate does not report its size, but serialized as JSON each
/// byte of its stages is a number before a comma.
fn bits(filter: &GrowableBloom) -> u64 {
    struct Commas(u64);

    impl Write for Commas {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.iter().filter(|byte| **byte == b',').count() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut commas = Commas(0);
    serde_json::to_writer(&mut commas, filter).expect("numbers in lists are JSON");
    commas.0 * 8
}
