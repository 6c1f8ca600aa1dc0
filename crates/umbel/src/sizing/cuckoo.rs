//! Cuckoo filters: buckets with b slots for fingerprints of f bits; a key has two buckets.
//!
//! A lookup compares a fingerprint with about `2 b load` others, so a non-member is reported with
//! probability 1 - (1 - 1/(2^f - 1))^(2 b load). Since fingerprints have whole bits, the rate
//! halves from one width to the next and is usually well below the one asked for.
//!
//! Whether the filter is smaller than a Bloom filter depends on the rate and on the [`Form`]. The
//! plain form takes fewer than `1.44 log2 1/p` bits per key only below 0.41 %; the semi-sorted
//! form, which saves a bit per slot, below 2.5 %. The often quoted "below 3 %" holds for the
//! semi-sorted form only.
//!
//! ```
//! use umbel::sizing::{CuckooParams, cuckoo::{self, Form, Options}};
//!
//! # fn main() -> umbel::Result<()> {
//! assert!((cuckoo::rate(8, 4, 0.95)? - 0.0294).abs() < 1e-4);
//! assert!((cuckoo::crossover(Form::Plain) - 0.0041).abs() < 1e-4);
//!
//! let params = CuckooParams::for_capacity(1_000_000, 0.001, &Options::default())?;
//! assert_eq!(params.fingerprint_bits, 13);
//! assert!(params.rate < 0.001 && params.load() > 0.94);
//! # Ok(())
//! # }
//! ```
//!
//! # References
//!
//! * B. Fan, D. G. Andersen, M. Kaminsky and M. D. Mitzenmacher. *Cuckoo filter: practically better
//!   than Bloom.* CoNEXT 2014. `FAKM14`

use super::{Decimal, MAX_BITS, check, greatest};
use crate::{Error, Result};
use std::f64::consts::{LN_2, LOG2_E};
use std::ops::RangeInclusive;

/// How the fingerprints of a bucket are stored. Both forms return the same answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Form {
    /// One fingerprint after the other.
    #[default]
    Plain,
    /// Sorted. The upper four bits of four sorted fingerprints have only 3876 states and fit into
    /// 12 bits instead of 16. This saves one bit per key and takes a little more time. Buckets must
    /// have four slots.
    SemiSorted,
}

/// Options of a cuckoo filter beside its capacity and rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// f: the bits of a fingerprint, 2 to 32. `None` derives them from the rate.
    pub fingerprint_bits: Option<u32>,
    /// b: the slots of a bucket, 1, 2, 4 or 8. Four suits most uses: with fewer slots the table
    /// cannot be filled, and with more a fingerprint is compared with more others and needs more
    /// bits.
    pub slots: u32,
    /// How buckets are stored.
    pub form: Form,
    /// The share of slots taken at capacity, at most [`max_load`]. `None` fills the table as
    /// much as possible.
    pub load: Option<f64>,
}

impl Default for Options {
    fn default() -> Options {
        Options { fingerprint_bits: None, slots: 4, form: Form::Plain, load: None }
    }
}

/// The longest fingerprint, in bits.
pub const MAX_FINGERPRINT_BITS: u32 = 32;

/// Returns the share of slots that many keys reliably fill. The first key that finds no room comes
/// at a load of about 0.51, 0.87, 0.96 and 0.99 for 1, 2, 4 and 8 slots. For few keys this load
/// varies, and [`CuckooParams`] leaves more room.
///
/// # Errors
///
/// If `slots` is not 1, 2, 4 or 8.
pub fn max_load(slots: u32) -> Result<f64> {
    Ok(match slots {
        1 => 0.40,
        2 => 0.84,
        4 => 0.95,
        8 => 0.98,
        _ => return Err(Error::parameter("slots", slots, "1, 2, 4 or 8 to a bucket")),
    })
}

/// Returns the bits of a bucket.
pub(crate) const fn bucket_bits(fingerprint_bits: u32, slots: u32, form: Form) -> u64 {
    (match form {
        Form::Plain => fingerprint_bits * slots,
        Form::SemiSorted => 12 + 4 * (fingerprint_bits - 4),
    }) as u64
}

/// Rejects buckets that no filter supports.
pub(crate) fn check_bucket(fingerprint_bits: u32, slots: u32, form: Form) -> Result<()> {
    max_load(slots)?;
    if form == Form::SemiSorted && slots != 4 {
        return Err(Error::parameter("slots", slots, "4 to a bucket in the semi-sorted form"));
    }
    let least = least_fingerprint_bits(form);
    if !(least..=MAX_FINGERPRINT_BITS).contains(&fingerprint_bits) {
        let needs = format!("{least} to {MAX_FINGERPRINT_BITS} bits");
        return Err(Error::parameter("fingerprint bits", fingerprint_bits, needs));
    }
    Ok(())
}

const fn least_fingerprint_bits(form: Form) -> u32 {
    match form {
        Form::Plain => 2,
        Form::SemiSorted => 4,
    }
}

/// Returns the rate of a filter with the share `load` of its slots taken: `1 - (1 - 1/(2^f - 1))^(2
/// b load)`.
///
/// # Errors
///
/// If `load` is not a share from 0 to 1, or no bucket has this shape.
pub fn rate(fingerprint_bits: u32, slots: u32, load: f64) -> Result<f64> {
    check_bucket(fingerprint_bits, slots, Form::Plain)?;
    if !(0.0..=1.0).contains(&load) {
        return Err(Error::parameter("load", load, "a share of the slots, 0 to 1"));
    }
    Ok(any_of(fingerprints(fingerprint_bits), 2.0 * f64::from(slots) * load))
}

/// Returns the rate of a filter of `buckets` buckets that holds `n` distinct keys. Each key has the
/// fingerprint of a given non-member with probability `1/(2^f - 1)`, and lies in one of its buckets
/// with probability `2 / buckets`. This is exact for small filters too.
///
/// # Errors
///
/// If there are fewer than 2 buckets, or an argument is out of range.
pub fn rate_of(buckets: u64, fingerprint_bits: u32, n: u64) -> Result<f64> {
    check_bucket(fingerprint_bits, 4, Form::Plain)?;
    check::load(n)?;
    if buckets < 2 {
        return Err(Error::parameter("buckets", buckets, "at least 2"));
    }
    Ok(any_of(buckets as f64 / 2.0 * fingerprints(fingerprint_bits), n as f64))
}

fn fingerprints(bits: u32) -> f64 {
    2f64.powi(bits as i32) - 1.0
}

/// Returns the probability that an event of probability `1 / one_in` occurs at least once in
/// `tries`.
fn any_of(one_in: f64, tries: f64) -> f64 {
    -(tries * (-1.0 / one_in).ln_1p()).exp_m1()
}

/// Returns the bits per key at rate `p` if fingerprints need not have whole bits: `(log2 1/p + 3) /
/// 0.955`, and one bit less in the semi-sorted form. A Bloom filter needs `1.44 log2 1/p`.
///
/// # Errors
///
/// If `p` is not above 0 and below 1.
pub fn bits_per_key(p: f64, form: Form) -> Result<f64> {
    check::rate(p)?;
    Ok((-p.log2() + slot_overhead(form)) / LITERATURE_LOAD)
}

/// The share of slots that the literature fills in buckets of four.
const LITERATURE_LOAD: f64 = 0.955;

/// Returns the bits of a slot beyond log2 1/p.
fn slot_overhead(form: Form) -> f64 {
    match form {
        Form::Plain => 3.0,
        Form::SemiSorted => 2.0,
    }
}

/// Returns the rate below which a cuckoo filter with four slots per bucket needs fewer bits per key
/// than an ideal Bloom filter.
pub fn crossover(form: Form) -> f64 {
    (-LN_2 * slot_overhead(form) / (LOG2_E * LITERATURE_LOAD - 1.0)).exp()
}

/// The parameters of a cuckoo filter.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CuckooParams {
    /// n: the number of keys planned for.
    pub capacity: u64,
    /// The number of buckets, always even.
    pub buckets: u64,
    /// f: the bits of a fingerprint.
    pub fingerprint_bits: u32,
    /// b: the slots of a bucket.
    pub slots: u32,
    /// How buckets are stored.
    pub form: Form,
    /// The bits of all buckets.
    pub bits: u64,
    /// The rate with `capacity` keys inserted.
    pub rate: f64,
}

impl CuckooParams {
    /// Plans a filter for `n` keys at rate `p`: the smallest table that holds them, with the
    /// shortest fingerprints that meet the rate.
    ///
    /// # Errors
    ///
    /// If an argument or option is out of range, fingerprints of the allowed lengths cannot reach
    /// the rate, or the filter would need more than [`MAX_BITS`].
    pub fn for_capacity(n: u64, p: f64, options: &Options) -> Result<CuckooParams> {
        check::rate(p)?;
        let buckets = buckets_for(n, options)?;
        let keeps = |params: &CuckooParams| params.rate <= p && params.has_room(options);
        let found = fingerprint_bits(options)?.map(|f| CuckooParams::new(n, buckets, f, options)).find(keeps);
        let params = found.ok_or_else(|| match options.fingerprint_bits {
            Some(bits) => Error::contradiction(
                format!("fingerprint bits = {bits}"),
                format!("p = {}", Decimal(p)),
                "allow longer fingerprints or a higher rate".to_string(),
            ),
            None => {
                let needs = format!(
                    "a higher rate: {MAX_FINGERPRINT_BITS} bits of fingerprint are not enough for this one"
                );
                Error::parameter("p", Decimal(p), needs)
            }
        })?;
        params.checked()
    }

    /// Plans a filter for `n` keys whose fingerprints have the length set in the options, by default
    /// [`MAX_FINGERPRINT_BITS`].
    ///
    /// # Errors
    ///
    /// If an argument or option is out of range, or the filter would need more than [`MAX_BITS`].
    pub fn for_fingerprints(n: u64, options: &Options) -> Result<CuckooParams> {
        let bits = fingerprint_bits(options)?;
        CuckooParams::new(n, buckets_for(n, options)?, *bits.end(), options).checked()
    }

    /// Plans a filter for `n` keys in at most `m` bits: the longest fingerprints that fit, and as
    /// many buckets as then fit.
    ///
    /// # Errors
    ///
    /// If `m` bits have no room for `n` keys, or an argument or option is out of range.
    pub fn for_bits(m: u64, n: u64, options: &Options) -> Result<CuckooParams> {
        check::bits(m)?;
        let least = buckets_for(n, options)?;
        let fits = |f: u32| {
            CuckooParams::new(n, even_below(m / bucket_bits(f, options.slots, options.form)), f, options)
        };
        let found = fingerprint_bits(options)?.rev().map(fits).find(|params| params.buckets >= least);
        let params = found.and_then(|params| params.checked().ok());
        params.ok_or_else(|| {
            let needs =
                format!("more bits for {n} keys: a slot for each and as many bits as its fingerprint needs");
            Error::parameter("m", m, needs)
        })
    }

    /// Plans the filter of at most `m` bits that holds the most keys at rate `p`.
    ///
    /// # Errors
    ///
    /// If not even one key fits at rate `p`, or an argument or option is out of range.
    pub fn for_bits_and_rate(m: u64, p: f64, options: &Options) -> Result<CuckooParams> {
        check::bits(m)?;
        check::rate(p)?;
        let most = |f: u32| {
            let buckets = even_below(m / bucket_bits(f, options.slots, options.form));
            let holds = |n| {
                let params = CuckooParams::new(n, buckets, f, options);
                params.rate <= p && params.has_room(options)
            };
            greatest(1..=buckets.saturating_mul(8).max(1), holds)
                .map(|n| CuckooParams::new(n, buckets, f, options))
        };
        let best = fingerprint_bits(options)?.filter_map(most).max_by_key(|params| params.capacity);
        best.ok_or_else(|| Error::parameter("m", m, "more bits: not even one key would have this rate"))
    }

    /// Returns the share of slots taken at capacity.
    pub fn load(&self) -> f64 {
        self.capacity as f64 / (self.buckets as f64 * f64::from(self.slots))
    }

    fn new(capacity: u64, buckets: u64, fingerprint_bits: u32, options: &Options) -> CuckooParams {
        let Options { slots, form, .. } = *options;
        let bits = buckets.saturating_mul(bucket_bits(fingerprint_bits, slots, form));
        let rate = any_of(buckets as f64 / 2.0 * fingerprints(fingerprint_bits), capacity as f64);
        CuckooParams { capacity, buckets, fingerprint_bits, slots, form, bits, rate }
    }

    /// Returns whether all keys will find room: there are enough buckets, and it is very unlikely
    /// that more keys share a fingerprint and both buckets than these buckets can hold.
    fn has_room(&self, options: &Options) -> bool {
        let enough = buckets_for(self.capacity, options).is_ok_and(|least| least <= self.buckets);
        let others = 2.0 * self.capacity as f64 / (self.buckets as f64 * fingerprints(self.fingerprint_bits));
        let too_many = 2 * self.slots as i32;
        let ways: f64 = (1..=too_many + 1).map(f64::from).product();
        let rarely = self.capacity as f64 * others.powi(too_many) / ways < 1e-6;
        // An explicit fingerprint length is used as given.
        enough && (rarely || options.fingerprint_bits.is_some())
    }

    fn checked(self) -> Result<CuckooParams> {
        if self.bits > MAX_BITS {
            let needs =
                format!("fewer keys: they would need {} bits, and a filter has at most 2^48", self.bits);
            return Err(Error::parameter("n", self.capacity, needs));
        }
        Ok(self)
    }
}

/// Returns the fingerprint lengths to choose from. Lengths below five bits are used only if set
/// explicitly: they produce too few different pairs of buckets to fill a large table.
fn fingerprint_bits(options: &Options) -> Result<RangeInclusive<u32>> {
    let range = options.fingerprint_bits.map_or(5..=MAX_FINGERPRINT_BITS, |bits| bits..=bits);
    check_bucket(*range.start(), options.slots, options.form)?;
    Ok(range)
}

fn even_below(buckets: u64) -> u64 {
    buckets / 2 * 2
}

/// Returns the fewest buckets in which `n` keys will find room.
fn buckets_for(n: u64, options: &Options) -> Result<u64> {
    check::capacity(n)?;
    let most = max_load(options.slots)?;
    if let Some(load) = options.load.filter(|load| !(*load > 0.0 && *load <= most)) {
        return Err(Error::parameter(
            "load",
            load,
            format!("a share of the slots above 0 and at most {most}"),
        ));
    }
    // Measured: with more keys it is more likely that one finds no room within 500 moves. The load
    // at the first such failure falls by about 0.0013 with each doubling.
    let load = options.load.unwrap_or(most - 0.0015 * (n as f64 / 2f64.powi(20)).log2().max(0.0));
    let slots = n as f64 / load + slack(options.slots);
    // The conversion saturates for a load close to 0; the result is then rejected for its size.
    Ok(((slots / f64::from(options.slots) / 2.0).ceil() as u64).max(1).saturating_mul(2))
}

/// Returns the slots that small tables need in addition. Measured with this slack, per 100 000
/// tables: with four or eight slots per bucket none refuses a key within its capacity; with two
/// slots about three do; with one slot, where three keys with the same two buckets are enough to
/// fail, about twenty.
fn slack(slots: u32) -> f64 {
    match slots {
        1 => 512.0,
        2 => 128.0,
        4 => 32.0,
        _ => 48.0,
    }
}
