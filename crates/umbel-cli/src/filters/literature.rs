//! Builds a filter of the literature, which hashes the keys themselves and not their digests.
//!
//! If the number of keys is needed and not given, files are read twice: once to count the distinct
//! keys by their digests, and once to insert them. The keys of a pipe are stored until the end, in
//! memory at first, and in a temporary file beyond 64 MiB.

use super::{DEFAULT_RATE, DistinctCounter, ParallelFill, SizeArgs, capacity_for, new_distinct};
use crate::input::{InputArgs, Records};
use crate::pipeline;
use crate::terminal::output::warn;
use anyhow::{Context, Result};
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::ops::ControlFlow;
use tempfile::SpooledTempFile;
use umbel::any::Stored;
use umbel::key::Hashed;
use umbel::literature::{Family, Literature};
use umbel::sizing::KPolicy;
use umbel::{Batch, Hasher, Spec};

/// The maximum number of bytes of keys held in memory before they go to disk.
const MEMORY_BYTES: usize = 64 << 20;

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
        if self.input.are_files() {
            let capacity = self.count(|_| Ok(()), |()| Ok(()))?;
            return ParallelFill::filled(self.empty(Some(capacity))?, self.input);
        }
        let mut spool = KeySpool::new();
        let capacity = self.count(|records| Ok(records.to_keys()?), |keys| spool.push(&keys.keys()?))?;
        let mut filter = self.empty(Some(capacity))?;
        spool.for_each(|key| Ok(filter.insert(key).map(drop)?))?;
        Ok(filter)
    }

    fn empty(&self, capacity: Option<u64>) -> Result<Stored> {
        let given = self.size.given(capacity, self.rate, Some(DEFAULT_RATE));
        let spec = Spec::from_given(given)?.with_policy(self.policy);
        Ok(Literature::build(self.family, &spec)?.into())
    }

    /// Returns the number of keys to plan for, and passes on what `read` returns for each block, in
    /// order.
    fn count<T: Send>(
        &self,
        read: impl Fn(&Records) -> Result<T> + Sync,
        mut store: impl FnMut(T) -> Result<()> + Send,
    ) -> Result<u64> {
        let (threads, hasher) = (self.input.threads(), Hasher::default());
        let counter = DistinctCounter::new(threads, &new_distinct()?)?;
        let counts = pipeline::run(
            self.input.open()?,
            threads,
            |thread, records| {
                let digests = hasher.digest_batch(&records.keys()?);
                counter.insert(thread, &Hashed(&digests));
                read(records)
            },
            |block, _| store(block).map(ControlFlow::Continue),
        )?;
        if counts.keys == 0 {
            warn(
                "there were no lines: the filter is empty, and made for one key; give -n to add to it later",
            );
        }
        Ok(capacity_for(counts.keys, &counter.finish()?))
    }
}

/// The keys of a pipe, in order: the length of each in four bytes, and its bytes.
struct KeySpool {
    file: BufWriter<SpooledTempFile>,
    count: u64,
}

impl KeySpool {
    fn new() -> KeySpool {
        KeySpool { file: BufWriter::new(tempfile::spooled_tempfile(MEMORY_BYTES)), count: 0 }
    }

    /// Appends keys.
    fn push(&mut self, keys: &impl Batch) -> Result<()> {
        self.count += keys.len() as u64;
        let mut write = |key: &[u8]| {
            // A block of lines, and with it a key, has fewer than 2^32 bytes.
            self.file.write_all(&(key.len() as u32).to_le_bytes())?;
            self.file.write_all(key)
        };
        let written = (0..keys.len()).try_for_each(|key| keys.with_bytes(key, &mut write));
        written.with_context(|| {
            let folder = std::env::temp_dir();
            format!(
                "cannot keep keys in {}: free some space, set TMPDIR, or give -n so that none are kept",
                folder.display()
            )
        })
    }

    /// Calls `visit` with each key.
    fn for_each(mut self, mut visit: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        const READ_BACK: &str = "cannot read keys back from the temporary file";
        self.file.rewind().context(READ_BACK)?;
        let mut file = BufReader::new(self.file.get_mut());
        let mut key = Vec::new();
        for _ in 0..self.count {
            let mut length = [0; 4];
            file.read_exact(&mut length).context(READ_BACK)?;
            key.clear();
            let length = u64::from(u32::from_le_bytes(length));
            file.by_ref().take(length).read_to_end(&mut key).context(READ_BACK)?;
            visit(&key)?;
        }
        Ok(())
    }
}
