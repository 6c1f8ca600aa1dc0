//! Chunks of bytes, cut where the bytes say so.
//!
//! A fingerprint rolls over the last 64 bytes, and where its upper eight bits are zero a chunk ends. So a byte that is put in or
//! taken out changes the chunk it is in, and those behind it are cut as before.

use super::elements::Distinct;
use std::collections::HashMap;
use umbel::{Digest, Hasher};

/// Bytes of a chunk, on average.
pub const EXPECTED_CHUNK: usize = 256;

/// The length at which a chunk is cut: in one of a thousand megabytes of text, and always in bytes that repeat.
const MAX_CHUNK_BYTES: usize = 16 * EXPECTED_CHUNK;

/// A number for each byte that looks random.
const GEAR: [u64; 256] = {
    let mut gear = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        gear[byte] = Digest::from_hash(0x6765_6172).salted(byte as u64).get();
        byte += 1;
    }
    gear
};

/// Takes bytes apart as they come.
#[derive(Default)]
pub(super) struct Chunks {
    hasher: Hasher,
    fingerprint: u64,
    chunk: Vec<u8>,
    /// How often each chunk was there: those that are there twice are two elements.
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
