//! Counts the keys of an input before they are inserted, for filters that hash the keys themselves and
//! not their digests.
//!
//! Files are read twice: once to count the distinct keys by their digests, and once to insert them.
//! The keys of a pipe are stored until the end, in memory at first, and in a temporary file beyond 64
//! MiB.

use super::{DistinctCounter, capacity_for, new_distinct};
use crate::input::{InputArgs, Records};
use crate::pipeline;
use crate::terminal::output::warn;
use anyhow::{Context, Result};
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use std::ops::ControlFlow;
use tempfile::SpooledTempFile;
use umbel::key::Hashed;
use umbel::{Batch, Hasher};

/// The maximum number of bytes of keys held in memory before they go to disk.
const MEMORY_BYTES: usize = 64 << 20;

/// The keys of an input, counted.
pub struct CountedKeys {
    /// The number of keys to plan for.
    pub capacity: u64,
    /// The keys, if the input cannot be read again.
    pub stored: Option<KeySpool>,
}

impl CountedKeys {
    /// Reads an input to its end.
    pub fn new(input: &InputArgs) -> Result<CountedKeys> {
        if input.are_files() {
            let capacity = count(input, |_| Ok(()), |()| Ok(()))?;
            return Ok(CountedKeys { capacity, stored: None });
        }
        let mut spool = KeySpool::new(MEMORY_BYTES);
        let capacity = count(input, |records| Ok(records.to_keys()?), |keys| spool.push(&keys.keys()?))?;
        Ok(CountedKeys { capacity, stored: Some(spool) })
    }
}

/// Returns the number of keys to plan for, and passes on the values that `read` returns for each
/// block, in order.
fn count<T: Send>(
    input: &InputArgs,
    read: impl Fn(&Records) -> Result<T> + Sync,
    mut store: impl FnMut(T) -> Result<()> + Send,
) -> Result<u64> {
    let (threads, hasher) = (input.threads(), Hasher::default());
    let counter = DistinctCounter::new(threads, &new_distinct()?)?;
    let counts = pipeline::run(
        input.open()?,
        threads,
        |thread, records| {
            let digests = hasher.digest_batch(&records.keys()?);
            counter.insert(thread, &Hashed(&digests));
            read(records)
        },
        |block, _| store(block).map(ControlFlow::Continue),
    )?;
    if counts.keys == 0 {
        warn("there were no lines: the filter is empty, and made for one key; give -n to add to it later");
    }
    Ok(capacity_for(counts.keys, &counter.finish()?))
}

/// The keys of a pipe, in order: the length of each in four bytes, and its bytes.
pub struct KeySpool {
    file: BufWriter<SpooledTempFile>,
    count: u64,
}

impl KeySpool {
    /// Returns an empty spool that holds this many bytes in memory.
    fn new(memory_bytes: usize) -> KeySpool {
        KeySpool { file: BufWriter::new(tempfile::spooled_tempfile(memory_bytes)), count: 0 }
    }

    /// Appends keys.
    fn push(&mut self, keys: &(impl Batch + ?Sized)) -> Result<()> {
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
    pub fn for_each(mut self, mut visit: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        const READ_BACK: &str = "cannot read keys back from the temporary file";
        self.file.rewind().context(READ_BACK)?;
        let mut file = BufReader::new(self.file.get_mut());
        let mut key = Vec::new();
        for _ in 0..self.count {
            let mut length = [0; 4];
            file.read_exact(&mut length).context(READ_BACK)?;
            key.resize(u32::from_le_bytes(length) as usize, 0);
            file.read_exact(&mut key).context(READ_BACK)?;
            visit(&key)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_back_in_order_from_memory_and_from_disk() {
        let keys: Vec<Vec<u8>> = (0..5000u32).map(|key| vec![key as u8; key as usize % 50]).collect();
        for memory_bytes in [1000, MEMORY_BYTES] {
            let mut spool = KeySpool::new(memory_bytes);
            keys.chunks(700).for_each(|piece| spool.push(piece).unwrap());
            let mut expected = keys.iter();
            let compare = |key: &[u8]| {
                assert_eq!(Some(key), expected.next().map(Vec::as_slice));
                Ok(())
            };
            spool.for_each(compare).unwrap();
            assert_eq!(expected.next(), None);
        }
    }
}
