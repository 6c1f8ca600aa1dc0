//! The portable token: eight 64-bit operations per line, which the compiler vectorizes to the
//! extent that the target allows.

use super::{SPLIT_BLOCK_SALTS, Simd};
use crate::memory::CacheLine;

#[derive(Clone, Copy)]
pub(crate) struct Portable;

/// Returns the one-bit mask of `x` in one lane.
#[inline(always)]
fn mask(x: u64, lane: usize) -> u64 {
    1 << ((x >> (16 + 6 * lane)) & 63)
}

/// Returns the one-bit masks of a hash in a block of a split-block filter.
#[inline(always)]
fn split_block_masks(hash: u32) -> [u32; 8] {
    SPLIT_BLOCK_SALTS.map(|salt| 1 << (hash.wrapping_mul(salt) >> 27))
}

#[inline(always)]
fn test_split_block(block: &[u8; 32], hash: u32) -> bool {
    let (words, _) = block.as_chunks::<4>();
    let masks = split_block_masks(hash);
    words.iter().zip(masks).fold(0, |missing, (word, mask)| missing | (mask & !u32::from_le_bytes(*word)))
        == 0
}

#[inline(always)]
fn set_split_block(block: &mut [u8; 32], hash: u32) {
    let (words, _) = block.as_chunks_mut::<4>();
    for (word, mask) in words.iter_mut().zip(split_block_masks(hash)) {
        *word = (u32::from_le_bytes(*word) | mask).to_le_bytes();
    }
}

/// Moves the kept values to the front, without a branch on the bits, which could not be predicted.
#[inline(always)]
pub(super) fn compress(values: [u64; 8], keep: u8) -> [u64; 8] {
    let (mut kept, mut count) = ([0; 8], 0);
    for (i, value) in values.into_iter().enumerate() {
        kept[count & 7] = value;
        count += usize::from(keep >> i & 1);
    }
    kept
}

/// Returns the position of the set bit with this rank, counted from 0; 64 if there is none.
#[inline(always)]
pub(super) fn select(word: u64, rank: u32) -> u32 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    if rank >= word.count_ones() {
        return 64;
    }
    // Byte `i` of `counts` is the number of bits set in bytes `0..=i` of the word.
    let counts = word - (word >> 1 & 0x5555_5555_5555_5555);
    let counts = (counts & 0x3333_3333_3333_3333) + (counts >> 2 & 0x3333_3333_3333_3333);
    let counts = ((counts + (counts >> 4)) & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(ONES);
    // The bytes before the wanted one are those with `counts <= rank`. Each leaves its highest bit
    // set in `before`.
    let before = ((u64::from(rank) * ONES) | (0x80 * ONES)).wrapping_sub(counts) & (0x80 * ONES);
    let shift = before.count_ones() * 8;
    let rank = rank - ((counts << 8 >> shift) as u32 & 0xff);
    shift + u32::from(IN_BYTE[rank as usize & 7][(word >> shift) as usize & 0xff])
}

/// The position of the set bit of each rank in each byte.
static IN_BYTE: [[u8; 256]; 8] = {
    let mut table = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut rank, mut bit) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                table[rank][byte] = bit as u8;
                rank += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
};

impl Simd for Portable {
    const WIDE: bool = false;

    #[inline(always)]
    fn test(self, line: &CacheLine, x: u64) -> bool {
        // Branch-free: a test could stop at the first missing bit, after two lanes on average, but
        // where it stops cannot be predicted.
        (0..8).fold(0, |missing, lane| missing | (mask(x, lane) & !line.0[lane])) == 0
    }

    #[inline(always)]
    fn set(self, line: &mut CacheLine, x: u64) {
        for lane in 0..8 {
            line.0[lane] |= mask(x, lane);
        }
    }

    #[inline(always)]
    fn masks(self, x: u64) -> CacheLine {
        CacheLine(std::array::from_fn(|lane| mask(x, lane)))
    }

    #[inline(always)]
    fn test_split_block(self, block: &[u8; 32], hash: u32) -> bool {
        test_split_block(block, hash)
    }

    #[inline(always)]
    fn set_split_block(self, block: &mut [u8; 32], hash: u32) {
        set_split_block(block, hash);
    }

    #[inline(always)]
    fn select(self, word: u64, rank: u32) -> u32 {
        select(word, rank)
    }

    #[inline(always)]
    fn deposit(self, mut bits: u64, mut mask: u64) -> u64 {
        let mut placed = 0;
        while mask != 0 {
            placed |= (bits & 1).wrapping_neg() & mask & mask.wrapping_neg();
            bits >>= 1;
            mask &= mask - 1;
        }
        placed
    }

    #[inline(always)]
    fn compress(self, values: [u64; 8], keep: u8) -> [u64; 8] {
        compress(values, keep)
    }

    #[inline(always)]
    fn equal(self, bytes: &[u8; 64], byte: u8) -> u64 {
        const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
        let wanted = u64::from_le_bytes([byte; 8]);
        let (words, _) = bytes.as_chunks();
        words.iter().enumerate().fold(0, |mask, (i, word)| {
            // `x` is zero in the bytes that match, `found` has the highest bit of exactly those
            // bytes, and the multiplication gathers these bits in one byte.
            let x = u64::from_le_bytes(*word) ^ wanted;
            let found = !(((x & LOW) + LOW) | x | LOW);
            mask | ((found >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i)
        })
    }
}
