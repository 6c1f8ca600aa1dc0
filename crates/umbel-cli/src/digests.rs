//! The digests of all keys, kept until it is known how large a filter they need: in memory at first, on disk when there
//! are many.

use crate::distinct::Distinct;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufWriter, Read, Seek, Write};
use umbel::Digest;

/// More than this goes to disk.
const IN_MEMORY: usize = 64 << 20;

/// Digests read back from the disk at once.
const PIECE: usize = 1 << 14;

/// Digests in the order of their keys.
#[derive(Default)]
pub struct Digests {
    pieces: Vec<Vec<Digest>>,
    /// How many there are in `pieces`, and in all.
    held: usize,
    count: u64,
    spilled: Option<BufWriter<File>>,
}

impl Digests {
    pub fn push(&mut self, piece: Vec<Digest>) -> Result<()> {
        self.count += piece.len() as u64;
        self.held += piece.len();
        self.pieces.push(piece);
        if self.held * size_of::<Digest>() > IN_MEMORY {
            self.spill()?;
        }
        Ok(())
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// For how many keys a filter should be made: for the different ones, and two standard errors more, since too
    /// small a filter breaks its promise and a slightly too large one does not; but never for more than there are.
    pub fn capacity(&self, distinct: &Distinct) -> u64 {
        let (estimate, error) = distinct.estimate();
        ((estimate + 2.0 * error).round() as u64).clamp(1, self.count.max(1))
    }

    fn spill(&mut self) -> Result<()> {
        let failed = || {
            let folder = std::env::temp_dir();
            format!(
                "cannot keep digests in {}: free some space, set TMPDIR, or give -n so that none are kept",
                folder.display()
            )
        };
        if self.spilled.is_none() {
            // It has no name, so nothing is left of it however this ends.
            let file = tempfile::tempfile().with_context(failed)?;
            self.spilled = Some(BufWriter::with_capacity(1 << 18, file));
        }
        if let Some(file) = &mut self.spilled {
            for piece in self.pieces.drain(..) {
                piece
                    .iter()
                    .try_for_each(|digest| file.write_all(&digest.get().to_le_bytes()))
                    .with_context(failed)?;
            }
        }
        self.held = 0;
        Ok(())
    }

    /// All of them, piece by piece; memory goes back as they are taken.
    pub fn into_pieces(mut self) -> Result<Box<dyn Iterator<Item = Result<Vec<Digest>>> + Send>> {
        if self.spilled.is_none() {
            return Ok(Box::new(self.pieces.into_iter().map(Ok)));
        }
        // The rest as well: the filter needs the memory more.
        self.spill()?;
        let Some(file) = self.spilled else { return Ok(Box::new(std::iter::empty())) };
        let failed = "cannot read digests back from the temporary file";
        let mut file = file.into_inner().map_err(|error| error.into_error()).context(failed)?;
        file.rewind().context(failed)?;
        let mut left = self.count as usize;
        let mut bytes = vec![0; PIECE * size_of::<Digest>()];
        Ok(Box::new(std::iter::from_fn(move || {
            let piece = &mut bytes[..left.min(PIECE) * size_of::<Digest>()];
            if piece.is_empty() {
                return None;
            }
            left -= piece.len() / size_of::<Digest>();
            let digests = |bytes: &[u8]| {
                let (words, _) = bytes.as_chunks();
                words.iter().map(|word| Digest::from_hash(u64::from_le_bytes(*word))).collect()
            };
            Some(file.read_exact(piece).context(failed).map(|()| digests(piece)))
        })))
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
                digests.push((next..end).map(Digest::from_hash).collect()).unwrap();
                assert!(digests.held * 8 <= IN_MEMORY);
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
            let mut distinct = Distinct::default();
            distinct.add(&piece);
            let mut digests = Digests::default();
            digests.push(piece).unwrap();
            digests.capacity(&distinct)
        };
        assert_eq!(capacity(&[]), 1, "a filter of no keys is a filter");
        assert_eq!(capacity(&[7, 7, 7]), 1);
        assert_eq!(capacity(&(0..1000).collect::<Vec<_>>()), 1000);
        let twice: Vec<u64> = (0..200_000).map(|i| i % 100_000).collect();
        assert!((99_800..100_800).contains(&capacity(&twice)));
    }
}
