//! The inventory of a vault: the list of its documents, sealed in the header together with the key.
//!
//! Every document is authentic by itself, but a server could still leave one out, or bring back one
//! that the owner has removed or replaced. The inventory shows both.
//!
//! A change is announced in the inventory before the first file appears or disappears, so that the
//! directory agrees with the inventory whenever a process is killed:
//!
//! ```text
//! header: announce "new replaces old"
//! file of new appears                    now new is a document, and old is not
//! file of old disappears
//! header: list new instead of old
//! ```

use super::zidx::Id;
use std::collections::BTreeSet;

/// The maximum size of an inventory, which has 16 bytes for each document.
pub(super) const MAX_BYTES: usize = 64 << 20;
const ID_BYTES: usize = 16;

/// The documents of a vault, and the changes that may not be complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Inventory {
    /// The number of times the inventory was written.
    pub counter: u64,
    documents: BTreeSet<Id>,
    announced: Vec<Change>,
}

/// A change that is announced before it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// The new document. The change takes effect when its file appears, or at once without one.
    pub new: Option<Id>,
    /// The documents that are removed.
    pub old: Vec<Id>,
}

impl Inventory {
    /// Creates the inventory of a vault that has none yet.
    pub fn from_documents(documents: impl IntoIterator<Item = Id>) -> Inventory {
        Inventory { documents: documents.into_iter().collect(), ..Inventory::default() }
    }

    /// Returns whether a document is in the vault, or would be if an announced change is complete
    /// or is not.
    pub fn may_contain(&self, id: &Id) -> bool {
        self.documents.contains(id) || self.announced.iter().any(|change| change.new == Some(*id))
    }

    /// Returns the listed documents.
    pub fn documents(&self) -> &BTreeSet<Id> {
        &self.documents
    }

    /// Returns whether changes are announced that may not be complete.
    pub fn has_announced(&self) -> bool {
        !self.announced.is_empty()
    }

    /// Returns whether a new document is announced that replaces no other.
    pub fn is_reserved(&self, id: &Id) -> bool {
        self.announced.iter().any(|change| change.new == Some(*id) && change.old.is_empty())
    }

    /// Announces a change, instead of an earlier one with the same new document.
    pub fn announce(&mut self, change: Change) {
        if change.new.is_some() {
            self.announced.retain(|other| other.new != change.new);
        }
        self.announced.push(change);
    }

    /// Forgets an announced change.
    pub fn withdraw(&mut self, change: &Change) {
        self.announced.retain(|other| other != change);
    }

    /// Lists the result of a change whose files have appeared and disappeared.
    pub fn complete(&mut self, change: &Change) {
        self.withdraw(change);
        self.apply(change);
    }

    /// Forgets the announced documents that never appeared.
    pub fn retain_new(&mut self, appeared: impl Fn(&Id) -> bool) {
        self.announced.retain(|change| change.new.as_ref().is_none_or(&appeared));
    }

    /// Completes the announced changes whose new document is present, and forgets the others.
    /// Returns the documents that they remove, whose files may still exist.
    pub fn settle(&mut self, is_present: impl Fn(&Id) -> bool) -> Vec<Id> {
        self.retain_new(is_present);
        let mut removed = Vec::new();
        for change in std::mem::take(&mut self.announced) {
            self.apply(&change);
            removed.extend(change.old);
        }
        removed
    }

    fn apply(&mut self, change: &Change) {
        for id in &change.old {
            self.documents.remove(id);
        }
        self.documents.extend(change.new);
    }

    /// Returns the bytes to seal.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16 + ID_BYTES * self.documents.len());
        bytes.extend(self.counter.to_le_bytes());
        bytes.extend((self.documents.len() as u32).to_le_bytes());
        bytes.extend((self.announced.len() as u32).to_le_bytes());
        self.documents.iter().for_each(|id| bytes.extend(id.0));
        for Change { new, old } in &self.announced {
            bytes.extend(u32::from(new.is_some()).to_le_bytes());
            bytes.extend((old.len() as u32).to_le_bytes());
            new.iter().chain(old).for_each(|id| bytes.extend(id.0));
        }
        bytes
    }

    /// Parses what [`to_bytes`](Inventory::to_bytes) returns.
    pub fn from_bytes(bytes: &[u8]) -> Option<Inventory> {
        let mut rest = bytes;
        let counter = take(&mut rest).map(u64::from_le_bytes)?;
        let [documents, announced] = [number(&mut rest)?, number(&mut rest)?];
        let documents = ids(&mut rest, documents)?.into_iter().collect();
        let mut changes = Vec::new();
        for _ in 0..announced {
            let [new, old] = [number(&mut rest)?, number(&mut rest)?];
            let new = ids(&mut rest, new)?;
            if new.len() > 1 {
                return None;
            }
            changes.push(Change { new: new.first().copied(), old: ids(&mut rest, old)? });
        }
        rest.is_empty().then_some(Inventory { counter, documents, announced: changes })
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    take(bytes).map(u32::from_le_bytes)
}

/// Takes this many ids. The number is checked against the length before memory is allocated.
fn ids(bytes: &mut &[u8], count: u32) -> Option<Vec<Id>> {
    let (first, rest) = bytes.split_at_checked((count as usize).checked_mul(ID_BYTES)?)?;
    *bytes = rest;
    Some(first.as_chunks::<ID_BYTES>().0.iter().map(|id| Id(*id)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> Id {
        Id([number; 16])
    }

    fn listed(inventory: &Inventory) -> Vec<Id> {
        inventory.documents().iter().copied().collect()
    }

    #[test]
    fn an_inventory_survives_a_round_trip_and_no_part_of_one_is_accepted() {
        let mut inventory = Inventory::from_documents([id(1), id(2)]);
        inventory.counter = 7;
        inventory.announce(Change { new: Some(id(3)), old: vec![id(1)] });
        inventory.announce(Change { new: None, old: vec![id(2)] });
        inventory.announce(Change { new: Some(id(4)), old: vec![] });
        let bytes = inventory.to_bytes();
        assert_eq!(Inventory::from_bytes(&bytes), Some(inventory));
        assert!((0..bytes.len()).all(|end| Inventory::from_bytes(&bytes[..end]).is_none()));
        assert_eq!(Inventory::from_bytes(&[&bytes[..], b"x"].concat()), None);
        // A number that is larger than the bytes after it takes no memory.
        assert_eq!(Inventory::from_bytes(&[255; 64]), None);
    }

    #[test]
    fn an_announced_change_counts_from_the_moment_its_document_appears() {
        let mut announced = Inventory::from_documents([id(1), id(2)]);
        let change = Change { new: Some(id(3)), old: vec![id(1)] };
        announced.announce(change.clone());
        let mut before = announced.clone();
        assert_eq!((before.settle(|_| false), listed(&before)), (vec![], vec![id(1), id(2)]));
        let mut after = announced.clone();
        assert_eq!((after.settle(|_| true), listed(&after)), (vec![id(1)], vec![id(2), id(3)]));
        announced.complete(&change);
        assert_eq!(announced, after);
        // A removal without a new document takes effect at once.
        after.announce(Change { new: None, old: vec![id(2)] });
        assert_eq!((after.settle(|_| false), listed(&after)), (vec![id(2)], vec![id(3)]));
    }
}
