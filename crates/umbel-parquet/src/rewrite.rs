//! Adds filters to a file that exists, and copies everything else as it is.
//!
//! The new file is the old one up to its footer, then the new filters, and a footer that names them.
//! So the pages, their index and the other filters keep their places, and are the same bytes.

use crate::error::{Error, Result};
use crate::file::{Column, ParquetFile};
use crate::footer::edit::{FilterPlace, with_filters};
use crate::footer::read_bytes;
use rayon::prelude::*;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::Path;
use umbel::file::{Placing, save_with};
use umbel::foreign::sbbf::{self, BLOCK_BYTES, Blocks};

/// A filter that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AddedFilter {
    /// The number of distinct values in the row group.
    pub values: u64,
    /// The length of the filter, without its header.
    pub bytes: u64,
}

impl ParquetFile {
    /// Writes a copy of the file in which a column has a filter in each row group, with a rate of
    /// false positives of at most `rate`. Nothing else changes.
    ///
    /// A filter has the smallest power of two of bytes that suffices for the distinct values of its
    /// row group, since some readers accept no other length. The copy is written whole or not at all.
    ///
    /// # Errors
    ///
    /// Fails if the rate is not between 0 and 1, the column has filters, its pages cannot be read,
    /// the footer is signed, a filter would be longer than 128 MiB, or the copy cannot be written.
    ///
    /// # Panics
    ///
    /// Panics if the column is of another file.
    pub fn add_filter(
        &self,
        column: &Column,
        rate: f64,
        to: &Path,
        placing: Placing,
    ) -> Result<Vec<AddedFilter>> {
        if !(rate > 0.0 && rate < 1.0) {
            return Err(Error::Filter(umbel::Error::parameter("rate", rate, "a number between 0 and 1")));
        }
        let groups = self.metadata().row_groups();
        if let Some(row_group) =
            groups.iter().position(|group| group.column(column.index()).bloom_filter_offset().is_some())
        {
            let (path, column) = (self.path().to_owned(), column.path().to_owned());
            return Err(Error::HasFilter { path, column, row_group });
        }
        let footer = read_bytes(self.path(), self.file(), self.footer_start(), self.footer_length())?;
        let failed = |doing| move |source| Error::Io { path: to.to_owned(), doing, source };
        let mut added = Vec::new();
        save_with(to, placing, |file| {
            // While the system copies, without a buffer here, other threads decode.
            let groups: Vec<usize> = (0..self.row_groups()).collect();
            let mut batches = groups.chunks(rayon::current_num_threads());
            let build = |batch: Option<&[usize]>| -> Result<Vec<(u64, Blocks)>> {
                let batch = batch.unwrap_or_default().par_iter();
                batch.map(|row_group| self.build_filter(*row_group, column, rate)).collect()
            };
            let (copied, first) =
                rayon::join(|| self.copy_to(file).map_err(failed("write to")), || build(batches.next()));
            if copied? != self.footer_start() {
                return Err(Error::damaged(self.path(), "it has become shorter"));
            }
            let mut out = BufWriter::new(file);
            let (mut offset, mut places, mut filters) = (self.footer_start(), Vec::new(), first?);
            while !filters.is_empty() {
                for (values, filter) in filters {
                    let blocks = filter.as_bytes();
                    let header = sbbf::write_header(blocks.len())?;
                    out.write_all(&header)
                        .and_then(|()| out.write_all(blocks))
                        .map_err(failed("write to"))?;
                    let length = header.len() + blocks.len();
                    places.push(FilterPlace { offset, length: length as u32 });
                    added.push(AddedFilter { values, bytes: blocks.len() as u64 });
                    offset += length as u64;
                }
                filters = build(batches.next())?;
            }
            let footer = with_filters(&footer, column.index(), &places)
                .map_err(|what| Error::damaged(self.path(), format!("in its footer, {what}")))?;
            out.write_all(&footer).map_err(failed("write to"))?;
            out.write_all(&(footer.len() as u32).to_le_bytes()).map_err(failed("write to"))?;
            out.write_all(b"PAR1").and_then(|()| out.flush()).map_err(failed("write to"))
        })?;
        Ok(added)
    }

    /// Copies everything before the footer, and returns the number of bytes.
    fn copy_to(&self, to: &mut File) -> io::Result<u64> {
        let mut source = self.file();
        source.rewind()?;
        io::copy(&mut source.take(self.footer_start()), to)
    }

    /// Returns the number of distinct values of a column in a row group, and the filter of them.
    fn build_filter(&self, row_group: usize, column: &Column, rate: f64) -> Result<(u64, Blocks)> {
        let (mut hashes, mut wanted) = (Vec::new(), MIN_HASHES);
        self.each_distinct(row_group, column, |value| {
            hashes.push(sbbf::hash(value));
            if hashes.len() == wanted {
                // Repeated values must not take memory.
                remove_repeated(&mut hashes);
                wanted = (2 * hashes.len()).max(MIN_HASHES);
            }
        })?;
        remove_repeated(&mut hashes);
        let values = hashes.len() as u64;
        let blocks = sbbf::blocks_for(values, rate).ok().filter(|blocks| *blocks <= MAX_BLOCKS);
        let Some(blocks) = blocks else {
            let (path, column) = (self.path().to_owned(), column.path().to_owned());
            return Err(Error::FilterTooLong { path, column, row_group, values });
        };
        let mut filter = Blocks::new(blocks)?;
        filter.insert_hashes(&hashes)?;
        Ok((values, filter))
    }
}

/// The number of hashes from which on repeated ones are removed.
const MIN_HASHES: usize = 1 << 20;

/// The largest number of blocks that all readers accept: 128 MiB.
const MAX_BLOCKS: u64 = (128 << 20) / BLOCK_BYTES as u64;

/// Sorts hashes, so that each is there once.
fn remove_repeated(hashes: &mut Vec<u64>) {
    sort(hashes);
    hashes.dedup();
}

/// The number of hashes from which on [`sort`] distributes them.
const MIN_DISTRIBUTED: usize = 1 << 12;

/// Sorts hashes. Comparisons of random numbers cannot be predicted and take most of the time that a
/// filter of distinct values needs, so the hashes are distributed by their three highest bytes, the
/// lowest of these first. After that a million of them have few neighbours with the same three, which
/// are sorted by comparison; so are values that were chosen to have them.
fn sort(hashes: &mut Vec<u64>) {
    const SHIFTS: [u32; 3] = [40, 48, 56];
    if hashes.len() < MIN_DISTRIBUTED {
        return hashes.sort_unstable();
    }
    let mut sorted = vec![0; hashes.len()];
    for shift in SHIFTS {
        let byte = |hash: u64| (hash >> shift) as usize & 0xff;
        let mut places = [0; 256];
        hashes.iter().for_each(|hash| places[byte(*hash)] += 1);
        let mut start = 0;
        for place in &mut places {
            // From the number of hashes with this byte to the place of the first.
            start += std::mem::replace(place, start);
        }
        for hash in hashes.iter() {
            let place = &mut places[byte(*hash)];
            sorted[*place] = *hash;
            *place += 1;
        }
        std::mem::swap(hashes, &mut sorted);
    }
    let same = |one: &u64, other: &u64| one >> SHIFTS[0] == other >> SHIFTS[0];
    hashes.chunk_by_mut(same).filter(|neighbours| neighbours.len() > 1).for_each(<[u64]>::sort_unstable);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_sorted_like_numbers() {
        let random = |i: u64| sbbf::hash(&i.to_le_bytes());
        let inputs: [Vec<u64>; 6] = [
            vec![],
            (0..100).map(random).collect(),
            (0..100_000).map(random).collect(),
            (0..100_000).map(|i| random(i % 1000)).collect(),
            // Crafted to agree in the bytes that distribute them.
            (0..100_000).map(|i| random(i) >> 24).collect(),
            (0..10_000).map(|i| random(i) & !0xff_ffff).rev().collect(),
        ];
        for mut hashes in inputs {
            let mut expected = hashes.clone();
            expected.sort_unstable();
            sort(&mut hashes);
            assert!(hashes == expected);
        }
    }
}
