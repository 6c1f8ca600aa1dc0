//! The 64-byte cache line, in which all filter memory is aligned, prefetched and folded.

/// The number of bits in a line.
pub const LINE_BITS: u64 = 512;
/// The number of 64-bit words in a line.
pub const LINE_WORDS: usize = 8;
/// The number of bytes in a line.
pub const LINE_BYTES: usize = 64;

/// A cache line of eight 64-bit words, aligned so that no access crosses into a second line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct CacheLine(pub [u64; LINE_WORDS]);
