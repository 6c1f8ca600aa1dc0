//! A picture of the bits of a file: how full each part of it is, down to single bits.

use super::{Context, fields};
use crate::system::signals;
use anyhow::{Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use std::ops::Range;
use umbel::file;

/// The largest number of cells in a picture.
const MAX_CELLS: u64 = 4096;

/// A part of a file, in bits of its first section.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    /// The number of the file.
    file: usize,
    start: u64,
    /// The end of the filter if it is missing.
    #[serde(default)]
    end: Option<u64>,
    cells: u64,
}

/// Returns the share of set bits in each cell of a part of a file, and the bits of the part itself.
pub fn picture(context: &Context, asked: &Value) -> Result<Value> {
    let Question { file, start, end, cells } = fields(asked)?;
    let path = context.path(file)?;
    if cells == 0 || cells > MAX_CELLS {
        bail!("a picture has 1 to {MAX_CELLS} cells");
    }
    signals::watch_mapped(&path);
    let examined = file::examine(&path)?;
    let sections = examined.sections();
    let words = sections.first().map_or(&[][..], |section| section.words());
    // The last words may only fill up a cache line.
    let bits = (64 * words.len() as u64).min(examined.stats().bits);
    let end = end.unwrap_or(bits).min(bits);
    let start = start.min(end);
    let cells = cells.min(end - start);
    let share = |cell: u64| {
        let at = |cell: u64| start + ((end - start) as u128 * cell as u128 / cells as u128) as u64;
        let part = at(cell)..at(cell + 1);
        let length = part.end - part.start;
        ones(words, part) as f64 / length as f64
    };
    let fill: Vec<f64> = (0..cells).map(share).collect();
    Ok(json!({"bits": bits, "start": start, "end": end, "fill": fill}))
}

/// Counts the set bits of a range of bits.
fn ones(words: &[u64], part: Range<u64>) -> u64 {
    let Range { start, end } = part;
    let (first, last) = ((start / 64) as usize, (end / 64) as usize);
    // The bits below a position in the word that it is in.
    let below = |word: usize, position: u64| match position % 64 {
        0 => 0,
        bits => u64::from((words[word] & ((1 << bits) - 1)).count_ones()),
    };
    let whole: u64 = words[first..last].iter().map(|word| u64::from(word.count_ones())).sum();
    whole + below(last, end) - below(first, start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_within_and_across_words() {
        let words = [0b1011, !0, 1 << 63];
        let bit = |at: u64| words[(at / 64) as usize] >> (at % 64) & 1;
        for start in 0..=192 {
            for end in start..=192 {
                assert_eq!(ones(&words, start..end), (start..end).map(bit).sum::<u64>(), "{start}..{end}");
            }
        }
    }
}
