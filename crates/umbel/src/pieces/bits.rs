//! The bits of a range: set by pieces, and turned into pieces.

use super::piece::{Content, HEADER_BYTES, MAX_PAYLOAD_BYTES, Piece, seal};
use super::plan::{BitLayout, PiecePlan, Ranges};
use crate::arch::{Kernel, Level, Simd};
use crate::hash::MULTIPLIER;
use crate::memory::{CacheLine, LINE_BYTES, as_words, as_words_mut};
use crate::tile::ones;
use crate::{Blocked, Error, Result};
use std::mem;

/// Sets the bits of a piece in the lines of its range. If the piece is refused, no bit has changed.
pub(super) fn apply(ranges: &Ranges, piece: &Piece<'_>, lines: &mut [CacheLine]) -> Result<()> {
    let outside = || piece.refused("entries that lie in the range");
    match (piece.content, &ranges.layout) {
        (Content::Numbers, BitLayout::Blocked(layout)) => {
            let first = ranges.lines_of(piece.part).start as u64;
            let count = lines.len() as u64;
            let inside = |number| layout.line_of(number).wrapping_sub(first) < count;
            if !piece.numbers().all(inside) {
                return Err(outside());
            }
            Level::detect().run(SetNumbers { layout, first, lines, piece });
        }
        (Content::Numbers, _) => return Err(piece.refused("the layout of a blocked filter")),
        (Content::Positions, _) => {
            let bits = ranges.bits_of(piece.part);
            if !piece.positions().all(|position| u64::from(position) < bits) {
                return Err(outside());
            }
            let words = as_words_mut(lines);
            for position in piece.positions() {
                words[position as usize / 64] |= 1 << (position % 64);
            }
        }
        (Content::Bits, _) => {
            let words = as_words_mut(lines);
            let from = (piece.start / 8) as usize;
            let ours = words.get_mut(from..).and_then(|words| words.get_mut(..piece.numbers().len()));
            let ours = ours.ok_or_else(outside)?;
            // The bits beyond the last position of the filter stay zero, which code that counts bits
            // relies on.
            let end = ranges.bits_of(piece.part);
            let beyond = |(i, word): (usize, u64)| {
                let valid = end.saturating_sub(64 * (from + i) as u64);
                word.checked_shr(valid as u32).unwrap_or(0) != 0
            };
            if piece.start + piece.payload.len() as u64 > end / 8 && piece.numbers().enumerate().any(beyond) {
                return Err(outside());
            }
            ours.iter_mut().zip(piece.numbers()).for_each(|(ours, theirs)| *ours |= theirs);
        }
    }
    Ok(())
}

/// Sets the bits of the numbers of a piece, which have been checked.
struct SetNumbers<'a> {
    layout: &'a Blocked,
    first: u64,
    lines: &'a mut [CacheLine],
    piece: &'a Piece<'a>,
}

impl Kernel for SetNumbers<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for number in self.piece.numbers() {
            let line = (self.layout.line_of(number) - self.first) as usize;
            simd.set(&mut self.lines[line], number.wrapping_mul(MULTIPLIER));
        }
    }
}

/// Passes the lines of a range to `push` as pieces. The first stands for `inserted` insertions.
pub(super) fn encode(
    plan: &PiecePlan,
    range: u32,
    lines: &[CacheLine],
    inserted: u64,
    mut push: impl FnMut(Vec<u8>),
) {
    let words = as_words(lines);
    let set: usize = words.iter().map(|word| word.count_ones() as usize).sum();
    let mut unreported = inserted;
    let mut push = |payload: &[u8], content, start| {
        let mut piece = vec![0; HEADER_BYTES];
        piece.extend_from_slice(payload);
        push(seal(piece, plan, range, content, start, mem::take(&mut unreported)));
    };
    if set * size_of::<u32>() < size_of_val(words) {
        let mut positions = Vec::with_capacity(set);
        for (i, word) in words.iter().enumerate().filter(|(_, word)| **word != 0) {
            positions.extend(ones(*word).map(|bit| ((64 * i + bit) as u32).to_le_bytes()));
        }
        for positions in positions.chunks(MAX_PAYLOAD_BYTES / size_of::<u32>()) {
            push(positions.as_flattened(), Content::Positions, 0);
        }
    } else {
        for (i, block) in words.chunks(MAX_PAYLOAD_BYTES / size_of::<u64>()).enumerate() {
            let bytes: Vec<[u8; 8]> = block.iter().map(|word| word.to_le_bytes()).collect();
            push(bytes.as_flattened(), Content::Bits, (i * MAX_PAYLOAD_BYTES) as u64);
        }
    }
    // Other pieces may list the keys of these insertions.
    if set == 0 && inserted > 0 {
        push(&[], Content::Positions, 0);
    }
}

/// Fills lines with the bytes of a range.
pub(super) fn copy_from(ranges: &Ranges, range: u32, bytes: &[u8], lines: &mut [CacheLine]) -> Result<()> {
    let needs = || format!("the {} bytes of range {range}", lines.len() * LINE_BYTES);
    if bytes.len() != lines.len() * LINE_BYTES {
        return Err(Error::parameter("bits", format!("{} bytes", bytes.len()), needs()));
    }
    let end = ranges.bits_of(range);
    let beyond = bytes[(end / 8) as usize..].iter().enumerate();
    let shift = |i: usize| if i == 0 { end % 8 } else { 0 };
    if beyond.into_iter().any(|(i, byte)| byte >> shift(i) != 0) {
        return Err(Error::parameter("bits", format!("a bit beyond {end}"), needs()));
    }
    for (word, bytes) in as_words_mut(lines).iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    Ok(())
}
