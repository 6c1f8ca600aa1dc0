//! Builds a set from the lines of an input, with the size that they need.
//!
//! The size of a filter depends on the number of keys, which is known only at the end of the input.
//! Unless the user gives it, small files are read twice, and otherwise the digests of all keys are
//! stored until their number is known.

use super::budget::{self, MemoryLimit};
use super::construct::{append, with_progress};
use super::{
    DistinctCounter, ParallelFill, SizeArgs, capacity_for, default_rate, digest_spool, new_distinct,
    window_keys,
};
use crate::input::InputArgs;
use crate::pipeline;
use crate::terminal::output::warn;
use anyhow::Result;
use std::ops::ControlFlow;
use umbel::any::Stored;
use umbel::key::Hashed;
use umbel::sizing::KPolicy;
use umbel::sketch::Distinct;
use umbel::spec::{Construction, KindOptions, plan};
use umbel::{AnyFilter, Hasher, Kind, Spec};

/// The largest filter that is filled on the chance that all lines are distinct.
const MAX_GUESSED_BYTES: u64 = 32 << 20;

/// The description of a set, and the lines that it is built from.
pub struct SetBuilder<'a> {
    pub kind: Kind,
    /// The requested rate; `None` is the default rate, or the one that the size or the
    /// fingerprints allow.
    pub rate: Option<f64>,
    pub size: SizeArgs,
    pub policy: KPolicy,
    pub options: KindOptions,
    pub max_bytes: Option<u64>,
    pub hasher: Hasher,
    pub input: &'a InputArgs,
}

impl SetBuilder<'_> {
    /// Builds the set for `capacity` keys, or for as many as there are.
    pub fn build(&self, capacity: Option<u64>) -> Result<Stored> {
        self.size.check_for(self.kind)?;
        let capacity = capacity.or_else(|| window_keys(self.kind, &self.options));
        if self.kind.capabilities().fixed {
            self.check()?;
            return self.construct();
        }
        if capacity.is_some() || self.size.determine_keys(self.rate) {
            return ParallelFill::filled(self.empty(capacity)?, self.input);
        }
        self.check()?;
        match self.count_first()? {
            Some(filter) => Ok(filter),
            None => self.spool_first(),
        }
    }

    /// Fails for mistaken options before the lines are read.
    fn check(&self) -> Result<()> {
        plan(self.kind, &self.spec(Some(1))?)?;
        Ok(())
    }

    /// Constructs a filter of a kind that needs all keys at once. Their digests take eight bytes
    /// each.
    fn construct(&self) -> Result<Stored> {
        let mut digests = Vec::new();
        pipeline::run(
            self.input.open()?,
            self.input.threads(),
            |_, records| Ok(self.hasher.digest_batch(&records.keys()?)),
            |piece, _| append(&mut digests, piece).map(ControlFlow::Continue),
        )?;
        if digests.is_empty() {
            warn("there were no lines: the filter is empty, and none can be added to it");
        }
        if self.max_bytes.is_some() {
            // The rate that fits depends on the number of distinct keys.
            digests.sort_unstable();
            digests.dedup();
        }
        let count = digests.len() as u64;
        let spec = self.spec_within_limit(Some(count.max(1)))?;
        let build = |construction: &Construction<'_>| {
            AnyFilter::from_digests(self.kind, &spec, digests, construction)
        };
        Ok(with_progress(self.input.threads(), count, build)?.into())
    }

    /// Counts the lines of files that can be read again, and fills a filter for that many keys. If
    /// all lines turn out to be distinct, as those of lists usually are, that is the result;
    /// otherwise they are read again, into a smaller filter. Fresh memory is expensive, and this
    /// way only the filter needs it; so it is done if the filter takes less memory than the
    /// digests. Returns `None` if the input or the kind does not allow it.
    fn count_first(&self) -> Result<Option<Stored>> {
        let threads = self.input.threads();
        // For a single thread, storing digests is faster than reading the files twice. And a kind
        // that depends on the order of keys cannot be filled by several threads.
        if threads == 1
            || !self.kind.capabilities().absorb
            || self.max_bytes.is_some()
            || !self.input.can_be_read_again()?
        {
            return Ok(None);
        }
        let lines = pipeline::count_lines(self.input.files(), self.input.line_end(), threads)?;
        if lines == 0 || plan(self.kind, &self.spec(Some(lines))?)?.bytes > MAX_GUESSED_BYTES {
            return Ok(None);
        }
        let fill = ParallelFill::new(self.empty(Some(lines))?, threads)?;
        let counter = DistinctCounter::new(threads, &new_distinct()?)?;
        let counts = pipeline::run(
            self.input.open()?,
            threads,
            |thread, records| {
                let digests = self.hasher.digest_batch(&records.keys()?);
                counter.insert(thread, &Hashed(&digests));
                fill.insert(thread, &Hashed(&digests))
            },
            |(), _| Ok(ControlFlow::Continue(())),
        )?;
        let capacity = self.capacity(counts.keys, &counter.finish()?);
        if capacity == lines {
            return fill.into_filter().map(Some);
        }
        drop(fill);
        ParallelFill::filled(self.empty(Some(capacity))?, self.input).map(Some)
    }

    /// Stores the digests of all lines, then fills a filter that is just large enough.
    fn spool_first(&self) -> Result<Stored> {
        let (digests, distinct) = digest_spool::collect(self.input, &self.hasher)?;
        if digests.count() == 0 {
            warn(
                "there were no lines: the filter is empty, and made for one key; give -n to add to it later",
            );
        }
        let (capacity, threads) = (self.capacity(digests.count(), &distinct), self.input.threads());
        let fill = ParallelFill::new(self.empty(Some(capacity))?, threads)?;
        pipeline::run_unordered(digests.into_pieces()?, fill.threads(threads), |thread, piece| {
            fill.insert(thread, &Hashed(&piece))
        })?;
        fill.into_filter()
    }

    /// Returns the number of keys to plan for, from the number of lines and the sketch of distinct
    /// ones.
    fn capacity(&self, lines: u64, distinct: &Distinct) -> u64 {
        if self.kind.capabilities().multiset { lines.max(1) } else { capacity_for(lines, distinct) }
    }

    fn spec(&self, capacity: Option<u64>) -> Result<Spec> {
        let given = self.size.given(capacity, self.rate, default_rate(self.kind, &self.options));
        let spec = Spec::from_given(given)?.with_policy(self.policy).with_hasher(self.hasher.clone());
        Ok(spec.with_options(self.options.clone()))
    }

    fn spec_within_limit(&self, capacity: Option<u64>) -> Result<Spec> {
        let limit = self.max_bytes.map(|bytes| MemoryLimit { bytes, overhead: 0 });
        budget::fit(self.kind, self.spec(capacity)?, limit, self.rate)
    }

    /// Returns an empty filter for `capacity` keys, or for those that its size determines, within
    /// the memory limit.
    fn empty(&self, capacity: Option<u64>) -> Result<Stored> {
        Ok(AnyFilter::build(self.kind, &self.spec_within_limit(capacity)?)?.into())
    }
}
