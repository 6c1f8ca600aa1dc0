//! Payloads that are cut where their content says so: winnowing (Schleimer, Wilkerson and Aiken 2003) several times over, as
//! Ponec, Giura, Brönnimann and Wein (2007) do for the attribution of payloads.
//!
//! Blocks of equal size have to be looked for at every alignment and together with their number. Here the content itself says
//! where a block ends. Every position has a hash of the eight bytes that begin there. In every window of v positions, the one
//! with the least hash is a *boundary*, and the last of them if there are several. A block goes from one boundary to
//! the next, and on over so many bytes of *overlap*, which chain it to its neighbour. This is done by several *instances*, each with
//! hashes of its own, so that each cuts elsewhere and each has a say about an excerpt.
//!
//! # Nothing is missed
//!
//! A position counts if the payload has at least max(8, overlap) bytes from it on, so that its hash is known and a block that
//! ends there is whole. Then **every block of an excerpt is a block of every payload that contains it**:
//!
//! - A window of the excerpt is one of the payload, so boundaries of the excerpt are boundaries of the payload.
//! - Between neighbours a < b of the excerpt, the payload has no other boundary c. It would be the choice of a window W that is not
//!   inside the excerpt. If W begins before it, then W has a, since a lies between the start of W and c, and a was chosen by a later
//!   window V. V ends after W does, so V has c, too. W prefers c to a while V prefers a to c, which cannot be: of two positions the
//!   smaller is preferred, or the later of equals, whatever the window. If W ends after the excerpt does, the same is true of b.
//!
//! Neighbours are at most v apart: if the least of a window is its first position, the next window is full of the v positions
//! after it. So the blocks of an excerpt cover it but for fewer than v bytes at its start and fewer than v + max(8, overlap) at its
//! end, and [`needed`](Winnowing::needed) tells from which length on it has a block at all.
//!
//! # Repeated content
//!
//! In a run of one byte all hashes are equal, and every position is a boundary: no rule that looks only at the content of
//! a window could choose otherwise, and one that looks at more would miss excerpts. But all these blocks have the same content.
//! A block is therefore reported only if its digest differs from the one before it of the same instance. That takes no digest away,
//! since the first of equal ones is reported, so nothing is missed. The same is true of content that repeats every few bytes.
//!
//! A long overlap would undo that, since near the end of a run blocks reach beyond it, each by one byte more. So where the eight
//! bytes at both boundaries of a block are the same, its overlap is those eight bytes at most. With that, and windows of 64 positions,
//! no content of runs and repetitions that was tried leaves more than 2.5 times the digests of random content. Without it there are up
//! to five times as many with 16 bytes of overlap, and twelve times with 64.
//!
//! Who knows the seed can also make content with a boundary at every byte. Where that matters, take a hasher with a secret.
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

mod minima;
mod stream;

pub use stream::{Cutter, Stream};

use crate::{Error, Result};
use minima::{GRAM, Keys};
use umbel::{Digest, Hasher};

/// The number of positions in the widest window.
pub const MAX_WINDOW: usize = 1024;
/// The most instances.
pub const MAX_INSTANCES: u32 = 64;
/// The longest overlap in bytes.
pub const MAX_OVERLAP: usize = 1024;

/// How payloads are cut; see the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Winnowing {
    window: usize,
    overlap: usize,
    hasher: Hasher,
    /// What all instances share, and what each has of its own.
    shared: Keys,
    keys: Vec<Keys>,
}

/// A piece of content from one boundary to the next, and the overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block {
    /// Which instance has cut it, from 0.
    pub instance: u32,
    /// Its first byte.
    pub start: u64,
    /// The byte after its last one, with its overlap.
    pub end: u64,
    /// The digest of its bytes. The same bytes have another one in another instance.
    pub digest: Digest,
}

impl Winnowing {
    /// Windows of so many positions, so many instances, and so many bytes of overlap. Where to cut depends on the hasher, too.
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

    /// How many positions a window has.
    pub fn window(&self) -> usize {
        self.window
    }

    /// How many instances there are.
    pub fn instances(&self) -> u32 {
        self.keys.len() as u32
    }

    /// How many bytes of the next block belong to a block.
    pub fn overlap(&self) -> usize {
        self.overlap
    }

    /// What blocks are hashed with.
    pub fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// How many bytes a block has at most: boundaries are at most a window apart, and then comes the overlap.
    pub fn longest_block(&self) -> usize {
        self.window + self.overlap
    }

    /// From how many bytes on content has a whole block in each instance, whatever it is. With fewer it may have none.
    ///
    /// Two boundaries are certain from 2v positions on, since these are two windows that share no position. Of 2v - 1 positions, the
    /// one in the middle is in every window and may be the least of all. So many positions take 2v - 1 bytes and the
    /// max(8, overlap) bytes of the last one.
    pub fn needed(&self) -> usize {
        2 * self.window - 1 + self.reach()
    }

    /// All blocks of a payload or of an excerpt. Who has many of them takes a [`Cutter`].
    pub fn blocks(&self, payload: &[u8]) -> Vec<Block> {
        let mut blocks = Vec::new();
        self.cutter().cut(payload, |block| blocks.push(block));
        blocks
    }

    /// Cuts one payload after the other, or a stream in pieces.
    pub fn cutter(&self) -> Cutter {
        Cutter::new(self.clone())
    }

    /// How many bytes must be there from a position on.
    fn reach(&self) -> usize {
        self.overlap.max(GRAM)
    }

    /// The digest of a block. What differs in length differs as content, so the length need not be added.
    #[inline]
    fn digest(&self, block: &[u8], instance: u32) -> Digest {
        self.hasher.digest_bytes(block).salted(BLOCK | u64::from(instance))
    }
}

/// Sets the digests of blocks apart from others of the same bytes.
const BLOCK: u64 = u64::from_le_bytes(*b"\0\0winnow");
