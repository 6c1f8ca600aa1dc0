//! The digests of all keys, stored until their number is known: in memory at first, and on disk
//! when there are many.

use super::{DistinctCounter, new_distinct};
use crate::input::InputArgs;
use crate::pipeline;
use anyhow::{Context, Result};
use memmap2::MmapMut;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::ops::ControlFlow;
use umbel::key::Hashed;
use umbel::sketch::Distinct;
use umbel::{Digest, Hasher};

/// The maximum number of bytes held in memory before they go to disk.
const MEMORY_BYTES: usize = 64 << 20;

/// The number of digests read back at once.
const PIECE_DIGESTS: usize = 1 << 14;

/// Digests in the order of their keys, in memory and in a temporary file.
#[derive(Default)]
pub struct DigestSpool {
    /// The latest digests, eight bytes each. The system provides the memory as it is filled.
    memory: Option<MmapMut>,
    /// The number of bytes in `memory`.
    held: usize,
    count: u64,
    spilled: Option<File>,
}

const DIGEST_BYTES: usize = size_of::<Digest>();

/// Stores the digests of all lines, and counts the distinct ones.
pub fn collect(input: &InputArgs, hasher: &Hasher) -> Result<(DigestSpool, Distinct)> {
    let threads = input.threads();
    let counter = DistinctCounter::new(threads, &new_distinct()?)?;
    let mut digests = DigestSpool::default();
    pipeline::run(
        input.open()?,
        threads,
        |thread, records| {
            let piece = hasher.digest_batch(&records.keys()?);
            counter.insert(thread, &Hashed(&piece));
            Ok(piece)
        },
        |piece, _| digests.push(&piece).map(ControlFlow::Continue),
    )?;
    Ok((digests, counter.finish()?))
}

impl DigestSpool {
    /// Appends digests.
    pub fn push(&mut self, mut digests: &[Digest]) -> Result<()> {
        self.count += digests.len() as u64;
        while !digests.is_empty() {
            if self.held == MEMORY_BYTES {
                self.spill()?;
            }
            let memory = match &mut self.memory {
                Some(memory) => memory,
                none => none.insert(
                    allocate().context("the system has no 64 MiB of memory: give -n, which needs less")?,
                ),
            };
            let (places, _) = memory[self.held..].as_chunks_mut::<DIGEST_BYTES>();
            let (now, later) = digests.split_at(places.len().min(digests.len()));
            for (place, digest) in places.iter_mut().zip(now) {
                *place = digest.get().to_le_bytes();
            }
            self.held += now.len() * DIGEST_BYTES;
            digests = later;
        }
        Ok(())
    }

    /// Returns the number of digests.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Moves the digests in memory to the temporary file.
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
            // The file has no name, so nothing is left of it however the program ends.
            none => none.insert(tempfile::tempfile().with_context(failed)?),
        };
        let held = self.memory.as_ref().map_or(&[][..], |memory| &memory[..self.held]);
        file.write_all(held).with_context(failed)?;
        self.held = 0;
        Ok(())
    }

    /// Returns all digests in order, in pieces.
    pub fn into_pieces(mut self) -> Result<SpooledPieces> {
        let storage = if self.spilled.is_some() {
            // Spill the rest as well: the filter needs the memory.
            self.spill()?;
            let mut file = self.spilled.context("spilled")?;
            file.rewind().context(READ_BACK)?;
            Storage::Disk(file)
        } else {
            Storage::Memory(self.memory, 0)
        };
        Ok(SpooledPieces { storage, left: self.count as usize, bytes: Vec::new() })
    }
}

/// Allocates the memory; large pages make filling it several times as fast.
fn allocate() -> std::io::Result<MmapMut> {
    let memory = MmapMut::map_anon(MEMORY_BYTES)?;
    // Only advice: an error does not matter.
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::HugePage);
    Ok(memory)
}

const READ_BACK: &str = "cannot read digests back from the temporary file";

/// An iterator over pieces of stored digests.
pub struct SpooledPieces {
    storage: Storage,
    left: usize,
    bytes: Vec<u8>,
}

enum Storage {
    Disk(File),
    Memory(Option<MmapMut>, usize),
}

impl Iterator for SpooledPieces {
    type Item = Result<Vec<Digest>>;

    fn next(&mut self) -> Option<Result<Vec<Digest>>> {
        let count = self.left.min(PIECE_DIGESTS);
        self.left -= count;
        if count == 0 {
            return None;
        }
        let bytes = match &mut self.storage {
            Storage::Memory(memory, at) => {
                *at += count * DIGEST_BYTES;
                &memory.as_ref()?[*at - count * DIGEST_BYTES..*at]
            }
            Storage::Disk(file) => {
                self.bytes.resize(count * DIGEST_BYTES, 0);
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
    fn digests_are_read_back_in_order_from_memory_and_from_disk() {
        for count in [0u64, 1, 100_000, 20_000_000] {
            let mut digests = DigestSpool::default();
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
}
