//! The bit set of a split-block filter.

use super::super::bits::{Bits, Order};
use super::hash;
use crate::arch::{Kernel, Simd, prefetch};
use crate::file::FormatError;
use crate::tile::{self, Lookup, Pair, Places, Stage, TILE, Tile, Tiled, Work};
use crate::{Answers, Batch, Digest, Error, Hasher, Level, Result};
use std::convert::Infallible;
use std::ops::Range;

/// The number of bytes in a block.
pub const BLOCK_BYTES: usize = 32;

const BLOCK_BITS: u64 = 256;

/// A block as it stands in a file: eight little-endian words of 32 bits.
type Block = [u8; BLOCK_BYTES];

/// The blocks of a split-block filter, which take and look up [hashes](super::hash()) of keys.
///
/// ```
/// use umbel::foreign::sbbf::{self, Blocks};
/// let mut filter = Blocks::new(16)?;
/// let hashes: Vec<u64> = [b"apple", b"peach"].iter().map(|key| sbbf::hash(*key)).collect();
/// filter.insert_hashes(&hashes)?;
/// assert_eq!(filter.contains_hashes(&hashes).count(), 2);
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Debug)]
pub struct Blocks {
    bits: Bits,
}

impl Blocks {
    /// Makes an empty filter of this many blocks.
    ///
    /// # Errors
    ///
    /// If there are no blocks, or not enough memory.
    pub fn new(blocks: u64) -> Result<Blocks> {
        if blocks == 0 {
            return Err(Error::parameter("blocks", 0, "at least one block"));
        }
        let out_of_memory = || Error::OutOfMemory { bytes: blocks.saturating_mul(BLOCK_BYTES as u64) };
        let bytes = usize::try_from(blocks).ok().and_then(|blocks| blocks.checked_mul(BLOCK_BYTES));
        let mut bits = Bits::zero(bytes.ok_or_else(out_of_memory)?, Order::Little);
        bits.bytes_mut()?;
        Blocks::from_bits(bits)
    }

    /// Copies a bit set, as it stands in a file.
    ///
    /// # Errors
    ///
    /// If the length is 0 or not a multiple of 32, or there is not enough memory.
    pub fn from_bytes(bytes: &[u8]) -> Result<Blocks> {
        check_len(bytes.len())?;
        Blocks::from_bits(Bits::copied(bytes, Order::Little)?)
    }

    /// Uses a bit set that takes memory.
    pub(in crate::foreign) fn from_bits(bits: Bits) -> Result<Blocks> {
        check_len(bits.len())?;
        Ok(Blocks { bits })
    }

    /// Returns the bit set, as it stands in a file.
    pub fn as_bytes(&self) -> &[u8] {
        self.bits.bytes().unwrap_or_default()
    }

    /// Returns the number of blocks.
    #[expect(clippy::len_without_is_empty, reason = "no filter is without blocks")]
    pub fn len(&self) -> u64 {
        (self.bits.len() / BLOCK_BYTES) as u64
    }

    /// Counts the bits that are set.
    pub fn count_ones(&self) -> u64 {
        self.bits.count_ones()
    }

    /// Returns the share of bits that are set.
    pub fn fill(&self) -> f64 {
        self.count_ones() as f64 / (self.bits.len() * 8) as f64
    }

    /// Returns the false-positive rate with the bits that are set now: the mean over the blocks of
    /// the product of the fills of their words.
    pub fn rate_now(&self) -> f64 {
        let rate = |block: &Block| {
            let words = block.as_chunks::<4>().0.iter();
            words.map(|word| f64::from(u32::from_le_bytes(*word).count_ones()) / 32.0).product::<f64>()
        };
        self.blocks().iter().map(rate).sum::<f64>() / self.len() as f64
    }

    pub(in crate::foreign) fn is_set(&self, bit: u64) -> bool {
        self.bits.is_set(bit)
    }

    fn blocks(&self) -> &[Block] {
        self.as_bytes().as_chunks().0
    }

    fn layout(&self) -> Layout {
        Layout { blocks: self.len() }
    }

    /// Returns whether the key with this hash may be a member.
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let block = &self.blocks()[self.layout().block(hash)];
        Level::detect().run(Test { block, hash })
    }

    /// Inserts the key with this hash, and returns whether it was new.
    ///
    /// # Errors
    ///
    /// If the filter is in a mapped file and there is not enough memory for a copy.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> Result<bool> {
        let at = self.layout().block(hash);
        let block = &mut self.bits.bytes_mut()?.as_chunks_mut().0[at];
        Ok(Level::detect().run(Set { block, hash }))
    }

    /// Looks up many hashes; the fast way.
    pub fn contains_hashes(&self, hashes: &[u64]) -> Answers {
        self.look_up(&Hashes(hashes))
    }

    /// Inserts many hashes; the fast way. Returns which were new.
    ///
    /// # Errors
    ///
    /// As [`insert_hash`](Blocks::insert_hash).
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Result<Answers> {
        self.fill_with(&Hashes(hashes))
    }

    pub(in crate::foreign) fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Answers {
        self.look_up(&Keys(keys))
    }

    pub(in crate::foreign) fn insert_batch<B: Batch + ?Sized>(&mut self, keys: &B) -> Result<Answers> {
        self.fill_with(&Keys(keys))
    }

    fn look_up(&self, keys: &impl Batch) -> Answers {
        tile::contains_batch(Level::detect(), &self.layout(), self.blocks(), &Hasher::default(), keys)
    }

    fn fill_with(&mut self, keys: &impl Batch) -> Result<Answers> {
        let layout = self.layout();
        let blocks = self.bits.bytes_mut()?.as_chunks_mut().0;
        let work = Fill { blocks, new: Answers::with_capacity(keys.len()) };
        let Ok(work) = tile::run(Level::detect(), &layout, &Hasher::default(), keys, work);
        Ok(work.new)
    }
}

/// Returns the number of the block of a hash among this many blocks.
///
/// A reader of a single key needs only this block of the filter.
///
/// ```
/// use umbel::foreign::sbbf::{BLOCK_BYTES, Blocks, block_of, hash};
/// let mut filter = Blocks::new(16)?;
/// filter.insert_hash(hash(b"apple"))?;
/// let at = block_of(hash(b"apple"), filter.len()) as usize;
/// let block = Blocks::from_bytes(&filter.as_bytes()[at * BLOCK_BYTES..][..BLOCK_BYTES])?;
/// assert!(block.contains_hash(hash(b"apple")));
/// # Ok::<(), umbel::Error>(())
/// ```
#[inline(always)]
pub fn block_of(hash: u64, blocks: u64) -> u64 {
    // Exact as long as there are at most 2^32 blocks, of 128 GiB.
    ((hash >> 32) * blocks) >> 32
}

fn check_len(bytes: usize) -> Result<()> {
    if bytes > 0 && bytes.is_multiple_of(BLOCK_BYTES) {
        return Ok(());
    }
    let what = format!("its bit set has {bytes} bytes, and not a multiple of {BLOCK_BYTES} above 0");
    Err(FormatError::invalid(what).into())
}

/// Returns the bits of a hash, as numbers in the whole bit set.
pub(in crate::foreign) fn bit_numbers(blocks: &Blocks, hash: u64) -> impl Iterator<Item = u64> {
    let start = blocks.layout().block(hash) as u64 * BLOCK_BITS;
    let bit = move |(word, salt)| start + word * 32 + u64::from((hash as u32).wrapping_mul(salt) >> 27);
    (0u64..).zip(crate::arch::SPLIT_BLOCK_SALTS).map(bit)
}

/// The place of the keys in the blocks.
#[derive(Clone, Copy)]
struct Layout {
    blocks: u64,
}

impl Layout {
    #[inline(always)]
    fn block(self, hash: u64) -> usize {
        block_of(hash, self.blocks) as usize
    }
}

/// The blocks of the keys of a tile.
#[derive(Clone, Copy)]
struct BlockPlaces([u64; TILE]);

impl Places for BlockPlaces {
    const EMPTY: BlockPlaces = BlockPlaces([0; TILE]);
}

impl Tiled for Layout {
    type Places = BlockPlaces;

    #[inline(always)]
    fn places(&self, tile: &Tile, places: &mut BlockPlaces) {
        for (place, digest) in places.0.iter_mut().zip(tile) {
            *place = self.block(digest.get()) as u64;
        }
    }
}

impl Lookup for Layout {
    type Memory = [Block];

    #[inline(always)]
    fn prefetch(&self, blocks: &[Block], places: &BlockPlaces) {
        for place in &places.0 {
            prefetch(blocks, *place as usize);
        }
    }

    #[inline(always)]
    fn contains_tile<S: Simd>(
        &self,
        simd: S,
        blocks: &[Block],
        tile: &Tile,
        at: Pair<'_, BlockPlaces>,
    ) -> u64 {
        let mut answer = 0;
        // From the last key to the first, so that shifting left puts the answer of key `i` into bit
        // `i`.
        for ((place, next), digest) in at.now.0.iter().zip(&at.next.0).zip(tile).rev() {
            prefetch(blocks, *next as usize);
            let present = simd.test_split_block(&blocks[*place as usize], digest.get() as u32);
            answer = answer << 1 | u64::from(present);
        }
        answer
    }
}

/// Inserts the keys of a batch and collects which were new.
struct Fill<'a> {
    blocks: &'a mut [Block],
    new: Answers,
}

impl Work<Layout> for Fill<'_> {
    type Error = Infallible;

    #[inline(always)]
    fn start(&self, layout: &Layout, first: &Stage<Layout>) {
        layout.prefetch(self.blocks, first.places());
    }

    #[inline(always)]
    fn tile<S: Simd>(
        &mut self,
        simd: S,
        _: &Layout,
        now: &Stage<Layout>,
        next: &Stage<Layout>,
    ) -> Result<(), Infallible> {
        let mut new = 0;
        for (i, digest) in now.digests().iter().enumerate() {
            prefetch(self.blocks, next.places().0[i] as usize);
            let block = &mut self.blocks[now.places().0[i] as usize];
            let hash = digest.get() as u32;
            new |= u64::from(!simd.test_split_block(block, hash)) << i;
            simd.set_split_block(block, hash);
        }
        self.new.push_tile(new, now.digests().len());
        Ok(())
    }
}

struct Test<'a> {
    block: &'a Block,
    hash: u64,
}

impl Kernel for Test<'_> {
    type Output = bool;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> bool {
        simd.test_split_block(self.block, self.hash as u32)
    }
}

struct Set<'a> {
    block: &'a mut Block,
    hash: u64,
}

impl Kernel for Set<'_> {
    type Output = bool;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> bool {
        let present = simd.test_split_block(self.block, self.hash as u32);
        simd.set_split_block(self.block, self.hash as u32);
        !present
    }
}

/// A batch of hashes, which are the digests of its keys.
struct Hashes<'a>(&'a [u64]);

impl Batch for Hashes<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn digest_tile(&self, range: Range<usize>, _: &Hasher, digests: &mut [Digest]) {
        for (digest, hash) in digests.iter_mut().zip(&self.0[range]) {
            *digest = Digest::from_hash(*hash);
        }
    }

    fn with_bytes<R>(&self, index: usize, f: impl FnOnce(&[u8]) -> R) -> R {
        f(&self.0[index].to_le_bytes())
    }
}

/// A batch of keys whose digests are their hashes by XXH64.
struct Keys<'a, B: ?Sized>(&'a B);

impl<B: Batch + ?Sized> Batch for Keys<'_, B> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn digest_tile(&self, range: Range<usize>, _: &Hasher, digests: &mut [Digest]) {
        for (digest, index) in digests.iter_mut().zip(range) {
            *digest = Digest::from_hash(self.0.with_bytes(index, hash));
        }
    }

    fn with_bytes<R>(&self, index: usize, f: impl FnOnce(&[u8]) -> R) -> R {
        self.0.with_bytes(index, f)
    }
}
