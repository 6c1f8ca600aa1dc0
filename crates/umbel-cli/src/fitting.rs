//! Plans within the memory that is allowed.

use crate::report::{percent, size};
use crate::terminal::output::warn;
use anyhow::{Context, Result, bail};
use umbel::sizing::Given;
use umbel::spec::plan;
use umbel::{Kind, Plan, Spec};

/// Something with a higher rate than this is of no use to anyone.
const USELESS: f64 = 0.5;

/// How much memory something may take.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub bytes: u64,
    /// What it needs beside what is planned, whatever its rate.
    pub beside: u64,
}

/// As `wanted`, which says for how many keys and at which rate, or with the rate that the limit allows; an error if that
/// `asked` for is not met.
pub fn within(kind: Kind, wanted: Spec, limit: Option<Limit>, asked: Option<f64>) -> Result<Spec> {
    let Some(Limit { bytes: most, beside }) = limit else { return Ok(wanted) };
    let planned = plan(kind, &wanted)?;
    let fits = |plan: &Plan| plan.bytes + beside <= most;
    if fits(&planned) {
        return Ok(wanted);
    }
    let capacity = planned.capacity;
    let given = |m| Given { n: Some(capacity), m: Some(m), ..Given::default() };
    let tight = |given| {
        let spec = Spec::from_given(given)?.with_policy(wanted.policy()).with_hasher(wanted.hasher().clone());
        let spec = spec.with_options(wanted.options().clone());
        Ok::<_, umbel::Error>((plan(kind, &spec)?, spec))
    };
    // Memory comes in lines of 512 bits, and some kinds round up.
    let (best, spec) = (0..4u64)
        .filter_map(|less| {
            tight(given((most.saturating_sub(beside) / 64).checked_sub(less)?.checked_mul(512)?)).ok()
        })
        .find(|(plan, _)| fits(plan))
        .with_context(|| format!("--max-bytes {most} is too small for {capacity} keys"))?;
    let Plan { bytes, rate, .. } = best;
    if let Some(asked) = asked {
        bail!(
            "{capacity} keys at a rate of {} need {}, and --max-bytes allows {}: with so much the rate is {}; leave -p out to accept it",
            percent(asked),
            size(planned.bytes + beside),
            size(most),
            percent(rate)
        );
    }
    if rate > USELESS {
        bail!("--max-bytes {most} is too small: {capacity} keys in it have a rate of {}", percent(rate));
    }
    warn(format_args!("within {} the rate is {}", size(bytes + beside), percent(rate)));
    Ok(spec)
}
