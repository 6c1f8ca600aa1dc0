//! [`Distinct`]: the number of distinct keys, by HyperLogLog.

use super::{add_to_total, finish, sketch_methods, summarize, total};
use crate::arch::{Kernel, Simd};
use crate::file::FormatError;
use crate::memory::{LINE_BYTES, Mover, Words, byte_place};
use crate::sizing::{Cardinality, Estimate};
use crate::structure::{Head, Parts, REGISTERS, check_tail, small};
use crate::tile;
use crate::{Batch, Capabilities, Digest, Error, Hasher, Key, Kind, Mismatch, Result, Stats, Structure};
use std::convert::Infallible;
use std::fmt;

/// Estimates the number of distinct keys: HyperLogLog with Ertl's estimator.
///
/// ```
/// use umbel::sketch::Distinct;
/// let mut visitors = Distinct::with_error(0.01)?;
/// visitors.insert_batch(&(0..50_000u64).collect::<Vec<_>>());
/// let mut others = Distinct::with_error(0.01)?;
/// others.insert_batch(&(30_000..100_000u64).collect::<Vec<_>>());
/// visitors.union(&others)?;
/// let count = visitors.count();
/// assert!((count.value - 100_000.0).abs() < 3.0 * count.standard_error);
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # How it works
///
/// The first p bits of a digest choose one of m = 2^p registers. The position of the first one
/// among the other bits is the rank of the digest, and a register holds the highest rank of its
/// digests. Rank r occurs once in 2^r digests, so the ranks indicate how many digests there were:
///
/// ```text
/// digest     0110 0010 1011 1...        p = 4
///            └──┘ └─┘
///       register 6   rank 3
/// registers  2 0 4 1 0 1 3 5 ...
/// ```
///
/// The same key always has the same register and the same rank, so it counts once however often it
/// is inserted. A union takes the higher rank of each register: it is exactly the sketch of both
/// streams.
///
/// # When to use it
///
/// Take it to count distinct keys without storing them: visitors, addresses, lines. It needs 2^p
/// bytes, whatever the number of keys: 16 KiB for a standard error of 0.8 %, 256 KiB for 0.2 %. The
/// estimator is unbiased from the first key on, and nearly exact as long as most registers are
/// empty. An insertion costs one hash and touches one byte of memory.
///
/// # References
///
/// * P. Flajolet, É. Fusy, O. Gandouet and F. Meunier. *HyperLogLog: the analysis of a
///   near-optimal cardinality estimation algorithm.* AofA 2007. `FFGM07`
/// * O. Ertl. *New cardinality estimation algorithms for HyperLogLog sketches.*
///   arXiv:1702.01284, 2017. `Ertl17`
pub struct Distinct {
    head: Head,
    /// p: the bits of a digest that choose its register.
    precision: u32,
    /// One byte for each register.
    registers: Words,
}

const MIN_PRECISION: u32 = 4;
const MAX_PRECISION: u32 = 24;
const DEFAULT_PRECISION: u32 = 14;

/// The number of possible ranks at the lowest precision, including 0 for an empty register.
const RANKS: usize = (65 - MIN_PRECISION) as usize + 1;

sketch_methods!(Distinct);

impl Default for Distinct {
    /// Returns an empty sketch of precision 14: 16 KiB, a standard error of 0.8 %.
    ///
    /// # Panics
    ///
    /// If the system is out of memory.
    fn default() -> Distinct {
        Distinct::with_precision(DEFAULT_PRECISION).expect("16 KiB of memory")
    }
}

impl Distinct {
    /// Creates an empty sketch whose relative standard error is at most `error`: two thirds of all
    /// estimates are off by less than that, and 95 % by less than twice that.
    ///
    /// # Errors
    ///
    /// If `error` is below 0.000254, which would need more than 16 MiB, or there is not enough
    /// memory.
    pub fn with_error(error: f64) -> Result<Distinct> {
        let fits = |precision: &u32| relative_error(*precision) <= error;
        let precision = (MIN_PRECISION..=MAX_PRECISION).find(fits).ok_or_else(|| {
            let least = relative_error(MAX_PRECISION);
            Error::parameter("error", error, format!("a standard error of at least {least:.6}"))
        })?;
        Distinct::with_precision(precision)
    }

    /// Creates an empty sketch of 2^p registers of one byte each.
    ///
    /// # Errors
    ///
    /// If `precision` is not 4 to 24, or there is not enough memory.
    pub fn with_precision(precision: u32) -> Result<Distinct> {
        check(precision)?;
        let registers = Words::zeroed(lines(precision))?;
        Ok(Distinct { head: Head::new(Hasher::default()), precision, registers })
    }

    /// Returns p: the sketch has 2^p registers.
    pub fn precision(&self) -> u32 {
        self.precision
    }

    /// Returns the relative standard error of the count of many keys: 1.04 / √m, slightly more
    /// below 256 registers.
    pub fn standard_error(&self) -> f64 {
        relative_error(self.precision)
    }

    /// Returns the number of keys inserted, including repeated ones; `None` if there were more than
    /// 2^64 - 2.
    pub fn inserted(&self) -> Option<u64> {
        self.head.inserted
    }

    /// Inserts `key`.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) {
        self.insert_digest(key.digest(&self.head.hasher));
    }

    /// Inserts the key with this digest.
    #[inline]
    pub fn insert_digest(&mut self, digest: Digest) {
        let (register, rank) = place(self.precision, digest);
        let register = &mut self.registers.as_bytes_mut()[register];
        *register = rank.max(*register);
        add_to_total(&mut self.head, 1);
    }

    /// Inserts the keys with these digests, any number of them.
    #[inline]
    pub fn insert_tile(&mut self, digests: &[Digest]) {
        let registers = self.registers.as_bytes_mut();
        self.head.level.run(Raise { registers, precision: self.precision, digests });
        add_to_total(&mut self.head, digests.len() as u64);
    }

    /// Inserts many keys; the fast way.
    pub fn insert_batch<B: Batch + ?Sized>(&mut self, keys: &B) {
        let hasher = self.head.hasher.clone();
        let Ok(()) = tile::each(keys, &hasher, |digests| {
            self.insert_tile(digests);
            Ok::<(), Infallible>(())
        });
    }

    /// Returns whether `key` may have been inserted. This excludes most absent keys only while the
    /// sketch is almost empty.
    pub(crate) fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        let (register, rank) = place(self.precision, key.digest(&self.head.hasher));
        self.registers.as_bytes()[register] >= rank
    }

    /// Estimates the number of distinct keys, with its standard error.
    pub fn count(&self) -> Estimate {
        let (m, most) = (f64::from(1 << self.precision), max_rank(self.precision));
        let counts = self.histogram();
        let count = |rank: usize| f64::from(counts[rank]);
        let mut z = m * tau(1.0 - count(most) / m);
        for rank in (1..most).rev() {
            z = 0.5 * (z + count(rank));
        }
        z += m * sigma(count(0) / m);
        let value = m * m / (2.0 * std::f64::consts::LN_2 * z);
        // Few keys are in effect counted by the registers they hit, which is more accurate.
        let load = value / m;
        let by_hits = (m * (load.exp_m1() - load)).sqrt();
        Estimate { value, standard_error: by_hits.min(relative_error(self.precision) * value) }
    }

    /// Returns the first difference that prevents a union of the two, if there is one.
    pub fn mismatch(&self, other: &Distinct) -> Option<Mismatch> {
        Mismatch::between("precision", self.precision, other.precision)
            .or_else(|| Mismatch::between_hashes(self.head.hasher.id(), other.head.hasher.id()))
    }

    /// Turns this sketch into the one that inserting the keys of both would have produced.
    ///
    /// # Errors
    ///
    /// If precision, hash or seed differ. Neither sketch is changed then.
    pub fn union(&mut self, other: &Distinct) -> Result<()> {
        Mismatch::refuse(self.mismatch(other))?;
        for (ours, theirs) in self.registers.as_bytes_mut().iter_mut().zip(other.registers.as_bytes()) {
            *ours = (*ours).max(*theirs);
        }
        add_to_total(&mut self.head, total(&other.head));
        Ok(())
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.registers.words_mut().fill(0);
        self.head = self.head.emptied();
    }

    /// Measures how full the sketch is; its cells are the registers.
    pub fn stats(&self) -> Stats {
        let cells = 1 << self.precision;
        Stats {
            cells,
            used_cells: cells - u64::from(self.histogram()[0]),
            hashes: 1,
            bits: 8 * cells,
            bytes: size_of_val(self.registers.lines()) as u64,
            estimate: Cardinality::Estimated(self.count()),
            details: vec![("standard error", self.standard_error())],
            ..Stats::from_structure(self)
        }
    }

    /// Counts the registers of each rank.
    fn histogram(&self) -> [u32; RANKS] {
        let mut counts = [0; RANKS];
        let registers = self.registers.as_bytes();
        for rank in registers {
            // Contents that are not verified yet may be anything.
            counts[usize::from(*rank).min(max_rank(self.precision))] += 1;
        }
        // The bytes after the last register are zero and must not be counted.
        counts[0] -= (registers.len() - (1 << self.precision)) as u32;
        counts
    }
}

/// Returns the highest rank: that of a digest whose other bits are all zero.
const fn max_rank(precision: u32) -> usize {
    (65 - precision) as usize
}

fn lines(precision: u32) -> u64 {
    (1u64 << precision).div_ceil(LINE_BYTES as u64)
}

fn check(precision: u32) -> Result<()> {
    if !(MIN_PRECISION..=MAX_PRECISION).contains(&precision) {
        let needs = format!("{MIN_PRECISION} to {MAX_PRECISION}");
        return Err(Error::parameter("precision", precision, needs));
    }
    Ok(())
}

/// Returns the relative standard error, with the constants of Flajolet et al. for few registers.
fn relative_error(precision: u32) -> f64 {
    let constant = match precision {
        4 => 1.106,
        5 => 1.070,
        6 => 1.054,
        7 => 1.046,
        _ => 1.04,
    };
    constant / f64::from(1 << precision).sqrt()
}

/// Returns the register of a digest, as the index of its byte in memory, and its rank.
#[inline(always)]
fn place(precision: u32, digest: Digest) -> (usize, u8) {
    let bits = digest.get();
    let register = (bits >> (64 - precision)) as usize;
    // A one-bit below the other bits bounds the rank.
    let rank = (bits << precision | 1 << (precision - 1)).leading_zeros() as u8 + 1;
    (byte_place(register), rank)
}

/// A kernel that raises the registers of digests.
struct Raise<'a> {
    registers: &'a mut [u8],
    precision: u32,
    digests: &'a [Digest],
}

impl Kernel for Raise<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for digest in self.digests {
            let (register, rank) = place(self.precision, *digest);
            let register = &mut self.registers[register];
            *register = rank.max(*register);
        }
    }
}

/// Returns x + Σ x^(2^k) 2^(k-1): the contribution of empty registers.
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

/// Returns (1 - x - Σ (1 - x^(2^-k))² 2^-k) / 3: the contribution of registers of the highest rank.
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x).powi(2) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

impl fmt::Debug for Distinct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = size_of_val(self.registers.lines()) as u64;
        summarize(f, "Distinct", &[("precision", &self.precision)], bytes, &self.head)
    }
}

impl Structure for Distinct {
    const KIND: Kind = Kind::Distinct;

    const CAPABILITIES: Capabilities = Capabilities { union: true, absorb: true, ..Capabilities::NOTHING };

    fn try_clone(&self) -> Result<Distinct> {
        Ok(Distinct { head: self.head.clone(), registers: self.registers.try_clone()?, ..*self })
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn head_mut(&mut self) -> &mut Head {
        &mut self.head
    }

    fn params(&self) -> Vec<u64> {
        vec![self.precision.into()]
    }

    fn sections(&self) -> Vec<(u32, &Words)> {
        vec![(REGISTERS, &self.registers)]
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.registers.relocate(mover);
    }

    fn restore(mut parts: Parts) -> Result<Distinct> {
        let [precision] = parts.params()?.map(small);
        check(precision)?;
        let registers = parts.section(REGISTERS, lines(precision))?;
        Ok(Distinct { head: finish(parts)?, precision, registers })
    }

    fn check_contents(&self) -> Result<(), FormatError> {
        check_tail(&self.registers, 8 << self.precision)?;
        let most = max_rank(self.precision) as u8;
        match self.registers.as_bytes().iter().find(|rank| **rank > most) {
            Some(rank) => Err(FormatError::invalid(format!("a register has rank {rank}, above {most}"))),
            None => Ok(()),
        }
    }
}
