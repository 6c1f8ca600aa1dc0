//! Builds a filter in the format of another program, as that program would.

use super::{CountedKeys, DEFAULT_RATE};
use crate::input::InputArgs;
use crate::pipeline;
use crate::report::percent;
use crate::terminal::output::warn;
use anyhow::Result;
use std::ops::ControlFlow;
use umbel::foreign::{ForeignFilter, Format, Options};

/// The description of a filter of another program, and the lines that it is built from.
pub struct ForeignBuilder<'a> {
    pub format: Format,
    pub options: Options,
    /// The requested rate; `None` is the default rate.
    pub rate: Option<f64>,
    pub input: &'a InputArgs,
}

impl ForeignBuilder<'_> {
    /// Builds the filter for `capacity` keys, or for as many as there are.
    ///
    /// Keys are inserted in the order of the input, since some formats count those that are new, and
    /// a chain grows with them.
    pub fn build(&self, capacity: Option<u64>) -> Result<ForeignFilter> {
        let input = self.input.with_funnel(self.options.funnel);
        // Fail for mistaken options before the lines are read.
        let mut filter = self.empty(capacity.unwrap_or(1))?;
        let (mut made_for, mut stored, mut new) = (capacity.unwrap_or(1), None, 0);
        if capacity.is_none() {
            let keys = CountedKeys::new(&input)?;
            (made_for, stored) = (keys.capacity, keys.stored);
            filter = self.empty(made_for)?;
        }
        match stored {
            Some(stored) => stored.for_each(|key| {
                new += u64::from(filter.insert(key)?);
                Ok(())
            })?,
            None => pipeline::run(
                input.open()?,
                input.threads(),
                |_, records| Ok(records.to_keys()?),
                |keys, _| {
                    new += filter.insert_batch(&keys.keys()?)?.count();
                    Ok(ControlFlow::Continue(()))
                },
            )
            .map(drop)?,
        }
        self.warn_if_overfull(&filter, new, made_for);
        Ok(filter)
    }

    /// Warns if a filter that does not grow holds more keys than it was made for.
    fn warn_if_overfull(&self, filter: &ForeignFilter, keys: u64, made_for: u64) {
        if keys <= made_for || self.format == Format::RedisBloom {
            return;
        }
        let (now, target) = (percent(filter.facts().rate_now), percent(self.rate()));
        warn(format_args!(
            "the filter holds at least {keys} keys, more than the {made_for} it was made for: its rate is {now} instead of {target}"
        ));
    }

    fn rate(&self) -> f64 {
        self.rate.unwrap_or(DEFAULT_RATE)
    }

    fn empty(&self, capacity: u64) -> Result<ForeignFilter> {
        Ok(ForeignFilter::with_capacity(self.format, capacity, self.rate(), &self.options)?)
    }
}
