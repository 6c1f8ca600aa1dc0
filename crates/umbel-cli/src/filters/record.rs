//! Lines recorded in a multiset, and the warning when it is noisy.

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

/// Records all lines in order, since the groups that a line hits depend on the lines before it.
/// Threads only hash.
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

/// Warns if the noise is higher than planned because of too many recordings or distinct keys.
pub fn warn_if_noisy(counts: &AnyCount) {
    let (Some(design), Some(recorded)) = (counts.design(), counts.inserted()) else { return };
    let stats = counts.stats();
    if stats.rate_now <= design.rate {
        return;
    }
    let too_many = match planned_keys(counts) {
        _ if recorded > design.capacity => {
            format!("{recorded} recordings are more than the {} it was made for", design.capacity)
        }
        Some((keys, pairs)) if exceeds(stats.estimate, pairs) => {
            format!("there are more different keys than the {keys} it was made for")
        }
        _ => return,
    };
    let (now, target) = (percent(stats.rate_now), percent(design.rate));
    warn(format_args!(
        "{too_many}: its noise is {now} instead of {target}, and rare keys are counted too high"
    ));
}

/// Returns the number of distinct keys that the multiset was made for, and the expected number of
/// pairs of a key and a group.
fn planned_keys(counts: &AnyCount) -> Option<(u64, f64)> {
    let (keys, groups) = match counts {
        AnyCount::SpaceCode(counts) => (counts.keys()?, counts.groups()),
        AnyCount::MultiResolution(counts) => (counts.keys()?, counts.groups()),
        _ => return None,
    };
    Some((keys, pairs(counts.design()?.capacity, Some(keys), groups, 0).ok()?))
}

/// Returns whether there are certainly more pairs than expected.
fn exceeds(pairs: Cardinality, expected: f64) -> bool {
    pairs.estimate().is_none_or(|pairs| pairs.value - 3.0 * pairs.standard_error > expected)
}
