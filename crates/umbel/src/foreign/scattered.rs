//! Filters whose bits lie anywhere in the bit set, for all formats but the split-block filter: one
//! rule of probes, and one bit set or a chain of them.

use super::bits::{self, Bits, Order};
use super::rule::{Dcso, Mitz32, Mitz64, Modulus, Murmur64, Rule, Spark1, Spark2, Walk, Xx64};
use crate::arch::{Simd, prefetch};
use crate::file::FormatError;
use crate::tile::{self, Lookup, Pair, Places, Stage, TILE, Tile, Tiled, Work};
use crate::{Answers, Batch, Digest, Error, Hasher, Level, Result};
use std::convert::Infallible;
use std::ops::Range;

/// The most probes per key that are accepted. A filter of the smallest rate above 0 that a `double`
/// can hold has 1075. With more, one damaged byte could keep a lookup busy for years.
pub(super) const MAX_HASHES: u64 = 1075;

/// The rules by name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rules {
    Dcso,
    Mitz32,
    Mitz64,
    Spark1,
    Spark2 { seed: u32 },
    Xx64 { seed: u64 },
    Murmur64,
}

/// Evaluates an expression with the rule as a constant type.
macro_rules! with_rule {
    ($rules:expr, $rule:ident => $body:expr) => {
        match $rules {
            Rules::Dcso => {
                let $rule = Dcso;
                $body
            }
            Rules::Mitz32 => {
                let $rule = Mitz32;
                $body
            }
            Rules::Mitz64 => {
                let $rule = Mitz64;
                $body
            }
            Rules::Spark1 => {
                let $rule = Spark1;
                $body
            }
            Rules::Spark2 { seed } => {
                let $rule = Spark2 { seed };
                $body
            }
            Rules::Xx64 { seed } => {
                let $rule = Xx64 { seed };
                $body
            }
            Rules::Murmur64 => {
                let $rule = Murmur64;
                $body
            }
        }
    };
}

/// One bit set with its number of probes.
#[derive(Debug)]
pub(super) struct Scattered {
    pub modulus: Modulus,
    pub hashes: u32,
    pub bits: Bits,
}

impl Scattered {
    /// Makes an empty bit set, rounded up to whole 64-bit words. It takes no memory yet.
    pub fn empty(bits: u64, hashes: u64, order: Order) -> Result<Scattered> {
        let (modulus, hashes) = check(bits, hashes)?;
        let len = bits.div_ceil(64) * 8;
        let len = usize::try_from(len).map_err(|_| Error::OutOfMemory { bytes: len })?;
        Ok(Scattered { modulus, hashes, bits: Bits::zero(len, order) })
    }

    /// Puts together the parts of a file.
    pub fn from_parts(bits: u64, hashes: u32, set: Bits) -> Scattered {
        Scattered { modulus: Modulus::new(bits), hashes, bits: set }
    }

    /// Returns a copy, if there is enough memory.
    pub fn try_clone(&self) -> Result<Scattered> {
        Ok(Scattered { bits: self.bits.try_clone()?, ..*self })
    }

    /// Returns the share of bits that are set.
    pub fn fill(&self) -> f64 {
        self.bits.count_ones() as f64 / self.modulus.bits() as f64
    }

    pub fn bit_numbers(&self, rules: Rules, key: &[u8]) -> Vec<u64> {
        with_rule!(rules, rule => {
            let mut walk = rule.start(key);
            (0..self.hashes)
                .map(|_| {
                    let bit = self.modulus.of(rule.number(walk));
                    rule.advance(&mut walk);
                    bit
                })
                .collect()
        })
    }

    pub fn contains(&self, rules: Rules, key: &[u8]) -> bool {
        let Some(bytes) = self.bits.bytes() else { return false };
        with_rule!(rules, rule => {
            self.probes(rule).contains(bytes, rule.start(key))
        })
    }

    /// Sets the bits of a key and returns whether any of them was not set.
    pub fn insert(&mut self, rules: Rules, key: &[u8]) -> Result<bool> {
        Ok(with_rule!(rules, rule => {
            let probes = self.probes(rule);
            probes.insert(self.bits.bytes_mut()?, rule.start(key))
        }))
    }

    fn probes<R: Rule>(&self, rule: R) -> Probes<R> {
        Probes { rule, modulus: self.modulus, hashes: self.hashes, flip: self.bits.order.flip() }
    }

    pub fn contains_batch<B: Batch + ?Sized>(&self, rules: Rules, keys: &B) -> Answers {
        let Some(bytes) = self.bits.bytes() else { return (0..keys.len()).map(|_| false).collect() };
        with_rule!(rules, rule => {
            let layout = Layout { probes: self.probes(rule), keys };
            tile::contains_batch(Level::detect(), &layout, bytes, &Hasher::default(), &Indexes(keys.len()))
        })
    }

    pub fn insert_batch<B: Batch + ?Sized>(&mut self, rules: Rules, keys: &B) -> Result<Answers> {
        with_rule!(rules, rule => {
            let layout = Layout { probes: self.probes(rule), keys };
            let fill = Fill { bytes: self.bits.bytes_mut()?, new: Answers::with_capacity(keys.len()) };
            let Ok(work) =
                tile::run(Level::detect(), &layout, &Hasher::default(), &Indexes(keys.len()), fill);
            Ok(work.new)
        })
    }
}

/// Checks the numbers in the header of a file.
pub(super) fn check(bits: u64, hashes: u64) -> Result<(Modulus, u32)> {
    if bits == 0 {
        return Err(FormatError::invalid("its bit set has no bits").into());
    }
    if !(1..=MAX_HASHES).contains(&hashes) {
        let what = format!("it asks for {hashes} hash functions, and 1 to {MAX_HASHES} make sense");
        return Err(FormatError::invalid(what).into());
    }
    Ok((Modulus::new(bits), hashes as u32))
}

/// All that is needed to find the bits of a key.
#[derive(Clone, Copy)]
struct Probes<R> {
    rule: R,
    modulus: Modulus,
    hashes: u32,
    flip: usize,
}

impl<R: Rule> Probes<R> {
    #[inline(always)]
    fn bit(self, walk: R::Walk) -> u64 {
        self.modulus.of(self.rule.number(walk))
    }

    #[inline(always)]
    fn contains(self, bytes: &[u8], mut walk: R::Walk) -> bool {
        for _ in 0..self.hashes {
            if !bits::is_set(bytes, self.flip, self.bit(walk)) {
                return false;
            }
            self.rule.advance(&mut walk);
        }
        true
    }

    /// Looks up a tile in rounds, as the filters with scattered bits of this library do: each round
    /// tests one probe of every remaining key, prefetches its next one, and moves the keys that pass
    /// to the front, without a branch that cannot be predicted.
    #[inline(always)]
    fn contains_tile(self, bytes: &[u8], at: Pair<'_, Walks<R::Walk>>) -> u64 {
        let (mut walk, mut bit) = (at.now.walks, at.now.first);
        let mut key: [u8; TILE] = std::array::from_fn(|i| i as u8);
        let mut alive = TILE;
        for i in 1..self.hashes {
            let mut kept = 0;
            for survivor in 0..alive {
                if i == 1 {
                    prefetch(bytes, (at.next.first[survivor] / 8) as usize);
                }
                let passes = bits::is_set(bytes, self.flip, bit[survivor]);
                let mut next = walk[survivor];
                self.rule.advance(&mut next);
                let next_bit = self.bit(next);
                prefetch(bytes, (next_bit / 8) as usize);
                (walk[kept], bit[kept], key[kept]) = (next, next_bit, key[survivor]);
                kept += usize::from(passes);
            }
            alive = kept;
        }
        let mut answer = 0;
        for survivor in 0..alive {
            answer |= u64::from(bits::is_set(bytes, self.flip, bit[survivor])) << key[survivor];
        }
        answer
    }

    #[inline(always)]
    fn insert(self, bytes: &mut [u8], mut walk: R::Walk) -> bool {
        let mut present = true;
        for _ in 0..self.hashes {
            present &= bits::set(bytes, self.flip, self.bit(walk));
            self.rule.advance(&mut walk);
        }
        !present
    }
}

/// A batch whose digests are the numbers of its keys: the layout hashes the keys itself, because
/// these formats hash to more than 64 bits.
struct Indexes(usize);

impl Batch for Indexes {
    #[inline(always)]
    fn len(&self) -> usize {
        self.0
    }

    #[inline(always)]
    fn digest_tile(&self, range: Range<usize>, _: &Hasher, digests: &mut [Digest]) {
        for (digest, index) in digests.iter_mut().zip(range) {
            *digest = Digest::from_hash(index as u64);
        }
    }

    fn with_bytes<T>(&self, index: usize, f: impl FnOnce(&[u8]) -> T) -> T {
        f(&(index as u64).to_le_bytes())
    }
}

/// The probes of the keys of a batch.
struct Layout<'k, R, B: ?Sized> {
    probes: Probes<R>,
    keys: &'k B,
}

impl<R: Copy, B: ?Sized> Clone for Layout<'_, R, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Copy, B: ?Sized> Copy for Layout<'_, R, B> {}

/// The hashes of the keys of a tile, and their first bits.
#[derive(Clone, Copy)]
struct Walks<W> {
    walks: [W; TILE],
    first: [u64; TILE],
}

impl<W: Walk> Places for Walks<W> {
    const EMPTY: Walks<W> = Walks { walks: [W::START; TILE], first: [0; TILE] };
}

impl<R: Rule, B: Batch + ?Sized> Tiled for Layout<'_, R, B> {
    type Places = Walks<R::Walk>;

    #[inline(always)]
    fn places(&self, tile: &Tile, places: &mut Walks<R::Walk>) {
        let Layout { probes, keys } = *self;
        // The digests are the numbers of the keys. Those after the end of the batch are old ones, and
        // so are the places there.
        let start = tile[0].get() as usize;
        probes.rule.start_tile(keys, start..keys.len().min(start + TILE), &mut places.walks);
        for (walk, first) in places.walks.iter().zip(&mut places.first) {
            *first = probes.bit(*walk);
        }
    }
}

impl<R: Rule, B: Batch + ?Sized> Lookup for Layout<'_, R, B> {
    type Memory = [u8];

    #[inline(always)]
    fn prefetch(&self, bytes: &[u8], places: &Walks<R::Walk>) {
        for bit in &places.first {
            prefetch(bytes, (bit / 8) as usize);
        }
    }

    #[inline(always)]
    fn contains_tile<S: Simd>(&self, _: S, bytes: &[u8], _: &Tile, at: Pair<'_, Walks<R::Walk>>) -> u64 {
        self.probes.contains_tile(bytes, at)
    }
}

/// Inserts the keys of a batch and collects which were new.
struct Fill<'a> {
    bytes: &'a mut [u8],
    new: Answers,
}

impl<R: Rule, B: Batch + ?Sized> Work<Layout<'_, R, B>> for Fill<'_> {
    type Error = Infallible;

    #[inline(always)]
    fn start(&self, layout: &Layout<'_, R, B>, first: &Stage<Layout<'_, R, B>>) {
        layout.prefetch(self.bytes, first.places());
    }

    #[inline(always)]
    fn tile<S: Simd>(
        &mut self,
        _: S,
        layout: &Layout<'_, R, B>,
        now: &Stage<Layout<'_, R, B>>,
        next: &Stage<Layout<'_, R, B>>,
    ) -> Result<(), Infallible> {
        let (len, mut new) = (now.digests().len(), 0);
        for (i, walk) in now.places().walks[..len].iter().enumerate() {
            prefetch(self.bytes, (next.places().first[i] / 8) as usize);
            new |= u64::from(layout.probes.insert(self.bytes, *walk)) << i;
        }
        self.new.push_tile(new, len);
        Ok(())
    }
}
