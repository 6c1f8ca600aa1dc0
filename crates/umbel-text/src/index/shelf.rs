//! Stores filters of one size side by side, with bit `r` of all filters in row `r`, so that a key
//! reads `k` rows instead of every filter.
//!
//! Each filter is a column. A row has one bit for each column, and rows follow each other without
//! gaps. A shelf has at most 512 columns, so that a row has the size of a cache line.
//!
//! ```text
//!           filter 0   filter 1   filter 2  ...
//! row 0        1          0          0            one bit for each filter
//! row 1        0          1          1
//! ...
//! ```

use umbel::Digest;
use umbel::hash::reduce;

/// The maximum number of filters in a shelf.
pub(super) const WIDTH: usize = 512;

/// One bit for each column of a shelf.
pub(super) type Row = [u64; WIDTH / 64];

/// Builds the filter of some keys, as 64-bit words.
pub(super) fn column(keys: impl Iterator<Item = Digest>, bits: u64, hashes: u32) -> Vec<u64> {
    let mut column = vec![0u64; words(bits)];
    for key in keys {
        for x in key.stream().take(hashes as usize) {
            let bit = reduce(x, bits);
            column[(bit / 64) as usize] |= 1 << (bit % 64);
        }
    }
    column
}

/// Returns the number of words in a column of this many bits.
pub(super) fn words(bits: u64) -> usize {
    bits.div_ceil(64) as usize
}

/// Returns the size of a shelf in bytes.
pub(super) fn length(bits: u64, columns: usize) -> u64 {
    (bits * columns as u64).div_ceil(8)
}

/// Encodes a shelf of columns with this many bits each.
pub(super) fn shelve(columns: &[Vec<u64>], bits: u64) -> Vec<u8> {
    let mut rows = BitWriter::with_capacity(length(bits, columns.len()) as usize);
    let groups = columns.len().div_ceil(64);
    let mut blocks = vec![[0u64; 64]; groups];
    for word in 0..words(bits) {
        for (block, columns) in blocks.iter_mut().zip(columns.chunks(64)) {
            *block = [0; 64];
            for (to, column) in block.iter_mut().zip(columns) {
                *to = column[word];
            }
            transpose(block);
        }
        for row in 0..(bits - word as u64 * 64).min(64) as usize {
            for (block, columns) in blocks.iter().zip(columns.chunks(64)) {
                rows.push(block[row], columns.len() as u32);
            }
        }
    }
    rows.finish()
}

/// Decodes the columns of a shelf.
pub(super) fn unshelve(shelf: &[u8], width: usize, bits: u64) -> Vec<Vec<u64>> {
    let mut columns = vec![vec![0u64; words(bits)]; width];
    let mut blocks = vec![[0u64; 64]; width.div_ceil(64)];
    for word in 0..words(bits) {
        blocks.fill([0; 64]);
        for row in 0..(bits - word as u64 * 64).min(64) {
            let bits = row_at(shelf, word as u64 * 64 + row, width);
            blocks.iter_mut().zip(bits).for_each(|(block, bits)| block[row as usize] = bits);
        }
        for (block, columns) in blocks.iter_mut().zip(columns.chunks_mut(64)) {
            transpose(block);
            columns.iter_mut().zip(&*block).for_each(|(column, bits)| column[word] = *bits);
        }
    }
    columns
}

/// Returns the location of a row: its first byte, the number of bytes it touches, and the offset of
/// its first bit in the first byte.
pub(super) fn place(row: u64, width: usize) -> (u64, usize, u32) {
    let bit = row * width as u64;
    let shift = (bit % 8) as u32;
    (bit / 8, (shift as usize + width).div_ceil(8), shift)
}

/// Returns a row of a shelf in memory.
fn row_at(shelf: &[u8], row: u64, width: usize) -> Row {
    let (start, length, shift) = place(row, width);
    row_in(&shelf[start as usize..][..length], shift, width)
}

/// Extracts a row from the bytes that [`place`] locates.
pub(super) fn row_in(bytes: &[u8], shift: u32, width: usize) -> Row {
    let mut row = Row::default();
    let byte = |i: usize| bytes.get(i).copied().map_or(0, u128::from);
    for (i, word) in row.iter_mut().enumerate().take(width.div_ceil(64)) {
        // A row that begins inside a byte extends into a ninth byte.
        let nine = (0..9).fold(0, |nine, j| nine | (byte(8 * i + j) << (8 * j)));
        *word = (nine >> shift) as u64;
        let left = width - 64 * i;
        if left < 64 {
            *word &= (1 << left) - 1;
        }
    }
    row
}

/// Transposes a matrix of 64 by 64 bits (Warren, Hacker's Delight).
fn transpose(block: &mut [u64; 64]) {
    let (mut half, mut mask) = (32, 0x0000_0000_ffff_ffffu64);
    while half > 0 {
        let mut i = 0;
        while i < 64 {
            let swapped = (block[i] >> half ^ block[i + half]) & mask;
            block[i] ^= swapped << half;
            block[i + half] ^= swapped;
            i = (i + half + 1) & !half;
        }
        half /= 2;
        mask ^= mask << half;
    }
}

/// Writes bits without gaps, starting with the lowest bit of each byte.
struct BitWriter {
    bytes: Vec<u8>,
    pending: u128,
    count: u32,
}

impl BitWriter {
    fn with_capacity(bytes: usize) -> BitWriter {
        BitWriter { bytes: Vec::with_capacity(bytes + 8), pending: 0, count: 0 }
    }

    /// Appends the `count` lowest bits. The bits above must be zero.
    fn push(&mut self, bits: u64, count: u32) {
        self.pending |= u128::from(bits) << self.count;
        self.count += count;
        if self.count >= 64 {
            self.bytes.extend((self.pending as u64).to_le_bytes());
            self.pending >>= 64;
            self.count -= 64;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        let rest = self.count.div_ceil(8) as usize;
        self.bytes.extend(&(self.pending as u64).to_le_bytes()[..rest]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn columns(width: usize, bits: u64) -> impl Strategy<Value = Vec<Vec<u64>>> {
        let word = prop_oneof![Just(0), Just(u64::MAX), any::<u64>()];
        let columns = prop::collection::vec(prop::collection::vec(word, words(bits)), width);
        columns.prop_map(move |mut columns| {
            let last = bits % 64;
            if last > 0 {
                columns.iter_mut().for_each(|column| *column.last_mut().unwrap() &= (1 << last) - 1);
            }
            columns
        })
    }

    proptest! {
        #[test]
        fn rows_have_the_bits_of_columns_and_decode_to_them(
            (bits, columns) in (1usize..140, 1u64..200).prop_flat_map(|(width, bits)| (Just(bits), columns(width, bits)))
        ) {
            let shelf = shelve(&columns, bits);
            prop_assert_eq!(shelf.len() as u64, length(bits, columns.len()));
            for row in 0..bits {
                let found = row_at(&shelf, row, columns.len());
                for (i, column) in columns.iter().enumerate() {
                    let expected = column[(row / 64) as usize] >> (row % 64) & 1;
                    prop_assert_eq!(found[i / 64] >> (i % 64) & 1, expected);
                }
                let beyond = columns.len()..WIDTH;
                prop_assert!(beyond.clone().all(|i| found[i / 64] >> (i % 64) & 1 == 0));
            }
            prop_assert_eq!(unshelve(&shelf, columns.len(), bits), columns);
        }
    }

    #[test]
    fn a_full_shelf_decodes_to_its_columns() {
        let columns: Vec<Vec<u64>> = (0..WIDTH as u64)
            .map(|i| (0..3).map(|j| Digest::from_hash(i).salted(j).get()).collect())
            .collect();
        assert_eq!(unshelve(&shelve(&columns, 192), WIDTH, 192), columns);
    }
}
