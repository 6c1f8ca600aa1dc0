//! umbel's static kinds, which are built from all keys at once: their insert time is the whole
//! construction, including hashing and temporary memory. Cells have 8 bits for every rate, like
//! those of the peer.

use super::{Filter, Job};
use crate::keys::Strings;
use ::umbel::sizing::Given;
use ::umbel::spec::{Construction, KindOptions};
use ::umbel::{Arena, Batch, Bloomier, BloomierMutable, Digest, Fuse, Hasher, Spec};

/// A structure that is built from digests.
pub trait Static: Sized + Sync {
    fn build(spec: &Spec, digests: Vec<Digest>, construction: &Construction<'_>) -> Self;
    fn ask_one(&self, digest: Digest) -> bool;
    fn ask_all<B: Batch + ?Sized>(&self, keys: &B) -> u64;
    fn digester(&self) -> &Hasher;
    fn bytes(&self) -> u64;
}

const BUILT: &str = "distinct keys and memory for them";

impl Static for Fuse {
    fn build(spec: &Spec, digests: Vec<Digest>, construction: &Construction<'_>) -> Fuse {
        Fuse::from_digests(spec, digests, construction).expect(BUILT)
    }

    #[inline(always)]
    fn ask_one(&self, digest: Digest) -> bool {
        self.contains_digest(digest)
    }

    fn ask_all<B: Batch + ?Sized>(&self, keys: &B) -> u64 {
        self.contains_batch(keys).count()
    }

    #[inline(always)]
    fn digester(&self) -> &Hasher {
        self.hasher()
    }

    fn bytes(&self) -> u64 {
        self.stats().bytes
    }
}

macro_rules! maps {
    ($($map:ident),*) => {$(
        impl Static for $map {
            fn build(spec: &Spec, digests: Vec<Digest>, construction: &Construction<'_>) -> $map {
                let pairs = digests.into_iter().map(|digest| (digest, digest.get() >> 63)).collect();
                $map::from_pairs(spec, pairs, None, construction).expect(BUILT)
            }

            #[inline(always)]
            fn ask_one(&self, digest: Digest) -> bool {
                self.get_digest(digest).is_some()
            }

            fn ask_all<B: Batch + ?Sized>(&self, keys: &B) -> u64 {
                self.get_batch(keys).iter().flatten().count() as u64
            }

            #[inline(always)]
            fn digester(&self) -> &Hasher {
                self.hasher()
            }

            fn bytes(&self) -> u64 {
                self.stats().bytes
            }
        }
    )*};
}
maps!(Bloomier, BloomierMutable);

/// Looks up one key at a time; built by one thread.
pub struct Single<S>(Made<S>);
/// Looks up whole runs at once; built by one thread.
pub struct Batched<S>(Made<S>);
/// Looks up whole runs at once; built by as many threads as the machine has.
pub struct Threaded<S>(Made<S>);

/// A structure that is built when the first keys arrive.
pub struct Made<S> {
    spec: Spec,
    built: Option<S>,
}

impl<S: Static> Made<S> {
    fn new(job: &Job) -> Made<S> {
        let mut options = KindOptions::default();
        options.fuse.fingerprint_bits = Some(8);
        options.bloomier.largest = Some(1);
        // Two values in cells of eight bits; fuse filters use only the width of their fingerprints.
        let given = Given { n: Some(job.n.max(1)), p: Some(2.0 / 256.0), ..Given::default() };
        let spec = Spec::from_given(given).expect("sizes that peers accept");
        Made { spec: spec.with_hasher(Hasher::fast(job.seed)).with_options(options), built: None }
    }

    fn build<B: Batch + ?Sized>(&mut self, keys: &B, threads: Option<usize>) {
        let construction = Construction::default();
        let construction = Construction { threads: threads.unwrap_or(construction.threads), ..construction };
        self.built = Some(S::build(&self.spec, self.spec.hasher().digest_batch(keys), &construction));
    }

    fn built(&self) -> &S {
        self.built.as_ref().expect("built before use")
    }
}

/// Converts a run of keys to a batch of umbel.
macro_rules! batch {
    (u64, $keys:expr) => {
        $keys
    };
    ([u8], $keys:expr) => {
        &Arena::new($keys.bytes, $keys.offsets).expect("offsets that rise")
    };
}

macro_rules! contestant {
    ($key:tt, $list:ty, $type:ident, $threads:expr, |$built:ident, $keys:ident| $count:expr) => {
        impl<S: Static> Filter<$key> for $type<S> {
            fn create(job: &Job) -> Self {
                $type(Made::new(job))
            }

            fn wipe(&mut self) {}

            fn insert_all(&mut self, keys: $list) {
                self.0.build(batch!($key, keys), $threads);
            }

            fn count(&self, $keys: $list) -> u64 {
                let $built = self.0.built();
                $count
            }

            fn memory_bits(&self) -> u64 {
                self.0.built().bytes() * 8
            }
        }
    };
}

macro_rules! contestants {
    ($key:tt, $list:ty) => {
        contestant!($key, $list, Single, Some(1), |built, keys| {
            let digest = |key| ::umbel::Key::digest(key, built.digester());
            crate::keys::List::iter(keys).map(|key| u64::from(built.ask_one(digest(key)))).sum()
        });
        contestant!($key, $list, Batched, Some(1), |built, keys| built.ask_all(batch!($key, keys)));
        contestant!($key, $list, Threaded, None, |built, keys| built.ask_all(batch!($key, keys)));
    };
}
contestants!(u64, &[u64]);
contestants!([u8], Strings<'_>);
