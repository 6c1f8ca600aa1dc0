//! The exact table of signatures, which confirms whether a window is one of them.

use super::MAX_LENGTH;
use super::rolling::{Base, Window};
use super::sieve::WHOLE;
use crate::{Error, Result};
use umbel::Digest;

/// All signatures, one after the other, and an open-addressed hash table of their numbers.
#[derive(Clone, Debug)]
pub(super) struct Table {
    bytes: Vec<u8>,
    /// The end of each signature, which is the start of the next.
    ends: Vec<usize>,
    /// A power of two of slots, of which at most half are taken.
    slots: Vec<Slot>,
}

/// The number of a signature and the low half of its digest, which avoids most comparisons.
#[derive(Clone, Copy, Debug)]
struct Slot {
    id: u32,
    tag: u32,
}

const FREE: Slot = Slot { id: u32::MAX, tag: 0 };

impl Table {
    /// Returns the table of the different signatures, in the order in which they were first passed,
    /// and their digests.
    pub fn new<S: AsRef<[u8]>>(
        signatures: impl IntoIterator<Item = S>,
        base: Base,
    ) -> Result<(Table, Vec<Digest>)> {
        let mut table = Table { bytes: Vec::new(), ends: Vec::new(), slots: vec![FREE; 64] };
        let mut digests = Vec::new();
        for signature in signatures {
            let signature = signature.as_ref();
            if !(1..=MAX_LENGTH).contains(&signature.len()) {
                return Err(Error::parameter("signature", bytes(signature.len()), needs()));
            }
            let digest = digest(base, signature);
            if table.find(digest, signature).is_some() {
                continue;
            }
            if table.ends.len() as u64 >= u64::from(FREE.id) {
                return Err(Error::parameter("signatures", "more", "fewer than 2^32 - 1 different ones"));
            }
            table.bytes.extend_from_slice(signature);
            table.ends.push(table.bytes.len());
            digests.push(digest);
            if digests.len() * 2 > table.slots.len() {
                table.slots = vec![FREE; table.slots.len() * 2];
                digests.iter().enumerate().for_each(|(id, digest)| table.place(*digest, id));
            } else {
                table.place(digest, digests.len() - 1);
            }
        }
        Ok((table, digests))
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn get(&self, id: usize) -> Option<&[u8]> {
        let end = *self.ends.get(id)?;
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        Some(&self.bytes[start..end])
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|id| self.get(id))
    }

    /// Returns the number of the signature with these bytes, if any. The digest is that of all the
    /// bytes.
    pub fn find(&self, digest: Digest, bytes: &[u8]) -> Option<usize> {
        self.from(digest)
            .map(|at| self.slots[at])
            .take_while(|slot| slot.id != FREE.id)
            .find(|slot| slot.tag == tag(digest) && self.get(slot.id as usize) == Some(bytes))
            .map(|slot| slot.id as usize)
    }

    pub fn memory(&self) -> u64 {
        let slots = self.slots.len() * size_of::<Slot>();
        (self.bytes.len() + self.ends.len() * size_of::<usize>() + slots) as u64
    }

    fn place(&mut self, digest: Digest, id: usize) {
        if let Some(free) = self.from(digest).find(|at| self.slots[*at].id == FREE.id) {
            self.slots[free] = Slot { id: id as u32, tag: tag(digest) };
        }
    }

    /// Returns the slots in the order in which a digest probes them.
    fn from(&self, digest: Digest) -> impl Iterator<Item = usize> + use<> {
        let mask = self.slots.len() - 1;
        // Use the high half, since the low half is the tag.
        let first = (digest.get() >> 32) as usize;
        (0..=mask).map(move |step| (first + step) & mask)
    }
}

/// Returns the digest of a whole signature, which is that of its window.
fn digest(base: Base, signature: &[u8]) -> Digest {
    Window::new(base, signature.len(), WHOLE).digest(base.hash(signature))
}

fn tag(digest: Digest) -> u32 {
    digest.get() as u32
}

fn bytes(length: usize) -> String {
    format!("{length} bytes")
}

fn needs() -> String {
    format!("1 to {MAX_LENGTH} bytes")
}
