//! From what a caller wants to the filter that will be built: one [`Spec`] feeds both [`plan`] and `build`, so that
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

use crate::memory::LINE_BYTES;
pub use crate::retrieval::Construction;
use crate::sizing::{self, BlockedParams, Given, KPolicy, Params, PartitionedParams};
use crate::{
    Blocked, Error, Hasher, Kind, Layout, Partitioned, Result, Standard, aging, bloomier, counting, cuckoo,
    deletable, floom, fuse, quotient, scalable, space_code, variable_increment,
};

/// What a filter is to be: any sufficient subset of keys (n), rate (p), bits (m) and hash functions (k), with the
/// hash and the rounding policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    given: Given,
    policy: KPolicy,
    hasher: Hasher,
    options: KindOptions,
}

/// What only some kinds ask for. Everything has a default, and each kind looks at its own.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct KindOptions {
    /// Of counting filters.
    pub counting: counting::Options,
    /// Of variable-increment filters.
    pub variable_increment: variable_increment::Options,
    /// Of deletable filters.
    pub deletable: deletable::Options,
    /// Of scalable filters.
    pub scalable: scalable::Options,
    /// Of aging filters.
    pub aging: aging::Options,
    /// Of Floom filters.
    pub floom: floom::Options,
    /// Of cuckoo filters.
    pub cuckoo: cuckoo::Options,
    /// Of quotient filters.
    pub quotient: quotient::Options,
    /// Of fuse filters.
    pub fuse: fuse::Options,
    /// Of Bloomier filters, both kinds.
    pub bloomier: bloomier::Options,
    /// Of space-code and multi-resolution filters.
    pub space_code: space_code::Options,
}

impl Spec {
    /// A filter for `capacity` keys with a false-positive rate of `rate`.
    pub fn new(capacity: u64, rate: f64) -> Result<Spec> {
        Spec::from_given(Given { n: Some(capacity), p: Some(rate), ..Given::default() })
    }

    /// A filter of which something else is known, such as its size.
    pub fn from_given(given: Given) -> Result<Spec> {
        Spec::default().with_given(given)
    }

    /// With this knowledge instead.
    pub(crate) fn with_given(self, given: Given) -> Result<Spec> {
        if let (Some(n), Some(p)) = (given.n, given.p) {
            check_floor(n, p)?;
        }
        Ok(Spec { given, ..self })
    }

    /// With this hash instead of the fast one with seed 0.
    pub fn with_hasher(self, hasher: Hasher) -> Spec {
        Spec { hasher, ..self }
    }

    /// With this way of rounding k.
    pub fn with_policy(self, policy: KPolicy) -> Spec {
        Spec { policy, ..self }
    }

    /// With what only some kinds ask for.
    pub fn with_options(self, options: KindOptions) -> Spec {
        Spec { options, ..self }
    }

    /// What only some kinds ask for.
    pub fn options(&self) -> &KindOptions {
        &self.options
    }

    pub(crate) fn options_mut(&mut self) -> &mut KindOptions {
        &mut self.options
    }

    /// What is known of the filter.
    pub fn given(&self) -> Given {
        self.given
    }

    /// How k is rounded.
    pub fn policy(&self) -> KPolicy {
        self.policy
    }

    /// The hash the filter will have.
    pub fn hasher(&self) -> &Hasher {
        &self.hasher
    }
}

/// Two keys share a 64-bit digest with probability 2^-64, which adds n / 2^64 to every rate; it has to stay below one
/// hundredth of it.
fn check_floor(n: u64, p: f64) -> Result<()> {
    let floor = 100.0 * n as f64 / 2f64.powi(64);
    // Anything else that is wrong with n or p has its own message, from the sizing rules.
    if n <= sizing::MAX_KEYS && p > 0.0 && p < floor {
        let needs = format!("at least {floor:.1e}: {n} digests of 64 bits cannot be told apart better");
        return Err(Error::parameter("p", p, needs));
    }
    Ok(())
}

/// The filter a [`Spec`] leads to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Plan {
    /// The kind that will be built; a small blocked filter is built as a standard one.
    pub kind: Kind,
    /// How many keys it is for.
    pub capacity: u64,
    /// The bits by the formula, before rounding up to whole words or lines.
    pub bits: u64,
    /// The bits that keys can land on.
    pub stored_bits: u64,
    /// The memory, and to within a header the file.
    pub bytes: u64,
    /// The bits a key sets.
    pub hashes: u32,
    /// The most cache lines a lookup touches.
    pub lines_touched: u32,
    /// The rate asked for, or the predicted one when none was.
    pub rate_asked: f64,
    /// The rate the theory predicts at capacity for the exact number of bits.
    pub rate: f64,
}

/// What filter of this kind the specification leads to. A blocked filter that would be too small for a steady rate is
/// built as a standard one.
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

/// The layout of a standard filter, and its plan.
pub(crate) fn standard(spec: &Spec) -> Result<(Standard, Plan)> {
    let params = spec.given.solve(spec.policy)?;
    // A size that the caller has named is kept. Any other is rounded up to whole words, so that the filter can be
    // folded in half at least six times.
    let bits = if spec.given.m.is_some() { params.bits } else { params.bits.next_multiple_of(64) };
    let layout = Standard::new(bits, params.hashes)?;
    let plan = spec.planned(&layout, params.capacity, params.bits, params.rate, params.hashes)?;
    Ok((layout, plan))
}

/// The layout of a partitioned filter, and its plan.
pub(crate) fn partitioned(spec: &Spec) -> Result<(Partitioned, Plan)> {
    let Given { n, p, m, k } = spec.given;
    let params = match (n, p, m, k) {
        (Some(n), Some(p), None, None) => PartitionedParams::for_capacity(n, p)?,
        (Some(n), Some(p), None, Some(k)) => PartitionedParams::for_hashes(n, p, k)?,
        (None, Some(p), Some(m), None) => PartitionedParams::for_bits_and_rate(m, p)?,
        (None, Some(p), Some(m), Some(k)) => PartitionedParams::for_bits_hashes_and_rate(m, k, p)?,
        // For everything else the standard filter's rules give m and k, and the slices follow.
        _ => {
            let params = spec.given.solve(spec.policy)?;
            PartitionedParams::for_bits(params.bits, params.hashes)?
        }
    };
    let capacity = n.unwrap_or(params.capacity);
    let rate = sizing::partitioned::rate(params.slice_bits, capacity, params.hashes)?;
    check_rate(&spec.given, rate, capacity, params.bits, None)?;
    // Slices of whole bytes, unless the caller has named a size: they can be folded in half three times.
    let slice_bits = if m.is_some() { params.slice_bits } else { params.slice_bits.next_multiple_of(8) };
    let layout = Partitioned::new(slice_bits, params.hashes)?;
    let plan = spec.planned(&layout, capacity, params.bits, rate, params.hashes)?;
    Ok((layout, plan))
}

/// The layout of a blocked filter, and its plan, whatever its size.
pub(crate) fn blocked(spec: &Spec) -> Result<(Blocked, Plan)> {
    let Given { n, p, m, k } = spec.given;
    let params = match (n, p, m, k.map(lines_per_key).transpose()?) {
        (Some(n), Some(p), None, None) => BlockedParams::for_capacity(n, p)?,
        (Some(n), Some(p), None, Some(lines)) => BlockedParams::with_lines_per_key(n, p, lines)?,
        (Some(n), _, Some(m), None) => BlockedParams::for_bits(m, n)?,
        (Some(n), _, Some(m), Some(lines)) => BlockedParams::for_bits_and_lines(m, n, lines)?,
        (None, Some(p), Some(m), None) => BlockedParams::for_bits_and_rate(m, p)?,
        (None, Some(p), Some(m), Some(lines)) => BlockedParams::for_bits_lines_and_rate(m, lines, p)?,
        // For everything else the standard filter's rules give what is missing, or say what.
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

/// Fails if the rate that follows from the other settings is higher than the one that was asked for.
///
/// The error names the setting that the caller has chosen: the size, else `option` (such as the bits of a fingerprint),
/// else k.
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
        _ => format!("m = {bits} bits"),
    };
    let why = format!("n = {n} keys have a rate of {rate:.3e} with it; allow more bits or a higher rate");
    Err(Error::contradiction(setting, format!("p = {p}"), why))
}

/// A key sets eight bits in each of its lines.
fn lines_per_key(k: u32) -> Result<u32> {
    if k.is_multiple_of(8) && (1..=4).contains(&(k / 8)) {
        return Ok(k / 8);
    }
    let needs =
        "8, 16, 24 or 32, or to be left open: a blocked filter sets eight bits in each of one to four lines";
    Err(Error::parameter("k", k, needs))
}

impl Spec {
    /// The plan of a layout.
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

    /// The numbers of a standard filter that is a part of another kind, with `m` for its share of the memory. Where a
    /// whole k would miss the rate asked for, k stays and the bits or the keys give way. Keys, bits and rate together
    /// may contradict each other; that is for the kind to [check](check_rate), which knows what its parts make of it.
    pub(crate) fn standard_part(&self, m: Option<u64>) -> Result<Params> {
        let Given { n, p, k, .. } = self.given;
        let given = Given { n, p: if n.is_some() && m.is_some() { None } else { p }, m, k };
        let params = given.solve(self.policy)?;
        match given.p {
            Some(p) if params.rate > p => Given { k: Some(params.hashes), ..given }.solve(self.policy),
            _ => Ok(params),
        }
    }

    /// The plan, unless nobody can want it.
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
        assert!((plan.rate - 0.040_221_2).abs() < 1e-7);
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
    fn every_bad_number_is_an_error_that_names_it() {
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
    fn a_plan_never_promises_what_its_numbers_cannot_keep() {
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
        // A number of hashes that no blocked filter has is refused; the filter is not built as something else.
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
                // Slices are whole and of one length, so a partitioned filter may be a bit per slice larger.
                assert!(given.m.is_none_or(|m| plan.stored_bits < m + 8), "{given:?} {plan:?}");
                // The policy that rounds k may miss the rate by what rounding costs.
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
    fn what_is_planned_can_be_folded() {
        for capacity in [1, 999, 34_567, 1_000_001] {
            let spec = Spec::new(capacity, 0.003).unwrap();
            for kind in [Kind::Standard, Kind::Partitioned, Kind::Blocked] {
                let filter = AnyFilter::build(kind, &spec).unwrap();
                assert!(filter.fold().and_then(|half| half.fold()).is_ok(), "{filter:?}");
            }
        }
    }

    #[test]
    fn a_size_instead_of_a_rate_is_kept() {
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
