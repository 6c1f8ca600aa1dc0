//! The digests of all keys, kept until it is known how large a filter they need: in memory at first, on disk when there
//! are many.

use crate::input::InputArgs;
use crate::pipeline;
use crate::sync::{inner, lock};
use anyhow::{Context, Result};
use memmap2::MmapMut;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::ops::ControlFlow;
use std::sync::Mutex;
use umbel::key::Hashed;
use umbel::sketch::Distinct;
use umbel::{Batch, Digest, Hasher};

/// More than this goes to disk.
const IN_MEMORY: usize = 64 << 20;

/// Digests read back from the disk at once.
const PIECE: usize = 1 << 14;

/// Digests in the order of their keys.
#[derive(Default)]
pub struct Digests {
    /// The latest, eight bytes each, in memory that is taken from the system as it is filled.
    memory: Option<MmapMut>,
    held: usize,
    count: u64,
    spilled: Option<File>,
}

const BYTES: usize = size_of::<Digest>();

/// Collects the digests of all lines, and a sketch of how many of them are distinct.
pub fn keep(input: &InputArgs, hasher: &Hasher) -> Result<(Digests, Distinct)> {
    let threads = input.threads();
    let census = Census::new(threads, &new_distinct()?)?;
    let mut digests = Digests::default();
    pipeline::run(
        input.open()?,
        threads,
        |thread, records| {
            let piece = hasher.digest_batch(&records.keys()?);
            census.insert(thread, &Hashed(&piece));
            Ok(piece)
        },
        |piece, _| digests.push(&piece).map(ControlFlow::Continue),
    )?;
    Ok((digests, census.finish()?))
}

/// The precision of sketches unless the user asks for another: 256 KiB, and a standard error of 0.2 %.
const PRECISION: u32 = 18;

/// Makes an empty sketch of the default precision.
pub fn new_distinct() -> umbel::Result<Distinct> {
    Distinct::with_precision(PRECISION)
}

/// The number of distinct keys, counted by several threads: each has a sketch of its own, and their union does not depend
/// on which thread counted which key.
pub struct Census {
    sketches: Vec<Mutex<Distinct>>,
}

impl Census {
    /// Makes an empty sketch with the precision and hash of `like` for each thread.
    pub fn new(threads: usize, like: &Distinct) -> umbel::Result<Census> {
        let empty = |_| {
            let sketch = Distinct::with_precision(like.precision())?.with_hasher(like.hasher().clone());
            Ok(Mutex::new(sketch))
        };
        Ok(Census { sketches: (0..threads).map(empty).collect::<umbel::Result<_>>()? })
    }

    /// Counts keys on behalf of one of the threads.
    pub fn insert(&self, thread: usize, keys: &impl Batch) {
        lock(&self.sketches[thread]).insert_batch(keys);
    }

    /// Returns the sketch of the keys of all threads.
    pub fn finish(self) -> Result<Distinct> {
        let mut sketches = self.sketches.into_iter().map(inner);
        let mut whole = sketches.next().context("there is at least one thread")?;
        sketches.try_for_each(|part| whole.union(&part))?;
        Ok(whole)
    }
}

/// Returns the number of keys to plan a filter for: the distinct ones and two standard errors more, since too small a
/// filter breaks its promise and a slightly too large one does not; but never more than `count`, the number of lines.
pub fn capacity(count: u64, distinct: &Distinct) -> u64 {
    let estimate = distinct.count();
    ((estimate.value + 2.0 * estimate.standard_error).round() as u64).clamp(1, count.max(1))
}

impl Digests {
    pub fn push(&mut self, mut digests: &[Digest]) -> Result<()> {
        self.count += digests.len() as u64;
        while !digests.is_empty() {
            if self.held == IN_MEMORY {
                self.spill()?;
            }
            let memory = match &mut self.memory {
                Some(memory) => memory,
                none => none.insert(
                    memory().context("the system has no 64 MiB of memory: give -n, which needs less")?,
                ),
            };
            let (places, _) = memory[self.held..].as_chunks_mut::<BYTES>();
            let (now, later) = digests.split_at(places.len().min(digests.len()));
            for (place, digest) in places.iter_mut().zip(now) {
                *place = digest.get().to_le_bytes();
            }
            self.held += now.len() * BYTES;
            digests = later;
        }
        Ok(())
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    fn spill(&mut self) -> Result<()> {
        let failed = || {
            let folder = std::env::temp_dir();
            format!(
                "cannot keep digests in {}: free some space, set TMPDIR, or give -n so that none are kept",
                folder.display()
            )
        };
        let file = match &mut self.spilled {
            Some(file) => file,
            // It has no name, so nothing is left of it however this ends.
            none => none.insert(tempfile::tempfile().with_context(failed)?),
        };
        let held = self.memory.as_ref().map_or(&[][..], |memory| &memory[..self.held]);
        file.write_all(held).with_context(failed)?;
        self.held = 0;
        Ok(())
    }

    /// All of them, piece by piece.
    pub fn into_pieces(mut self) -> Result<Pieces> {
        let source = if self.spilled.is_some() {
            // The rest as well: the filter needs the memory more.
            self.spill()?;
            let mut file = self.spilled.context("spilled")?;
            file.rewind().context(READ_BACK)?;
            Place::Disk(file)
        } else {
            Place::Memory(self.memory, 0)
        };
        Ok(Pieces { source, left: self.count as usize, bytes: Vec::new() })
    }
}

/// Memory for the digests that are held; large pages make filling it several times as fast.
fn memory() -> std::io::Result<MmapMut> {
    let memory = MmapMut::map_anon(IN_MEMORY)?;
    // Advice: without it everything works the same.
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::HugePage);
    Ok(memory)
}

const READ_BACK: &str = "cannot read digests back from the temporary file";

/// The digests, taken out piece by piece.
pub struct Pieces {
    source: Place,
    left: usize,
    bytes: Vec<u8>,
}

enum Place {
    Disk(File),
    Memory(Option<MmapMut>, usize),
}

impl Iterator for Pieces {
    type Item = Result<Vec<Digest>>;

    fn next(&mut self) -> Option<Result<Vec<Digest>>> {
        let count = self.left.min(PIECE);
        self.left -= count;
        if count == 0 {
            return None;
        }
        let bytes = match &mut self.source {
            Place::Memory(memory, at) => {
                *at += count * BYTES;
                &memory.as_ref()?[*at - count * BYTES..*at]
            }
            Place::Disk(file) => {
                self.bytes.resize(count * BYTES, 0);
                if let Err(error) = file.read_exact(&mut self.bytes) {
                    self.left = 0;
                    return Some(Err(error).context(READ_BACK));
                }
                &self.bytes
            }
        };
        let (words, _) = bytes.as_chunks();
        Some(Ok(words.iter().map(|word| Digest::from_hash(u64::from_le_bytes(*word))).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_come_back_in_order_from_memory_and_from_disk() {
        for count in [0u64, 1, 100_000, 20_000_000] {
            let mut digests = Digests::default();
            let mut next = 0;
            while next < count {
                let end = count.min(next + 13_000);
                digests.push(&(next..end).map(Digest::from_hash).collect::<Vec<_>>()).unwrap();
                next = end;
            }
            assert_eq!(digests.spilled.is_some(), count > 8 << 20);
            let mut expected = 0;
            for piece in digests.into_pieces().unwrap() {
                for digest in piece.unwrap() {
                    assert_eq!(digest.get(), expected);
                    expected += 1;
                }
            }
            assert_eq!(expected, count);
        }
    }

    #[test]
    fn a_filter_is_made_for_different_keys_and_never_for_more_than_there_are() {
        use umbel::Key;
        let hasher = umbel::Hasher::default();
        let capacity = |keys: &[u64]| {
            let piece: Vec<Digest> = keys.iter().map(|key| key.digest(&hasher)).collect();
            let mut distinct = new_distinct().unwrap();
            distinct.insert_tile(&piece);
            capacity(piece.len() as u64, &distinct)
        };
        assert_eq!(capacity(&[]), 1, "a filter of no keys is a filter");
        assert_eq!(capacity(&[7, 7, 7]), 1);
        assert_eq!(capacity(&(0..1000).collect::<Vec<_>>()), 1000);
        let twice: Vec<u64> = (0..200_000).map(|i| i % 100_000).collect();
        assert!((99_800..100_800).contains(&capacity(&twice)));
    }
}
