//! Plans within a memory limit, `--max-bytes`.

use crate::report::{percent, size};
use crate::terminal::output::warn;
use anyhow::{Context, Result, bail};
use umbel::sizing::Given;
use umbel::spec::plan;
use umbel::{Kind, Plan, Spec};

/// The highest rate at which a filter is of any use.
const MAX_USEFUL_RATE: f64 = 0.5;

/// A memory limit.
#[derive(Clone, Copy, Debug)]
pub struct MemoryLimit {
    pub bytes: u64,
    /// Bytes that are needed besides the planned ones, whatever the rate.
    pub overhead: u64,
}

/// Returns the wanted spec if it fits into the limit, and otherwise one with the rate that the
/// limit allows. Fails if the user `asked` for a lower rate, or if the rate is useless.
pub fn fit(kind: Kind, wanted: Spec, limit: Option<MemoryLimit>, asked: Option<f64>) -> Result<Spec> {
    let Some(MemoryLimit { bytes: most, overhead }) = limit else { return Ok(wanted) };
    let planned = plan(kind, &wanted)?;
    let fits = |plan: &Plan| plan.bytes + overhead <= most;
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
    // Memory comes in cache lines of 512 bits, and some kinds round up.
    let (best, spec) = (0..4u64)
        .filter_map(|less| {
            tight(given((most.saturating_sub(overhead) / 64).checked_sub(less)?.checked_mul(512)?)).ok()
        })
        .find(|(plan, _)| fits(plan))
        .with_context(|| format!("--max-bytes {most} is too small for {capacity} keys"))?;
    let Plan { bytes, rate, .. } = best;
    if let Some(asked) = asked {
        bail!(
            "{capacity} keys at a rate of {} need {}, and --max-bytes allows {}: then the rate is {}; leave -p out to accept it",
            percent(asked),
            size(planned.bytes + overhead),
            size(most),
            percent(rate)
        );
    }
    if rate > MAX_USEFUL_RATE {
        bail!("--max-bytes {most} is too small: {capacity} keys in it have a rate of {}", percent(rate));
    }
    warn(format_args!("within {} the rate is {}", size(bytes + overhead), percent(rate)));
    Ok(spec)
}
