//! Lines into a multiset, and what is said when there are more than it was made for.

use crate::engine;
use crate::facts::percent;
use crate::input::InputArgs;
use crate::output::warn;
use anyhow::Result;
use std::ops::ControlFlow;
use umbel::{AnyCount, Count, Hashed};

/// Records all lines, in their order: which groups a line hits depends on how many came before it. Threads only hash.
pub fn record(counts: &mut AnyCount, input: &InputArgs) -> Result<()> {
    let hasher = counts.hasher().clone();
    engine::run(
        input.open()?,
        input.threads(),
        |_, lot| Ok(hasher.digest_batch(&lot.keys()?)),
        |digests, _| {
            counts.record_batch(&Hashed(&digests))?;
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(())
}

/// Says so if there are more recordings than it was made for and its noise has grown by it.
pub fn warn_if_noisy(counts: &AnyCount) {
    let (Some(design), Some(recorded)) = (counts.design(), counts.inserted()) else { return };
    if recorded <= design.capacity {
        return;
    }
    let noise = counts.stats().rate_now;
    if noise > design.rate {
        warn(format_args!(
            "{recorded} recordings are more than the {} it was made for: its noise is {} instead of {}, and rare keys are counted too high",
            design.capacity,
            percent(noise),
            percent(design.rate)
        ));
    }
}
