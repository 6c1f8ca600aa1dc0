//! [`Spec`]: the settings of a filter to be built. One `Spec` feeds both [`plan`] and `build`, so
//! they cannot disagree.
//!
//! ```
//! use umbel::spec::plan;
//! use umbel::{Kind, Spec};
//! let plan = plan(Kind::Blocked, &Spec::new(1_000_000, 0.01)?)?;
//! assert_eq!(plan.kind, Kind::Blocked);
//! assert!(plan.rate <= 0.01 && plan.bytes < 1_270_000);
//! // A small blocked filter would vary too much from seed to seed, and fits the cache anyway.
//! assert_eq!(umbel::spec::plan(Kind::Blocked, &Spec::new(1000, 0.01)?)?.kind, Kind::Standard);
//! # Ok::<(), umbel::Error>(())
//! ```

use crate::kind::Category;
use crate::memory::LINE_BYTES;
pub use crate::retrieval::Construction;
use crate::sizing::{self, BlockedParams, Decimal, Given, KPolicy, Params, PartitionedParams};
use crate::{
    AnyFilter, Blocked, Error, Hasher, Kind, Layout, Partitioned, Result, Standard, aging, bloomier,
    counting, cuckoo, deletable, floom, fuse, quotient, scalable, space_code, variable_increment,
};

/// The settings of a filter: any sufficient subset of keys (n), rate (p), bits (m) and hash
/// functions (k), with the hash, the rounding policy and the options of the kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    given: Given,
    policy: KPolicy,
    hasher: Hasher,
    options: KindOptions,
}

/// The options of the individual kinds. All have defaults, and each kind uses only its own.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct KindOptions {
    /// Options of counting filters.
    pub counting: counting::Options,
    /// Options of variable-increment filters.
    pub variable_increment: variable_increment::Options,
    /// Options of deletable filters.
    pub deletable: deletable::Options,
    /// Options of scalable filters.
    pub scalable: scalable::Options,
    /// Options of aging filters.
    pub aging: aging::Options,
    /// Options of Floom filters.
    pub floom: floom::Options,
    /// Options of cuckoo filters.
    pub cuckoo: cuckoo::Options,
    /// Options of quotient filters.
    pub quotient: quotient::Options,
    /// Options of fuse filters.
    pub fuse: fuse::Options,
    /// Options of both kinds of Bloomier filters.
    pub bloomier: bloomier::Options,
    /// Options of space-code and multi-resolution filters.
    pub space_code: space_code::Options,
}

impl Spec {
    /// Specifies a filter for `capacity` keys with a false-positive rate of `rate`.
    ///
    /// # Errors
    ///
    /// If 64-bit digests cannot distinguish that many keys at that rate.
    pub fn new(capacity: u64, rate: f64) -> Result<Spec> {
        Spec::from_given(Given { n: Some(capacity), p: Some(rate), ..Given::default() })
    }

    /// Specifies a filter by other parameters, such as its size.
    ///
    /// # Errors
    ///
    /// As [`Spec::new`].
    pub fn from_given(given: Given) -> Result<Spec> {
        Spec::default().with_given(given)
    }

    /// Replaces the given parameters.
    pub(crate) fn with_given(self, given: Given) -> Result<Spec> {
        if let (Some(n), Some(p)) = (given.n, given.p) {
            check_floor(n, p)?;
        }
        Ok(Spec { given, ..self })
    }

    /// Sets the hash function. The default is the fast one with seed 0.
    pub fn with_hasher(self, hasher: Hasher) -> Spec {
        Spec { hasher, ..self }
    }

    /// Sets how k is rounded.
    pub fn with_policy(self, policy: KPolicy) -> Spec {
        Spec { policy, ..self }
    }

    /// Sets the options of the kind.
    pub fn with_options(self, options: KindOptions) -> Spec {
        Spec { options, ..self }
    }

    /// Returns the options of the kind.
    pub fn options(&self) -> &KindOptions {
        &self.options
    }

    pub(crate) fn options_mut(&mut self) -> &mut KindOptions {
        &mut self.options
    }

    /// Returns the given parameters.
    pub fn given(&self) -> Given {
        self.given
    }

    /// Returns how k is rounded.
    pub fn policy(&self) -> KPolicy {
        self.policy
    }

    /// Returns the hash function that the filter will have.
    pub fn hasher(&self) -> &Hasher {
        &self.hasher
    }
}

/// Fails if collisions of digests would contribute more than a hundredth of the rate. Two keys
/// share a 64-bit digest with probability 2^-64, which adds n / 2^64 to every rate.
fn check_floor(n: u64, p: f64) -> Result<()> {
    let floor = 100.0 * n as f64 / 2f64.powi(64);
    // The sizing rules report any other problem with n or p.
    if n <= sizing::MAX_KEYS && p > 0.0 && p < floor {
        let needs = format!("at least {floor:.1e}: {n} digests of 64 bits cannot be told apart better");
        return Err(Error::parameter("p", Decimal(p), needs));
    }
    Ok(())
}

/// The filter that a [`Spec`] leads to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Plan {
    /// The kind that will be built; a small blocked filter is built as a standard one.
    pub kind: Kind,
    /// The number of keys it is planned for.
    pub capacity: u64,
    /// The number of bits by the formula, before rounding up to whole words or lines.
    pub bits: u64,
    /// The number of bits that the filter will have, as [`Stats::bits`](crate::Stats::bits) reports
    /// them.
    pub stored_bits: u64,
    /// The size of the memory in bytes; that of the file is larger by its header.
    pub bytes: u64,
    /// The number of bits that a key sets.
    pub hashes: u32,
    /// The largest number of cache lines that a lookup touches.
    pub lines_touched: u32,
    /// The requested rate, or the predicted one if none was requested.
    pub rate_asked: f64,
    /// The rate that theory predicts at capacity for the exact number of bits.
    pub rate: f64,
}

/// Computes the filter of this kind that the specification leads to. A blocked filter that would be
/// too small for a steady rate is built as a standard one.
///
/// # Errors
///
/// If the settings are not sufficient, contradict each other, or describe a filter that would
/// answer "yes" to every key.
pub fn plan(kind: Kind, spec: &Spec) -> Result<Plan> {
    let planned = kind.plan(spec);
    if kind != Kind::Blocked {
        return planned;
    }
    let tiny = spec.given.m.is_some_and(|m| m < sizing::blocked::STEADY_BITS);
    match planned {
        Ok(plan) if plan.stored_bits < sizing::blocked::STEADY_BITS => Kind::Standard.plan(spec),
        Err(_) if tiny => Kind::Standard.plan(spec),
        planned => planned,
    }
}

/// The largest filter that is built to predict its rate. In a larger one, a few bits more make no
/// difference.
const MAX_TRIED_BYTES: u64 = 64 << 10;

/// Predicts the rate at capacity of the filter that is built. It has [`Plan::stored_bits`] bits, a few
/// more than [`Plan::rate`] is computed for.
///
/// ```
/// use umbel::spec::{plan, stored_rate};
/// use umbel::{Kind, Spec};
/// let spec = Spec::new(7, 0.01)?;
/// let plan = plan(Kind::Standard, &spec)?;
/// assert_eq!((plan.bits, plan.stored_bits), (68, 128));
/// assert!(plan.rate > 0.009 && stored_rate(&plan, &spec)? < 0.001);
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// If the filter cannot be built, or its rate cannot be predicted.
pub fn stored_rate(plan: &Plan, spec: &Spec) -> Result<f64> {
    let is_rounded = plan.stored_bits != plan.bits && plan.bytes <= MAX_TRIED_BYTES;
    if !is_rounded || plan.kind.category() != Category::Set || plan.kind.capabilities().fixed {
        return Ok(plan.rate);
    }
    AnyFilter::build(plan.kind, spec)?.predicted_rate(plan.capacity)
}

/// Returns the layout of a standard filter and its plan.
pub(crate) fn standard(spec: &Spec) -> Result<(Standard, Plan)> {
    let params = spec.given.solve(spec.policy)?;
    // Keep a size that the caller requested. Round any other up to whole words, so that the filter
    // can be folded in half at least six times.
    let bits = if spec.given.m.is_some() { params.bits } else { params.bits.next_multiple_of(64) };
    let layout = Standard::new(bits, params.hashes)?;
    let rate = sizing::rate::expected(params.bits, params.capacity, params.hashes)?;
    let plan = spec.planned(&layout, params.capacity, params.bits, rate, params.hashes)?;
    Ok((layout, plan))
}

/// Returns the layout of a partitioned filter and its plan.
pub(crate) fn partitioned(spec: &Spec) -> Result<(Partitioned, Plan)> {
    let Given { n, p, m, k } = spec.given;
    let params = match (n, p, m, k) {
        (Some(n), Some(p), None, None) => PartitionedParams::for_capacity(n, p)?,
        (Some(n), Some(p), None, Some(k)) => PartitionedParams::for_hashes(n, p, k)?,
        (None, Some(p), Some(m), None) => PartitionedParams::for_bits_and_rate(m, p)?,
        (None, Some(p), Some(m), Some(k)) => PartitionedParams::for_bits_hashes_and_rate(m, k, p)?,
        // Otherwise the rules of the standard filter determine m and k, and the slices follow.
        _ => {
            let params = spec.given.solve(spec.policy)?;
            PartitionedParams::for_bits(params.bits, params.hashes)?
        }
    };
    let capacity = n.unwrap_or(params.capacity);
    let rate = sizing::partitioned::rate(params.slice_bits, capacity, params.hashes)?;
    check_rate(&spec.given, rate, capacity, params.bits, None)?;
    // Unless the caller requested a size, use slices of whole bytes, which can be folded in half
    // three times.
    let slice_bits = if m.is_some() { params.slice_bits } else { params.slice_bits.next_multiple_of(8) };
    let layout = Partitioned::new(slice_bits, params.hashes)?;
    let plan = spec.planned(&layout, capacity, params.bits, rate, params.hashes)?;
    Ok((layout, plan))
}

/// Returns the layout of a blocked filter of any size and its plan.
pub(crate) fn blocked(spec: &Spec) -> Result<(Blocked, Plan)> {
    let Given { n, p, m, k } = spec.given;
    let params = match (n, p, m, k.map(lines_per_key).transpose()?) {
        (Some(n), Some(p), None, None) => BlockedParams::for_capacity(n, p)?,
        (Some(n), Some(p), None, Some(lines)) => BlockedParams::with_lines_per_key(n, p, lines)?,
        (Some(n), _, Some(m), None) => BlockedParams::for_bits(m, n)?,
        (Some(n), _, Some(m), Some(lines)) => BlockedParams::for_bits_and_lines(m, n, lines)?,
        (None, Some(p), Some(m), None) => BlockedParams::for_bits_and_rate(m, p)?,
        (None, Some(p), Some(m), Some(lines)) => BlockedParams::for_bits_lines_and_rate(m, lines, p)?,
        // Otherwise the rules of the standard filter determine the missing parameters, or report
        // them.
        (_, _, _, lines) => {
            let solved = spec.given.solve(spec.policy)?;
            let bits = solved.bits.max(sizing::blocked::SMALLEST_BITS);
            match lines {
                Some(lines) => BlockedParams::for_bits_and_lines(bits, solved.capacity, lines)?,
                None => BlockedParams::for_bits(bits, solved.capacity)?,
            }
        }
    };
    check_rate(&spec.given, params.rate, params.capacity, params.bits, None)?;
    let layout = Blocked::new(params.lines, params.lines_per_key)?;
    let plan = spec.planned(&layout, params.capacity, params.bits, params.rate, params.lines_per_key)?;
    Ok((layout, plan))
}

/// Fails if the rate that follows from the other settings is higher than the requested one.
///
/// The error names the setting that the caller chose: the size, else `option` (such as the bits of
/// a fingerprint), else k.
pub(crate) fn check_rate(
    given: &Given,
    rate: f64,
    n: u64,
    bits: u64,
    option: Option<(&'static str, u32)>,
) -> Result<()> {
    let Some(p) = given.p.filter(|p| rate > *p) else { return Ok(()) };
    let setting = match (given.m, option, given.k) {
        (None, Some((name, value)), _) => format!("{name} = {value}"),
        (None, None, Some(k)) => format!("k = {k}"),
        _ => format!("m = {} bits", given.m.unwrap_or(bits)),
    };
    let rate = Decimal::rounded(rate);
    let why = format!("n = {n} keys have a rate of {rate} with it; allow more bits or a higher rate");
    Err(Error::contradiction(setting, format!("p = {}", Decimal(p)), why))
}

/// Returns the number of lines per key for k, which must be a multiple of eight: a key sets eight
/// bits in each of its lines.
fn lines_per_key(k: u32) -> Result<u32> {
    if k.is_multiple_of(8) && (1..=4).contains(&(k / 8)) {
        return Ok(k / 8);
    }
    let needs =
        "8, 16, 24 or 32, or to be left open: a blocked filter sets eight bits in each of one to four lines";
    Err(Error::parameter("k", k, needs))
}

impl Spec {
    /// Returns the plan for a layout.
    fn planned<L: Layout>(
        &self,
        layout: &L,
        capacity: u64,
        bits: u64,
        rate: f64,
        lines_touched: u32,
    ) -> Result<Plan> {
        self.finish(Plan {
            kind: L::KIND,
            capacity,
            bits,
            stored_bits: layout.bits(),
            bytes: layout.lines() * LINE_BYTES as u64,
            hashes: layout.hashes(),
            lines_touched,
            rate_asked: self.given.p.unwrap_or(rate),
            rate,
        })
    }

    /// Returns the parameters of a standard filter that is part of another kind and its rate, where
    /// `m` is its share of the memory. If a whole k would miss the requested rate, k is kept and the
    /// bits or the keys are adjusted. Keys, bits and rate may contradict each other; the kind
    /// [checks](check_rate) that, because it knows the rate of all its parts together.
    pub(crate) fn standard_part(&self, m: Option<u64>) -> Result<(Params, f64)> {
        let Given { n, p, k, .. } = self.given;
        let given = Given { n, p: if n.is_some() && m.is_some() { None } else { p }, m, k };
        let expected = |params: &Params| sizing::rate::expected(params.bits, params.capacity, params.hashes);
        let mut params = given.solve(self.policy)?;
        if let Some(p) = given.p
            && expected(&params)? > p
        {
            params = Given { k: Some(params.hashes), ..given }.solve(self.policy)?;
        }
        Ok((params, expected(&params)?))
    }

    /// Returns the plan, or an error if it would be useless.
    pub(crate) fn finish(&self, plan: Plan) -> Result<Plan> {
        check_floor(plan.capacity, self.given.p.unwrap_or(1.0))?;
        if plan.rate_asked >= 1.0 {
            let capacity = plan.capacity;
            let needs =
                format!("far more bits for {capacity} keys: with these, it would say yes to everything");
            return Err(Error::parameter("m", plan.bits, needs));
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AnyFilter;

    #[test]
    fn the_plan_of_the_word_list_example_has_the_literature_numbers() {
        let plan = plan(Kind::Standard, &Spec::new(58110, 0.04).unwrap()).unwrap();
        assert_eq!((plan.bits, plan.hashes), (389_318, 5));
        // The classic formula is 3e-7 lower.
        assert!((plan.rate - 0.040_221_52).abs() < 1e-8);
        assert_eq!(plan.stored_bits % 64, 0);
    }

    #[test]
    fn a_rate_below_the_collision_floor_of_the_digest_is_refused() {
        assert!(Spec::new(1 << 40, 1e-8).unwrap_err().to_string().contains("cannot be told apart"));
        assert!(Spec::new(1 << 40, 1e-5).is_ok());
        let given = Given { m: Some(1 << 48), p: Some(1e-9), ..Given::default() };
        assert!(plan(Kind::Standard, &Spec::from_given(given).unwrap()).is_err());
    }

    #[test]
    fn every_invalid_parameter_is_named_in_the_error() {
        for (n, p, name) in [(0, 0.01, "n"), (1, 0.0, "p"), (1, 1.0, "p"), (1, f64::NAN, "p"), (1, -1.0, "p")]
        {
            for kind in [Kind::Standard, Kind::Partitioned, Kind::Blocked] {
                let result = Spec::new(n, p).and_then(|spec| plan(kind, &spec));
                match result {
                    Err(Error::Parameter { name: found, .. }) => assert_eq!(found, name, "{kind} {n} {p}"),
                    other => panic!("{kind} {n} {p}: {other:?}"),
                }
            }
        }
    }

    #[test]
    fn a_plan_never_promises_an_impossible_rate() {
        for (m, k, p) in [(1_000_000, 3, 0.001), (1_000_000, 20, 0.0001), (1_000_000, 1, 0.3)] {
            let given = Given { m: Some(m), k: Some(k), p: Some(p), ..Given::default() };
            for kind in [Kind::Standard, Kind::Partitioned] {
                let plan = plan(kind, &Spec::from_given(given).unwrap()).unwrap();
                assert!(plan.rate <= p && plan.hashes == k, "{kind} {m} {k} {p}: {plan:?}");
            }
        }
        for kind in [Kind::Standard, Kind::Partitioned, Kind::Blocked] {
            let given = Given { n: Some(1_000_000), m: Some(8_000_000), p: Some(0.01), ..Given::default() };
            assert!(plan(kind, &Spec::from_given(given).unwrap()).is_err(), "{kind}: too few bits");
        }
        // A number of hashes that no blocked filter has is refused. The plan does not fall back to
        // another kind.
        let given = Given { n: Some(100_000_000), p: Some(0.01), k: Some(7), ..Given::default() };
        let error = plan(Kind::Blocked, &Spec::from_given(given).unwrap()).unwrap_err();
        assert!(error.to_string().contains("eight bits in each of"), "{error}");
    }

    #[test]
    fn any_sufficient_subset_leads_to_a_plan_of_every_kind() {
        let (n, p, m, k) = (Some(1_000_000), Some(0.01), Some(12_000_000), Some(8));
        for kind in [Kind::Standard, Kind::Partitioned, Kind::Blocked] {
            for given in [
                Given { n, p, ..Given::default() },
                Given { n, p, k, ..Given::default() },
                Given { n, m, ..Given::default() },
                Given { n, m, k, ..Given::default() },
                Given { m, p, ..Given::default() },
                Given { m, p, k, ..Given::default() },
                Given { n, k, ..Given::default() },
                Given { m, k, ..Given::default() },
                Given { n, p, m, ..Given::default() },
                Given { n, p, m, k },
            ] {
                let plan = plan(kind, &Spec::from_given(given).unwrap()).unwrap();
                assert_eq!(plan.kind, kind, "{given:?}");
                assert!(given.n.is_none_or(|n| n == plan.capacity), "{given:?} {plan:?}");
                assert!(given.k.is_none_or(|k| k == plan.hashes), "{given:?} {plan:?}");
                // All slices have the same length, so a partitioned filter may be up to one bit per
                // slice larger.
                assert!(given.m.is_none_or(|m| plan.stored_bits < m + 8), "{given:?} {plan:?}");
                // The policy that rounds k may miss the rate by the cost of rounding.
                assert!(given.p.is_none_or(|p| plan.rate <= p * 1.02), "{given:?} {plan:?}");
                let filter = AnyFilter::build(kind, &Spec::from_given(given).unwrap()).unwrap();
                let predicted = filter.predicted_rate(plan.capacity).unwrap();
                assert!((predicted / plan.rate - 1.0).abs() < 0.001, "{given:?} {plan:?}");
            }
        }
    }

    #[test]
    fn a_filter_that_would_say_yes_to_everything_is_refused() {
        for kind in [Kind::Standard, Kind::Partitioned, Kind::Blocked] {
            let given = Given { n: Some(1_000_000), m: Some(512), ..Given::default() };
            let error = plan(kind, &Spec::from_given(given).unwrap()).unwrap_err();
            assert!(error.to_string().contains("yes to everything"), "{kind}: {error}");
        }
    }

    #[test]
    fn planned_filters_can_be_folded() {
        for capacity in [1, 999, 34_567, 1_000_001] {
            let spec = Spec::new(capacity, 0.003).unwrap();
            for kind in [Kind::Standard, Kind::Partitioned, Kind::Blocked] {
                let filter = AnyFilter::build(kind, &spec).unwrap();
                assert!(filter.fold().and_then(|half| half.fold()).is_ok(), "{filter:?}");
            }
        }
    }

    #[test]
    fn a_requested_size_is_kept() {
        let given = Given { n: Some(1_000_000), m: Some(16_000_000), ..Given::default() };
        let spec = Spec::from_given(given).unwrap();
        for kind in [Kind::Standard, Kind::Partitioned, Kind::Blocked] {
            let plan = plan(kind, &spec).unwrap();
            assert!(plan.stored_bits <= 16_000_100, "{kind}");
            assert!(plan.rate < 0.001, "{kind} {}", plan.rate);
        }
        let given = Given { p: Some(0.01), m: Some(16_000_000), ..Given::default() };
        let spec = Spec::from_given(given).unwrap();
        for kind in [Kind::Standard, Kind::Partitioned, Kind::Blocked] {
            let plan = plan(kind, &spec).unwrap();
            assert!((1_500_000..1_700_000).contains(&plan.capacity), "{kind} {}", plan.capacity);
        }
    }
}
