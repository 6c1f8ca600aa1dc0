//! Winnowing: cutting payloads at boundaries determined by their content (Schleimer, Wilkerson and
//! Aiken 2003), several times independently, as Ponec, Giura, Brönnimann and Wein (2007) do for
//! payload attribution.
//!
//! Blocks of equal size must be looked up in every alignment and together with their number. Here
//! the content determines where a block ends. Every position has a hash of the eight bytes that
//! begin there. In every window of v positions, the position with the smallest hash is a
//! *boundary*; among equal hashes, the last one. A block extends from one boundary to the next,
//! plus a few bytes of *overlap*, which chain it to its neighbour. Several *instances* do this,
//! each with its own hash function, so that each cuts elsewhere and an excerpt must match in all of
//! them.
//!
//! # No false negatives
//!
//! A position counts if the payload has at least max(8, overlap) bytes from it on, so that its hash
//! is known and a block that ends there is complete. Then **every block of an excerpt is a block of
//! every payload that contains it**:
//!
//! - A window of the excerpt is a window of the payload, so boundaries of the excerpt are
//!   boundaries of the payload.
//! - Between adjacent boundaries a < b of the excerpt, the payload has no other boundary c. Suppose
//!   it had one, chosen by a window W that is not inside the excerpt. If W begins before the
//!   excerpt, then W contains a, since a lies between the start of W and c, and a was chosen by a
//!   later window V. V ends after W, so V contains c, too. Then W prefers c to a, while V prefers a
//!   to c. That is impossible: of two positions the one with the smaller hash is preferred, or the
//!   later one if the hashes are equal, in every window. If W ends after the excerpt, the same
//!   argument applies to b.
//!
//! Adjacent boundaries are at most v apart: if the minimum of a window is its first position, the
//! next window consists of the v positions after it. So the blocks of an excerpt cover all of it
//! except fewer than v bytes at its start and fewer than v + max(8, overlap) at its end.
//! [`needed`](Winnowing::needed) returns the length from which an excerpt has at least one block.
//!
//! # Repetitive content
//!
//! In a run of equal bytes all hashes are equal, and every position is a boundary. No rule that
//! looks only at the content of a window could choose otherwise, and a rule that looks at more
//! would miss excerpts. But all these blocks have the same content. So a block is reported only if
//! its digest differs from that of the block before it in the same instance. This loses no digest,
//! since the first of several equal ones is reported, and so causes no false negatives. The same
//! holds for content that repeats every few bytes.
//!
//! A long overlap would undo this, since near the end of a run each block reaches one byte further
//! beyond it. So if the eight bytes at both boundaries of a block are equal, its overlap is limited
//! to those eight bytes. With that, and with windows of 64 positions, no content of runs and
//! repetitions that was tried produces more than 2.5 times as many digests as random content.
//! Without it there are up to five times as many with 16 bytes of overlap, and twelve times with
//! 64.
//!
//! An attacker who knows the seed can construct content with a boundary at every byte. Where that
//! matters, use a hasher with a secret.
//!
//! # Example
//!
//! ```
//! use std::collections::HashSet;
//! use umbel::{Digest, Hasher};
//! use umbel_net::payload::winnowing::Winnowing;
//!
//! let winnowing = Winnowing::new(8, 2, 4, Hasher::default())?;
//! let payload = b"Content decides where a block ends, so an excerpt is cut as the whole was.";
//! let recorded: HashSet<Digest> = winnowing.blocks(payload).iter().map(|block| block.digest).collect();
//!
//! let excerpt = b"a block ends, so an excerpt";
//! assert!(excerpt.len() >= winnowing.needed());
//! assert!(winnowing.blocks(excerpt).iter().all(|block| recorded.contains(&block.digest)));
//! let other = winnowing.blocks(b"a block ends, so no excerpt");
//! assert!(!other.iter().all(|block| recorded.contains(&block.digest)));
//! # Ok::<(), umbel_net::Error>(())
//! ```
//!
//! # References
//!
//! * S. Schleimer, D. S. Wilkerson and A. Aiken. *Winnowing: local algorithms for document
//!   fingerprinting.* SIGMOD 2003. `SWA03`
//! * M. Ponec, P. Giura, H. Brönnimann and J. Wein. *Highly efficient techniques for network
//!   forensics.* CCS 2007. `PGBW07`

mod minima;
mod stream;

pub use stream::{Cutter, Stream};

use crate::{Error, Result};
use minima::{GRAM, Keys};
use umbel::{Digest, Hasher};

/// The number of positions in the widest window.
pub const MAX_WINDOW: usize = 1024;
/// The largest number of instances.
pub const MAX_INSTANCES: u32 = 64;
/// The longest overlap in bytes.
pub const MAX_OVERLAP: usize = 1024;

/// A rule for cutting payloads; see the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Winnowing {
    window: usize,
    overlap: usize,
    hasher: Hasher,
    /// The hash keys that all instances share; `keys` has those of each instance.
    shared: Keys,
    keys: Vec<Keys>,
}

/// A block: the content from one boundary to the next, plus the overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block {
    /// The number of the instance that cut it, from 0.
    pub instance: u32,
    /// The offset of its first byte.
    pub start: u64,
    /// The offset after its last byte, overlap included.
    pub end: u64,
    /// The digest of its bytes. It differs between instances.
    pub digest: Digest,
}

impl Winnowing {
    /// Returns a winnowing with windows of `window` positions, and blocks that overlap by `overlap`
    /// bytes. The boundaries also depend on the hasher.
    ///
    /// # Errors
    ///
    /// Fails if a parameter is 0 or exceeds its limit; `overlap` may be 0.
    pub fn new(window: usize, instances: u32, overlap: usize, hasher: Hasher) -> Result<Winnowing> {
        if !(1..=MAX_WINDOW).contains(&window) {
            return Err(Error::parameter("window", window, format!("1 to {MAX_WINDOW} positions")));
        }
        if !(1..=MAX_INSTANCES).contains(&instances) {
            return Err(Error::parameter("instances", instances, format!("1 to {MAX_INSTANCES}")));
        }
        if overlap > MAX_OVERLAP {
            return Err(Error::parameter("overlap", overlap, format!("at most {MAX_OVERLAP} bytes")));
        }
        let root = hasher.digest_bytes(b"umbel winnowing boundaries");
        let keys = |salt| Keys::new(root.salted(salt).get());
        let (shared, keys) = (keys(0), (1..=u64::from(instances)).map(keys).collect());
        Ok(Winnowing { window, overlap, hasher, shared, keys })
    }

    /// Returns the number of positions in a window.
    pub fn window(&self) -> usize {
        self.window
    }

    /// Returns the number of instances.
    pub fn instances(&self) -> u32 {
        self.keys.len() as u32
    }

    /// Returns the number of bytes of the next block that a block includes.
    pub fn overlap(&self) -> usize {
        self.overlap
    }

    /// Returns the hasher of the blocks.
    pub fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// Returns the largest size of a block in bytes: boundaries are at most a window apart, and the
    /// overlap follows.
    pub fn longest_block(&self) -> usize {
        self.window + self.overlap
    }

    /// Returns the length from which any content has a whole block in every instance. Shorter
    /// content may have none.
    ///
    /// Two boundaries are certain from 2v positions on, since these contain two windows without a
    /// common position. With 2v - 1 positions, the middle one is in every window and may be the
    /// minimum of all. 2v positions take 2v - 1 bytes plus the max(8, overlap) bytes of the last
    /// one.
    pub fn needed(&self) -> usize {
        2 * self.window - 1 + self.reach()
    }

    /// Returns all blocks of a payload or an excerpt. Use a [`Cutter`] for many of them.
    pub fn blocks(&self, payload: &[u8]) -> Vec<Block> {
        let mut blocks = Vec::new();
        self.cutter().cut(payload, |block| blocks.push(block));
        blocks
    }

    /// Returns a cutter for many payloads, or for a stream in pieces.
    pub fn cutter(&self) -> Cutter {
        Cutter::new(self.clone())
    }

    /// Returns the number of bytes required from a position on.
    fn reach(&self) -> usize {
        self.overlap.max(GRAM)
    }

    /// Returns the digest of a block. Content of different lengths differs, so the length need not
    /// be hashed.
    #[inline]
    fn digest(&self, block: &[u8], instance: u32) -> Digest {
        self.hasher.digest_bytes(block).salted(BLOCK | u64::from(instance))
    }
}

/// The salt that separates the digests of blocks from other digests of the same bytes.
const BLOCK: u64 = u64::from_le_bytes(*b"\0\0winnow");
