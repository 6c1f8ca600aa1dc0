//! All pieces of one part, on their way into the filter.

use super::bits;
use super::piece::{Content, Piece};
use super::plan::{Parts, PiecePlan, Ranges};
use crate::file;
use crate::key::Hashed;
use crate::memory::Words;
use crate::sharded::shard_path;
use crate::structure::MAX_INSERTED;
use crate::{BloomFilter, Digest, Error, Result};
use std::borrow::Cow;
use std::path::Path;

/// Takes all pieces of one part, in any order.
///
/// See the [module](super) for an example.
#[derive(Debug)]
pub struct Merge {
    plan: PiecePlan,
    part: u32,
    inserted: u64,
    merged: Merged,
}

#[derive(Debug)]
enum Merged {
    Range(Words),
    Shard(BloomFilter),
}

impl Merge {
    /// Creates the merge of a part.
    ///
    /// # Errors
    ///
    /// If the filter has fewer parts, or there is not enough memory.
    pub fn new(plan: &PiecePlan, part: u32) -> Result<Merge> {
        plan.check_part(part)?;
        let merged = match plan.all_parts() {
            Parts::Ranges(ranges) => Merged::Range(Words::zeroed(ranges.lines_of(part).len() as u64)?),
            Parts::Shards(_) => Merged::Shard(plan.build()?),
        };
        Ok(Merge { plan: plan.clone(), part, inserted: 0, merged })
    }

    /// Adds a piece.
    ///
    /// # Errors
    ///
    /// If it is not a piece of this part and this filter, or it is damaged. The merge has not
    /// changed then.
    pub fn add(&mut self, piece: &[u8]) -> Result<()> {
        let piece = Piece::parse(piece, &self.plan)?;
        if piece.part != self.part {
            return Err(piece.refused(&format!("to be for part {}", self.part)));
        }
        match (&mut self.merged, self.plan.all_parts()) {
            (Merged::Range(words), Parts::Ranges(ranges)) => bits::apply(ranges, &piece, words.lines_mut())?,
            (Merged::Shard(filter), Parts::Shards(plan)) => {
                let digests: Vec<Digest> = piece.numbers().map(Digest::from_hash).collect();
                let belongs = |digest: &Digest| plan.shard_of(*digest) == piece.part as usize;
                if piece.content != Content::Numbers || !digests.iter().all(belongs) {
                    return Err(piece.refused("digests that belong to the shard"));
                }
                filter.insert_batch(&Hashed(&digests));
            }
            _ => return Err(piece.refused("the parts of this plan")),
        }
        self.inserted = self.inserted.saturating_add(piece.inserted).min(MAX_INSERTED);
        Ok(())
    }

    /// Returns the number of insertions that the pieces stand for.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Returns the merged range as pieces, which can be merged again or
    /// [added](super::Assembly::add) to a filter.
    ///
    /// # Errors
    ///
    /// If the part is a shard.
    pub fn pieces(&self) -> Result<Vec<Vec<u8>>> {
        let (_, words) = self.range()?;
        let mut pieces = Vec::new();
        bits::encode(&self.plan, self.part, words.lines(), self.inserted, |piece| pieces.push(piece));
        Ok(pieces)
    }

    /// Returns the bits of the range, as the file has them.
    ///
    /// # Errors
    ///
    /// If the part is a shard.
    pub fn bits(&self) -> Result<Cow<'_, [u8]>> {
        Ok(self.range()?.1.to_le_bytes())
    }

    /// Writes the range to a file that [`PiecePlan::create_file`] made. Returns the checksums of the
    /// range, for [`PiecePlan::finish_file`]. Writing it again, even at the same time, changes
    /// nothing.
    ///
    /// # Errors
    ///
    /// If the part is a shard, the file is not the one of this filter, or it cannot be written.
    pub fn write(&self, partial: impl AsRef<Path>) -> Result<Vec<u64>> {
        let (ranges, words) = self.range()?;
        self.plan.file()?.write(partial.as_ref(), ranges.range(self.part).start, &words.to_le_bytes())
    }

    /// Writes the file of the shard to a folder, completely or not at all. Processes that do so at
    /// the same time write the same bytes.
    ///
    /// # Errors
    ///
    /// If the part is a range, or the file cannot be written.
    pub fn save_shard(&mut self, folder: impl AsRef<Path>) -> Result<()> {
        let Merged::Shard(filter) = &mut self.merged else {
            let needs = "a plan with shards: ranges are written to one file";
            return Err(Error::parameter("shards", "nothing", needs));
        };
        filter.set_inserted(self.inserted);
        file::save(shard_path(folder.as_ref(), self.part as usize), filter, &self.plan.options())
    }

    fn range(&self) -> Result<(&Ranges, &Words)> {
        let ranges = self.plan.ranges()?;
        match &self.merged {
            Merged::Range(words) => Ok((ranges, words)),
            Merged::Shard(filter) => Ok((ranges, filter.words())),
        }
    }
}
