//! How good the filters of a file are.

use crate::error::Result;
use crate::file::{Column, ParquetFile};
use std::fmt;
use umbel::foreign::sbbf::{BLOCK_BYTES, Blocks};

/// The rate of false positives above which a filter is [`Verdict::Saturated`].
pub const SATURATED_RATE: f64 = 0.1;

/// The rate that a quarter of an [oversized](Verdict::Oversized) filter would have at most.
pub const OVERSIZED_RATE: f64 = 0.01;

/// The filter of a column in a row group, or the lack of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkHealth {
    /// The number of the row group, from 0.
    pub row_group: usize,
    /// The dotted path of the column.
    pub column: String,
    /// The measurements of the filter, if there is one.
    pub filter: Option<FilterHealth>,
}

/// The measurements of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilterHealth {
    /// The length of the filter, without its header.
    pub bytes: u64,
    /// The share of bits that are set.
    pub fill: f64,
    /// The rate of false positives now.
    pub rate: f64,
    /// The rate of false positives that the filter would have in a quarter of its bytes, or `None` if
    /// it is too short for that.
    pub rate_of_quarter: Option<f64>,
}

/// The judgement of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The filter is useful and not too large.
    Good,
    /// More than a tenth of the values that are not there pass the filter.
    Saturated,
    /// A quarter of the bytes would still have a rate of 1 %.
    Oversized,
    /// There is no filter.
    Missing,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Good => "good",
            Verdict::Saturated => "saturated",
            Verdict::Oversized => "oversized",
            Verdict::Missing => "missing",
        })
    }
}

impl ChunkHealth {
    /// Returns the judgement of the filter.
    pub fn verdict(&self) -> Verdict {
        match self.filter {
            None => Verdict::Missing,
            Some(filter) if filter.rate > SATURATED_RATE => Verdict::Saturated,
            Some(FilterHealth { rate_of_quarter: Some(rate), .. }) if rate <= OVERSIZED_RATE => {
                Verdict::Oversized
            }
            Some(_) => Verdict::Good,
        }
    }
}

impl ParquetFile {
    /// Measures the filters of these columns in all row groups, one row group after the other.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or a filter is damaged.
    ///
    /// # Panics
    ///
    /// Panics if a column is of another file.
    pub fn health(&self, columns: &[Column]) -> Result<Vec<ChunkHealth>> {
        let mut chunks = Vec::new();
        for row_group in 0..self.row_groups() {
            for column in columns {
                let filter = match self.filter(row_group, column)? {
                    None => None,
                    Some(filter) => {
                        let blocks = filter.read()?;
                        Some(FilterHealth {
                            bytes: filter.bytes(),
                            fill: blocks.fill(),
                            rate: blocks.rate_now(),
                            rate_of_quarter: quarter(&blocks).map(|quarter| quarter.rate_now()),
                        })
                    }
                };
                chunks.push(ChunkHealth { row_group, column: column.path().to_owned(), filter });
            }
        }
        Ok(chunks)
    }
}

/// Returns the filter that the values would have had in a quarter of the blocks, or `None` if there
/// are fewer than four. In it, four neighbouring blocks are one, in which their values have the same
/// bits.
fn quarter(filter: &Blocks) -> Option<Blocks> {
    let blocks: &[[u8; BLOCK_BYTES]] = filter.as_bytes().as_chunks().0;
    let union = |four: &[[u8; BLOCK_BYTES]]| {
        four.iter().fold([0; BLOCK_BYTES], |union, block| std::array::from_fn(|at| union[at] | block[at]))
    };
    let quarter: Vec<_> = blocks.chunks(4).map(union).collect();
    (blocks.len() >= 4).then(|| Blocks::from_bytes(quarter.as_flattened()).ok())?
}
