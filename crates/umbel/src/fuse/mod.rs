//! Binary fuse filters: a static set in 1.13 to 1.15 times the bits of its fingerprints.
//!
//! Each key has three cells in neighbouring segments of a table. The table is solved so that the
//! xor of a member's three cells is its fingerprint. The cells of a non-member match its
//! fingerprint only by chance, with probability 2^-w for fingerprints of w bits, however many keys
//! there are.
//!
//! ```
//! use umbel::Fuse;
//! let keys: Vec<u64> = (0..100_000).collect();
//! let filter = Fuse::new(&keys, 0.01)?;
//! assert_eq!(filter.contains_batch(&keys).count(), 100_000);
//! assert_eq!(filter.fingerprint_bits(), 7);
//! assert!(filter.stats().bytes * 8 < 850_000);
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # When to use it
//!
//! Use it when all keys are known at once and none will be added or removed: no other kind is
//! smaller. At a rate of 0.8 % it takes 7.9 bits per key, where a standard filter takes 10. A
//! lookup reads three cache lines; out of cache, a batch of lookups takes about twice as long as in
//! a blocked Bloom filter.
//!
//! Building needs all keys in memory as digests, 8 bytes each, and 15 more bytes for each key of
//! the shards that are being solved. Those are all keys of a set of up to two million; beyond that,
//! they are per thread a quarter of the keys of a set of ten million, or a tenth of those of a set
//! of a hundred million.
//!
//! Duplicate keys count once. When a table cannot be solved, the construction tries other seeds,
//! and then larger tables, before it gives up, so no number of keys is unlucky.
//!
//! # References
//!
//! * T. M. Graf and D. Lemire. *Binary fuse filters: fast and smaller than xor filters.* ACM
//!   Journal of Experimental Algorithmics 27, 2022. `GL22`
//! * S. Walzer. *Peeling close to the orientability threshold: spatial coupling in hashing-based
//!   data structures.* SODA 2021. `Walzer21`
//! * T. M. Graf and D. Lemire. *Xor filters: faster and smaller than Bloom and cuckoo filters.* ACM
//!   Journal of Experimental Algorithmics 25, 2020. `GL20`
//! * M. Dietzfelbinger and R. Pagh. *Succinct data structures for retrieval and approximate
//!   membership.* ICALP 2008. `DP08`

use crate::file::FormatError;
use crate::memory::{LINE_BYTES, Mover, Words};
use crate::methods::{filter_methods, structure_methods};
use crate::retrieval::{BuildError, Construction, TableShape, Wish, Zero, build};
use crate::sizing::estimate::{Cardinality, Estimate, Overlap};
use crate::sizing::{self, Given};
use crate::spec::check_rate;
use crate::structure::{self, Head, Parts, Probe, TABLE};
use crate::tile;
use crate::{
    Algebra, Answers, Batch, Capabilities, Digest, Error, Filter, Hasher, Kind, Mismatch, Plan, Result, Spec,
    Stats, Structure,
};

const NO_KEYS: &str =
    "its table is solved for all its keys at once and does not hold them: build a new one from the keys";

/// The options of fuse filters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The width of a fingerprint, 4 to 32 bits; by default the smallest width that keeps the rate.
    pub fingerprint_bits: Option<u32>,
}

/// A static set; see the [module documentation](self).
pub struct Fuse {
    shape: TableShape,
    words: Words,
    head: Head,
}

impl Fuse {
    /// Creates the set of these keys.
    ///
    /// # Errors
    ///
    /// Returns an error if `rate` is out of range, or if there is not enough memory.
    pub fn new<B: Batch + ?Sized>(keys: &B, rate: f64) -> Result<Fuse> {
        let spec = Spec::new(keys.len().max(1) as u64, rate)?;
        Fuse::from_digests(&spec, spec.hasher().digest_batch(keys), &Construction::default())
    }

    /// Creates the set of the keys with these digests, for as many keys as there are, with the rate
    /// and the options of `spec`. The digests are sorted in place, and duplicates are removed if
    /// they prevent a solution.
    ///
    /// # Errors
    ///
    /// Returns an error if the keys do not fit in the size that `spec` sets, if `spec` sets neither
    /// rate nor size nor fingerprint bits, or if there is not enough memory.
    pub fn from_digests(spec: &Spec, digests: Vec<Digest>, construction: &Construction<'_>) -> Result<Fuse> {
        let (shape, _) = plan_for(spec, (digests.len() as u64).max(1))?;
        let wish = Wish {
            threads: construction.threads,
            progress: construction.progress,
            ..Wish::fuse(shape.width())
        };
        // This copies nothing: both element types are eight bytes.
        let mut items: Vec<(Digest, ())> = digests.into_iter().map(|digest| (digest, ())).collect();
        let zeros = |shape: &TableShape| Ok((0..shape.shards()).map(|_| Zero).collect());
        let built = build(&mut items, &wish, zeros).map_err(|error| match error {
            BuildError::Other(error) => error,
            // The keys have no payloads that could differ.
            BuildError::Conflict { digest, .. } => Error::Conflict { digest, values: [0; 2] },
        })?;
        let head =
            Head::of_all(spec, built.keys, built.shape.bits(), sizing::fuse::rate(built.shape.width()))?;
        Ok(Fuse { shape: built.shape, words: built.words, head })
    }

    /// Returns the number of bits in a fingerprint.
    pub fn fingerprint_bits(&self) -> u32 {
        self.shape.width()
    }
}

/// Returns the table shape for `n` keys, and its plan.
fn plan_for(spec: &Spec, n: u64) -> Result<(TableShape, Plan)> {
    let Given { p, m, .. } = spec.given();
    let given = spec.options().fuse.fingerprint_bits;
    let width = match (given, p, m) {
        (Some(width), _, _) => sizing::fuse::check_bits(width)?,
        (None, Some(p), _) => sizing::fuse::bits_for(p)?,
        (None, None, Some(m)) => {
            let least = TableShape::plan(n, &Wish::fuse(sizing::fuse::MIN_FINGERPRINT_BITS))?;
            if least.bits() > m {
                return Err(Error::parameter("m", m, format!("at least {} bits for {n} keys", least.bits())));
            }
            (m / least.cells()).min(sizing::fuse::MAX_FINGERPRINT_BITS.into()) as u32
        }
        (None, None, None) => {
            return Err(Error::parameter("p", "nothing", "a rate, a size, or fingerprint bits"));
        }
    };
    let shape = TableShape::plan(n, &Wish::fuse(width))?;
    let rate = sizing::fuse::rate(width);
    if let Some(m) = m.filter(|m| shape.bits() > *m) {
        let needs = format!("{} bits for {n} keys with fingerprints of {width} bits", shape.bits());
        return Err(Error::parameter("m", m, needs));
    }
    let fingerprints = given.map(|bits| ("fingerprint bits", bits));
    check_rate(&spec.given(), rate, n, shape.bits(), fingerprints)?;
    let plan = spec.finish(Plan {
        kind: Kind::Fuse,
        capacity: n,
        bits: shape.bits(),
        stored_bits: shape.bits(),
        bytes: shape.lines() * LINE_BYTES as u64,
        hashes: shape.cells_of_key(),
        lines_touched: shape.cells_of_key(),
        rate_asked: p.unwrap_or(rate),
        rate,
    })?;
    Ok((shape, plan))
}

structure_methods!([] Fuse);
filter_methods!([] Fuse);

impl structure::sealed::Sealed for Fuse {}

impl Structure for Fuse {
    const KIND: Kind = Kind::Fuse;

    const CAPABILITIES: Capabilities = Capabilities { fixed: true, ..Capabilities::NOTHING };

    fn plan(spec: &Spec) -> Result<Plan> {
        let given = spec.given();
        if let Some(k) = given.k {
            return Err(Error::parameter("k", k, "to be left out: each key has three cells"));
        }
        let n = match (given.n, given.m) {
            (Some(n), _) => n,
            (None, Some(m)) => {
                let least = Given { m: None, ..given };
                let fits = |n| {
                    let spec = Spec::from_given(least)?.with_options(spec.options().clone());
                    Ok::<_, Error>(plan_for(&spec, n)?.1.stored_bits <= m)
                };
                fits(1)?;
                let most = sizing::greatest(1..=sizing::MAX_KEYS, |n| fits(n).unwrap_or(false));
                most.ok_or_else(|| Error::parameter("m", m, "room for at least one key"))?
            }
            (None, None) => return Err(Error::parameter("n", "nothing", "a number of keys, or a size")),
        };
        sizing::check::capacity(n)?;
        Ok(plan_for(spec, n)?.1)
    }

    fn predicted_rate(&self, _: u64) -> Result<f64> {
        Ok(sizing::fuse::rate(self.shape.width()))
    }

    fn try_clone(&self) -> Result<Fuse> {
        Ok(Fuse { shape: self.shape, words: self.words.try_clone()?, head: self.head.clone() })
    }

    fn trace(&self, digest: Digest, probe: &mut dyn FnMut(Probe) -> Result<()>) -> Result<bool> {
        self.shape.trace(digest, 0, probe)?;
        Ok(self.contains_digest(digest))
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn head_mut(&mut self) -> &mut Head {
        &mut self.head
    }

    fn params(&self) -> Vec<u64> {
        self.shape.params().to_vec()
    }

    fn sections(&self) -> Vec<(u32, &Words)> {
        vec![(TABLE, &self.words)]
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.words.relocate(mover);
    }

    fn restore(mut parts: Parts) -> Result<Fuse> {
        let shape = TableShape::from_params(parts.params()?)?;
        sizing::fuse::check_bits(shape.width())?;
        let words = parts.section(TABLE, shape.lines())?;
        Ok(Fuse { shape, words, head: parts.finish_all(shape.cells())? })
    }

    fn check_contents(&self) -> Result<(), FormatError> {
        self.shape.check_contents(&self.words)
    }
}

impl Filter for Fuse {
    fn kind(&self) -> Kind {
        Kind::Fuse
    }

    #[inline(always)]
    fn hasher(&self) -> &Hasher {
        &self.head.hasher
    }

    #[inline]
    fn contains_digest(&self, digest: Digest) -> bool {
        // Fingerprints have at most 32 bits.
        self.shape.decode_narrow(self.words.words(), digest) == 0
    }

    fn contains_tile(&self, tile: &[Digest]) -> u64 {
        tile::contains_tile(self.head.level, &self.shape, self.words.lines(), tile)
    }

    fn stats(&self) -> Stats {
        let keys = self.head.inserted.unwrap_or_default();
        Stats {
            cells: self.shape.cells(),
            // Each key has a cell of its own.
            used_cells: keys,
            hashes: self.shape.cells_of_key(),
            bits: self.shape.bits(),
            bytes: self.shape.lines() * LINE_BYTES as u64,
            estimate: Cardinality::Estimated(Estimate { value: keys as f64, standard_error: 0.0 }),
            rate_now: sizing::fuse::rate(self.shape.width()),
            details: vec![("fingerprint bits", self.shape.width().into())],
            ..Stats::from_structure(self)
        }
    }

    fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        tile::contains_batch(self.head.level, &self.shape, self.words.lines(), &self.head.hasher, keys)
    }
}

/// Nothing can be combined without the keys, but differences can be reported.
impl Algebra for Fuse {
    fn union(&mut self, _: &Fuse) -> Result<()> {
        Err(Error::cannot(Kind::Fuse, "be united", NO_KEYS))
    }

    fn intersect(&mut self, _: &Fuse) -> Result<()> {
        Err(Error::cannot(Kind::Fuse, "be intersected", NO_KEYS))
    }

    fn overlap(&self, _: &Fuse) -> Result<Option<Overlap>> {
        Err(Error::cannot(Kind::Fuse, "be compared", NO_KEYS))
    }

    fn mismatch(&self, other: &Fuse) -> Option<Mismatch> {
        Mismatch::between("fingerprint bits", self.fingerprint_bits(), other.fingerprint_bits())
            .or_else(|| Mismatch::between_hashes(self.hasher().id(), other.hasher().id()))
    }
}
