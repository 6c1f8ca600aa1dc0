//! Splits bytes into chunks whose boundaries depend on the content.
//!
//! A fingerprint rolls over the last 64 bytes, and a chunk ends where its upper eight bits are
//! zero. So an inserted or deleted byte changes only the chunk around it, and later boundaries stay
//! the same.

use super::elements::Distinct;
use std::collections::HashMap;
use umbel::{Digest, Hasher};

/// The average number of bytes in a chunk.
pub const EXPECTED_CHUNK: usize = 256;

/// The maximum length of a chunk. Text reaches it about once in a thousand megabytes, repeating
/// bytes always do.
const MAX_CHUNK_BYTES: usize = 16 * EXPECTED_CHUNK;

/// A pseudorandom number for each byte.
const GEAR: [u64; 256] = {
    let mut gear = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        gear[byte] = Digest::from_hash(0x6765_6172).salted(byte as u64).get();
        byte += 1;
    }
    gear
};

/// Splits bytes into chunks as they arrive.
#[derive(Default)]
pub(super) struct Chunks {
    hasher: Hasher,
    fingerprint: u64,
    chunk: Vec<u8>,
    /// The number of times each chunk occurred. A chunk that occurs twice counts as two elements.
    times: HashMap<u64, u64>,
    found: Distinct,
}

impl Chunks {
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.chunk.push(*byte);
            self.fingerprint = (self.fingerprint << 1).wrapping_add(GEAR[usize::from(*byte)]);
            if self.fingerprint >> 56 == 0 || self.chunk.len() == MAX_CHUNK_BYTES {
                self.end();
            }
        }
    }

    fn end(&mut self) {
        let digest = self.hasher.digest_bytes(&self.chunk);
        let times = self.times.entry(digest.get()).or_default();
        self.found.add(if *times == 0 { digest } else { digest.salted(*times) });
        *times += 1;
        self.chunk.clear();
    }

    pub(super) fn finish(mut self) -> Distinct {
        if !self.chunk.is_empty() {
            self.end();
        }
        self.found
    }
}
