//! The table: buckets of fingerprints, and their positions in memory.

use super::codes;
use crate::hash::{MULTIPLIER, reduce};
use crate::memory::LINE_BITS;
use crate::sizing::MAX_BITS;
use crate::sizing::cuckoo::{self as sizing, Form};
use crate::{Digest, Error, Result};
use std::ops::Range;

/// The largest number of slots in a bucket.
const MAX_SLOTS: usize = 8;

/// The sorted fingerprints of a bucket; 0 marks an empty slot. Slots that the bucket does not have
/// are 0, too.
pub(super) type Bucket = [u32; MAX_SLOTS];

/// The shape of a cuckoo filter. It only describes the table: each call takes the words that hold
/// the fingerprints.
///
/// The place of a key is determined by its digest `d` alone, with the [probe
/// stream](crate::hash::Stream) `x_0 = d`, `x_1 = d * C`:
///
/// - its fingerprint of f bits is `1 + reduce(x_1, 2^f - 1)`, never 0;
/// - its first bucket is `reduce(x_0, buckets)`;
/// - its second bucket is `(H - first) mod buckets`, where `H` depends only on the fingerprint, so
///   that either bucket and the fingerprint determine the other bucket. This works for any number
///   of buckets, not only powers of two; with an even number of buckets and an odd `H`, the two are
///   never the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    buckets: u64,
    fingerprint_bits: u32,
    slots: u32,
    form: Form,
}

impl Table {
    /// Creates a table with an even number of buckets of 1, 2, 4 or 8 slots (4 if semi-sorted) for
    /// fingerprints of 2 to 32 bits (4 to 32 if semi-sorted).
    ///
    /// # Errors
    ///
    /// Returns an error if a number is not one of these, or if the table has more than 2^48 bits.
    pub fn new(buckets: u64, fingerprint_bits: u32, slots: u32, form: Form) -> Result<Table> {
        sizing::check_bucket(fingerprint_bits, slots, form)?;
        let table = Table { buckets, fingerprint_bits, slots, form };
        if buckets == 0 || !buckets.is_multiple_of(2) || buckets > MAX_BITS / table.bucket_bits() {
            let needs = "an even number, at least 2, and at most 2^48 bits in all";
            return Err(Error::parameter("buckets", buckets, needs));
        }
        Ok(table)
    }

    /// Returns the number of buckets.
    pub fn buckets(&self) -> u64 {
        self.buckets
    }

    /// Returns the number of bits in a fingerprint.
    pub fn fingerprint_bits(&self) -> u32 {
        self.fingerprint_bits
    }

    /// Returns the number of slots in a bucket.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Returns how buckets are encoded.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Returns the number of slots in all buckets.
    pub fn cells(&self) -> u64 {
        self.buckets * u64::from(self.slots)
    }

    /// Returns the size of all buckets in bits.
    pub fn bits(&self) -> u64 {
        self.buckets * self.bucket_bits()
    }

    /// Returns the number of 64-byte lines that the buckets need.
    pub fn lines(&self) -> u64 {
        self.bits().div_ceil(LINE_BITS)
    }

    /// Returns the size of a bucket in bits.
    #[inline(always)]
    pub(super) fn bucket_bits(&self) -> u64 {
        sizing::bucket_bits(self.fingerprint_bits, self.slots, self.form)
    }

    /// Returns the largest fingerprint, which is also the number of different fingerprints.
    #[inline(always)]
    pub(super) fn fingerprints(&self) -> u64 {
        (1 << self.fingerprint_bits) - 1
    }

    /// Returns the largest number of cache lines that a lookup touches: a bucket may span two.
    pub(super) fn lines_touched(&self) -> u32 {
        if LINE_BITS.is_multiple_of(self.bucket_bits()) { 2 } else { 4 }
    }

    /// Returns the fingerprint of a key and its two buckets.
    #[inline(always)]
    pub(super) fn place(&self, digest: Digest) -> Candidates {
        let x = digest.get();
        let fingerprint = 1 + reduce(x.wrapping_mul(MULTIPLIER), self.fingerprints()) as u32;
        self.place_in(reduce(x, self.buckets), fingerprint)
    }

    /// Returns the two buckets of a fingerprint from one of them.
    #[inline(always)]
    pub(super) fn place_in(&self, bucket: u64, fingerprint: u32) -> Candidates {
        let mixed = u64::from(fingerprint).wrapping_mul(MULTIPLIER);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(MULTIPLIER);
        let sum = 2 * reduce(mixed, self.buckets / 2) + 1;
        let other = if sum < bucket { sum + self.buckets - bucket } else { sum - bucket };
        Candidates { buckets: [bucket, other], fingerprint }
    }

    /// Returns the bit range of a bucket.
    #[inline(always)]
    pub(super) fn range(&self, bucket: u64) -> Range<u64> {
        let start = bucket * self.bucket_bits();
        start..start + self.bucket_bits()
    }

    /// Returns one of `N` equal parts of a bucket, each of which fits in a word.
    #[inline(always)]
    pub(super) fn part<const N: usize>(&self, words: &[u64], bucket: u64, part: usize) -> u64 {
        let bits = self.bucket_bits() / N as u64;
        read(words, bucket * self.bucket_bits() + part as u64 * bits, bits as u32)
    }

    /// Returns whether a bucket fits in a word.
    #[inline(always)]
    fn fits_word(&self) -> bool {
        self.bucket_bits() <= 64
    }

    /// Returns the fingerprints of a bucket.
    #[inline(always)]
    pub(super) fn bucket(&self, words: &[u64], bucket: u64) -> Bucket {
        if self.fits_word() {
            let word = self.part::<1>(words, bucket, 0);
            return self.decode(|offset, width| word >> offset & low_bits(width));
        }
        let start = bucket * self.bucket_bits();
        self.decode(|offset, width| read(words, start + u64::from(offset), width))
    }

    /// Decodes a bucket; `bits(offset, width)` returns `width` bits of it from `offset` on.
    #[inline(always)]
    fn decode(&self, bits: impl Fn(u32, u32) -> u64) -> Bucket {
        let (mut found, f) = (Bucket::default(), self.fingerprint_bits);
        match self.form {
            Form::Plain => {
                for (slot, found) in (0..).zip(&mut found[..self.slots as usize]) {
                    *found = bits(slot * f, f) as u32;
                }
            }
            Form::SemiSorted => {
                let (nibbles, rest) = (u32::from(codes::decode(bits(0, codes::BITS))), f - 4);
                for (slot, found) in (0..).zip(&mut found[..4]) {
                    let low = bits(codes::BITS + slot * rest, rest) as u32;
                    *found = (nibbles >> (4 * slot) & 15) << rest | low;
                }
            }
        }
        found
    }

    /// Writes a bucket of sorted fingerprints.
    #[inline(always)]
    fn set_bucket(&self, words: &mut [u64], bucket: u64, contents: &[u32]) {
        let start = bucket * self.bucket_bits();
        if self.fits_word() {
            let mut word = 0;
            self.encode(contents, |offset, _, value| word |= value << offset);
            return write(words, start, self.bucket_bits() as u32, word);
        }
        self.encode(contents, |offset, width, value| write(words, start + u64::from(offset), width, value));
    }

    /// Encodes a bucket; `put(offset, width, value)` receives each part.
    #[inline(always)]
    fn encode(&self, contents: &[u32], mut put: impl FnMut(u32, u32, u64)) {
        let f = self.fingerprint_bits;
        match self.form {
            Form::Plain => {
                for (slot, fingerprint) in (0..).zip(contents) {
                    put(slot * f, f, u64::from(*fingerprint));
                }
            }
            Form::SemiSorted => {
                let (mut nibbles, rest) = (0, f - 4);
                for (slot, fingerprint) in (0..).zip(contents) {
                    nibbles |= (*fingerprint >> rest) << (4 * slot);
                    put(codes::BITS + slot * rest, rest, u64::from(*fingerprint) & low_bits(rest));
                }
                put(0, codes::BITS, codes::encode(nibbles as u16));
            }
        }
    }

    /// Puts `new` into a slot of the bucket with these contents, keeps the bucket sorted, and
    /// returns the old fingerprint of the slot.
    #[inline(always)]
    fn put(&self, words: &mut [u64], bucket: u64, mut contents: Bucket, mut slot: usize, new: u32) -> u32 {
        let contents = &mut contents[..self.slots as usize];
        let old = std::mem::replace(&mut contents[slot], new);
        while slot > 0 && contents[slot - 1] > new {
            contents.swap(slot - 1, slot);
            slot -= 1;
        }
        while slot + 1 < contents.len() && contents[slot + 1] < new {
            contents.swap(slot, slot + 1);
            slot += 1;
        }
        self.set_bucket(words, bucket, contents);
        old
    }

    /// Replaces one occurrence of `old` in a bucket with `new`; either may be 0, an empty slot.
    /// Returns `false` if `old` is not there.
    #[inline(always)]
    pub(super) fn replace(&self, words: &mut [u64], bucket: u64, old: u32, new: u32) -> bool {
        let contents = self.bucket(words, bucket);
        let found = contents[..self.slots as usize].iter().position(|fingerprint| *fingerprint == old);
        if let Some(slot) = found {
            self.put(words, bucket, contents, slot, new);
        }
        found.is_some()
    }

    /// Puts `new` into a slot of a bucket and returns the old fingerprint. The slot is below
    /// [`Table::slots`].
    #[inline(always)]
    pub(super) fn exchange(&self, words: &mut [u64], bucket: u64, slot: usize, new: u32) -> u32 {
        self.put(words, bucket, self.bucket(words, bucket), slot, new)
    }

    /// Returns whether a bucket is one that [`Table::replace`] can write: sorted, with a valid
    /// code.
    pub(super) fn is_written(&self, words: &[u64], bucket: u64) -> bool {
        let code =
            self.form == Form::Plain || codes::is_code(read(words, self.range(bucket).start, codes::BITS));
        code && self.bucket(words, bucket)[..self.slots as usize].is_sorted()
    }

    /// Returns how often a fingerprint is in its two buckets.
    #[inline(always)]
    pub(super) fn count(&self, words: &[u64], place: &Candidates) -> u32 {
        let pair = place.buckets.map(|bucket| self.bucket(words, bucket));
        pair.iter().flatten().map(|found| u32::from(*found == place.fingerprint)).sum()
    }

    /// Puts a fingerprint into a free slot of the emptier of its buckets, which halves the number
    /// of fingerprints that have to move later. Returns `false` if there is no free slot.
    #[inline(always)]
    pub(super) fn settle(&self, words: &mut [u64], place: &Candidates) -> bool {
        let [first, second] = place.buckets.map(|bucket| self.bucket(words, bucket));
        let free = |contents: &Bucket| contents.iter().filter(|fingerprint| **fingerprint == 0).count();
        let emptier = usize::from(free(&second) > free(&first));
        self.replace(words, place.buckets[emptier], 0, place.fingerprint)
    }

    /// Iterates over all fingerprints with the buckets they are in, bucket by bucket.
    pub(super) fn entries(self, words: &[u64]) -> impl Iterator<Item = (u64, u32)> {
        (0..self.buckets).flat_map(move |bucket| {
            let found = self.bucket(words, bucket).into_iter().filter(|fingerprint| *fingerprint != 0);
            found.map(move |fingerprint| (bucket, fingerprint))
        })
    }
}

/// The fingerprint of a key and the two buckets it may be in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Candidates {
    pub buckets: [u64; 2],
    pub fingerprint: u32,
}

impl Candidates {
    /// Returns whether two keys are indistinguishable: they have the same fingerprint and the same
    /// two buckets.
    pub fn is_same(&self, other: &Candidates) -> bool {
        self.fingerprint == other.fingerprint && self.buckets.contains(&other.buckets[0])
    }
}

/// Returns a mask of the lowest `width` bits, fewer than 64.
#[inline(always)]
pub(super) const fn low_bits(width: u32) -> u64 {
    (1 << width) - 1
}

/// Reads 0 to 64 bits.
#[inline(always)]
fn read(words: &[u64], start: u64, width: u32) -> u64 {
    if width == 0 {
        return 0;
    }
    let (word, shift) = ((start / 64) as usize, (start % 64) as u32);
    // Read both words without a branch: bits of the next word that are not needed are masked off.
    let next = words[(word + 1).min(words.len() - 1)];
    (words[word] >> shift | next << 1 << (63 - shift)) & !0 >> (64 - width)
}

/// Writes 0 to 64 bits.
#[inline(always)]
fn write(words: &mut [u64], start: u64, width: u32, value: u64) {
    if width == 0 {
        return;
    }
    let (word, shift, mask) = ((start / 64) as usize, (start % 64) as u32, !0 >> (64 - width));
    words[word] = words[word] & !(mask << shift) | value << shift;
    if shift + width > 64 {
        let above = 64 - shift;
        words[word + 1] = words[word + 1] & !(mask >> above) | value >> above;
    }
}
