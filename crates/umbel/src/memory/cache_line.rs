//! The 64-byte cache line: the unit in which all filter memory is aligned, prefetched and folded.

/// How many bits a line holds.
pub const LINE_BITS: u64 = 512;
/// How many 64-bit words a line holds.
pub const LINE_WORDS: usize = 8;
/// How many bytes a line holds.
pub const LINE_BYTES: usize = 64;

/// One cache line of eight 64-bit words, aligned so that no access to it ever crosses into a second line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct CacheLine(pub [u64; LINE_WORDS]);
