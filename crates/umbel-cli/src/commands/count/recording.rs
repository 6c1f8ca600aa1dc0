//! Lines into a multiset, and what is said when there are more than it was made for.

use crate::input::InputArgs;
use crate::pipeline;
use crate::report::percent;
use crate::terminal::output::warn;
use anyhow::Result;
use std::ops::ControlFlow;
use umbel::AnyCount;
use umbel::key::Hashed;
use umbel::sizing::Cardinality;
use umbel::sizing::space_code::pairs;

/// Records all lines, in their order: which groups a line hits depends on how many came before it. Threads only hash.
pub fn record(counts: &mut AnyCount, input: &InputArgs) -> Result<()> {
    let hasher = counts.hasher().clone();
    pipeline::run(
        input.open()?,
        input.threads(),
        |_, records| Ok(hasher.digest_batch(&records.keys()?)),
        |digests, _| {
            counts.insert_batch(&Hashed(&digests));
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(())
}

/// Says so if there are more recordings than it was made for, or more different keys, and its noise has grown by it.
pub fn warn_if_noisy(counts: &AnyCount) {
    let (Some(design), Some(recorded)) = (counts.design(), counts.inserted()) else { return };
    let stats = counts.stats();
    if stats.rate_now <= design.rate {
        return;
    }
    let too_many = match keys(counts) {
        _ if recorded > design.capacity => {
            format!("{recorded} recordings are more than the {} it was made for", design.capacity)
        }
        Some((keys, pairs)) if are_more(stats.estimate, pairs) => {
            format!("there are more different keys than the {keys} it was made for")
        }
        _ => return,
    };
    let (now, target) = (percent(stats.rate_now), percent(design.rate));
    warn(format_args!(
        "{too_many}: its noise is {now} instead of {target}, and rare keys are counted too high"
    ));
}

/// For how many different keys it was made, and how many pairs of one and a group they can be expected to make.
fn keys(counts: &AnyCount) -> Option<(u64, f64)> {
    let (keys, groups) = match counts {
        AnyCount::SpaceCode(counts) => (counts.keys()?, counts.groups()),
        AnyCount::MultiResolution(counts) => (counts.keys()?, counts.groups()),
        _ => return None,
    };
    Some((keys, pairs(counts.design()?.capacity, Some(keys), groups, 0).ok()?))
}

/// Whether there are more pairs than expected, as far as the bits tell for certain.
fn are_more(pairs: Cardinality, expected: f64) -> bool {
    pairs.estimate().is_none_or(|pairs| pairs.value - 3.0 * pairs.standard_error > expected)
}
