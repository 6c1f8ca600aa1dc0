//! The `Structure` implementation of space-code filters: files, plans and probes.

use super::array::Array;
use super::{Options, Resolution, SpaceCodeFilter, check, predicted, salts};
use crate::bloom::Layout;
use crate::file::FormatError;
use crate::memory::{Mover, Words};
use crate::sizing::space_code::{self as formulas, MAX_HASHES};
use crate::structure::{self, BITS, Head, Parts, Probe, small};
use crate::{Capabilities, Digest, Error, Kind, Plan, Result, Spec, Standard, Structure};

impl<R: Resolution> structure::sealed::Sealed for SpaceCodeFilter<R> {}

/// The number of parameters in a file before those of the levels.
const FIXED_PARAMS: usize = 4;
/// The number of parameters in a file for each level.
const LEVEL_PARAMS: usize = 2;

impl<R: Resolution> Structure for SpaceCodeFilter<R> {
    const KIND: Kind = R::KIND;

    const CAPABILITIES: Capabilities = Capabilities { union: true, multiset: true, ..Capabilities::NOTHING };

    /// `n` is the number of recordings, and `p` is the noise: the fraction of groups that are found
    /// although they were not hit.
    fn plan(spec: &Spec) -> Result<Plan> {
        Ok(Self::plan_levels(spec)?.1)
    }

    /// Predicts the highest noise of any level after `n` recordings, each of a different key unless
    /// the number of keys was given.
    fn predicted_rate(&self, n: u64) -> Result<f64> {
        let layouts: Vec<Standard> = self.levels.iter().map(Array::layout).collect();
        predicted(&layouts, &self.options, n)
    }

    fn try_clone(&self) -> Result<Self> {
        let levels = self.levels.iter().map(Array::try_clone).collect::<Result<_>>()?;
        Ok(Self::with_levels(self.head.clone(), self.options, levels))
    }

    /// Reports the levels that the guarded rule reads.
    fn trace(&self, digest: Digest, probe: &mut dyn FnMut(Probe) -> Result<()>) -> Result<bool> {
        let mut outcome = Ok(());
        let mut found = |level: u32| {
            let traced = self.levels[level as usize].trace(level as usize, digest, probe);
            traced.unwrap_or_else(|error| {
                outcome = Err(error);
                0
            })
        };
        let first = found(0);
        formulas::guarded(self.options.groups, self.levels.len() as u32, first, found);
        outcome.map(|()| first > 0)
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn head_mut(&mut self) -> &mut Head {
        &mut self.head
    }

    /// The parameters of a file: groups, epoch, seed, and keys or 0; then the bits and hash
    /// functions of each level.
    fn params(&self) -> Vec<u64> {
        let Options { groups, keys, epoch, seed, .. } = self.options;
        let mut params = vec![groups.into(), epoch, seed, keys.unwrap_or(0)];
        for array in &self.levels {
            params.extend(array.layout().params());
        }
        params
    }

    fn sections(&self) -> Vec<(u32, &Words)> {
        self.levels.iter().map(|array| (BITS, array.words())).collect()
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.levels.iter_mut().for_each(|array| array.relocate(mover));
    }

    fn restore(mut parts: Parts) -> Result<Self> {
        let params = std::mem::take(&mut parts.params);
        let Some((&[groups, epoch, seed, keys], levels)) = params.split_first_chunk::<FIXED_PARAMS>() else {
            return Err(FormatError::invalid("there are too few parameters").into());
        };
        let (levels, rest) = levels.as_chunks::<LEVEL_PARAMS>();
        let keys = (keys > 0).then_some(keys);
        let options = Options { groups: small(groups), levels: levels.len() as u32, keys, epoch, seed };
        check(&options, options.levels)?;
        if !rest.is_empty() || R::levels(&options) != options.levels {
            return Err(FormatError::invalid("its parameters are not those of its levels").into());
        }
        let mut array = |(level, &numbers): (u64, &[u64; LEVEL_PARAMS])| {
            let layout = Standard::from_params(numbers)?;
            if layout.hashes() > MAX_HASHES {
                return Err(Error::parameter("k", layout.hashes(), "1 to 64 hash functions"));
            }
            let words = parts.section(BITS, layout.lines())?;
            Ok(Array::from_words(layout, salts(&options, level), words))
        };
        let levels = (0..).zip(levels).map(&mut array).collect::<Result<_>>()?;
        let head = parts.finish()?;
        // The number of recordings determines the next random numbers.
        if head.inserted.is_none() {
            return Err(FormatError::invalid("it does not say how much was recorded").into());
        }
        Ok(Self::with_levels(head, options, levels))
    }

    fn check_contents(&self) -> Result<(), FormatError> {
        let check = |array: &Array| structure::check_tail(array.words(), array.layout().bits());
        self.levels.iter().try_for_each(check)
    }
}
