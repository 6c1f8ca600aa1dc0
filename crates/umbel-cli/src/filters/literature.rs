//! Builds a filter of the literature, which hashes the keys themselves and not their digests.

use super::{CountedKeys, DEFAULT_RATE, ParallelFill, SizeArgs};
use crate::input::InputArgs;
use anyhow::Result;
use umbel::Spec;
use umbel::any::Stored;
use umbel::literature::{Family, Literature};
use umbel::sizing::KPolicy;

/// The description of a filter of the literature, and the lines that it is built from.
pub struct LiteratureBuilder<'a> {
    pub family: Family,
    /// The requested rate; `None` is the default rate, or the one that the size allows.
    pub rate: Option<f64>,
    pub size: SizeArgs,
    pub policy: KPolicy,
    pub input: &'a InputArgs,
}

impl LiteratureBuilder<'_> {
    /// Builds the filter for `capacity` keys, or for as many as there are.
    pub fn build(&self, capacity: Option<u64>) -> Result<Stored> {
        if capacity.is_some() || self.size.determine_keys(self.rate) {
            return ParallelFill::filled(self.empty(capacity)?, self.input);
        }
        // Fail for mistaken options before the lines are read.
        self.empty(Some(1))?;
        let keys = CountedKeys::new(self.input)?;
        let mut filter = self.empty(Some(keys.capacity))?;
        match keys.stored {
            None => ParallelFill::filled(filter, self.input),
            Some(stored) => {
                stored.for_each(|key| Ok(filter.insert(key).map(drop)?))?;
                Ok(filter)
            }
        }
    }

    fn empty(&self, capacity: Option<u64>) -> Result<Stored> {
        let given = self.size.given(capacity, self.rate, Some(DEFAULT_RATE));
        let spec = Spec::from_given(given)?.with_policy(self.policy);
        Ok(Literature::build(self.family, &spec)?.into())
    }
}
