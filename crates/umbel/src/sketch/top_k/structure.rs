//! The `Structure` of [`TopK`]: files and memory.

use super::{TopK, TopKBuilder};
use crate::file::FormatError;
use crate::memory::{Mover, Words, relocate_box};
use crate::sketch::table::{Entry, KeyTable};
use crate::sketch::{finish, items, summarize};
use crate::structure::{Body, CELLS, Head, ITEMS, Parts, check_tail, small};
use crate::{Capabilities, Kind, Result, Structure};
use std::fmt;

impl fmt::Debug for TopK {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TopKBuilder { k, width, depth, decay } = &self.shape;
        let shape: [(&str, &dyn fmt::Debug); 4] =
            [("k", k), ("width", width), ("depth", depth), ("decay", decay)];
        summarize(f, "TopK", &shape, self.bytes(), &self.head)
    }
}

impl Structure for TopK {
    const KIND: Kind = Kind::TopK;

    const CAPABILITIES: Capabilities = Capabilities { multiset: true, ..Capabilities::NOTHING };

    fn try_clone(&self) -> Result<TopK> {
        let (cells, heap) = (self.cells.try_clone()?, self.heap.try_clone()?);
        Ok(TopK::new_with(self.head.clone(), self.shape, cells, heap, self.draws))
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn head_mut(&mut self) -> &mut Head {
        &mut self.head
    }

    fn params(&self) -> Vec<u64> {
        let TopKBuilder { k, width, depth, decay } = self.shape;
        vec![k, width, depth.into(), decay.to_bits(), self.draws]
    }

    fn sections(&self) -> Vec<(u32, &Words)> {
        vec![(CELLS, &self.cells)]
    }

    fn body(&self) -> Result<Vec<(u32, Body<'_>)>> {
        let items = items::encode(self.heap().map(|item| (item.count, item.key)))?;
        Ok(vec![(CELLS, Body::Held(&self.cells)), (ITEMS, Body::Made(items))])
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.cells.relocate(mover);
        self.heap.relocate(mover);
        relocate_box(&mut self.decay, mover);
    }

    fn restore(mut parts: Parts) -> Result<TopK> {
        let [k, width, depth, decay, draws] = parts.params()?;
        let shape = TopKBuilder { k, width, depth: small(depth), decay: f64::from_bits(decay) };
        let cells = parts.section(CELLS, shape.cells()?.lines())?;
        let entries = items::decode(&parts.section_of_any_size(ITEMS)?, k, true, &parts.head.hasher)?;
        let heap = checked_heap(entries, k)?;
        Ok(TopK::new_with(finish(parts)?, shape, cells, heap, draws))
    }

    fn check_contents(&self) -> Result<(), FormatError> {
        check_tail(&self.cells, 64 * self.shape.width * u64::from(self.shape.depth))
    }
}

/// Returns the heap of a sketch if the entries form a valid one.
pub(super) fn checked_heap(entries: Vec<Entry>, k: u64) -> Result<KeyTable> {
    let invalid = |what: &str| Err(FormatError::invalid(what).into());
    if entries.len() as u64 != k {
        return invalid("the number of its items is not k");
    }
    if entries.iter().any(|entry| entry.count > u32::MAX.into()) {
        return invalid("the count of an item is too high");
    }
    if entries.iter().any(|entry| entry.count == 0 && !entry.key.is_empty()) {
        return invalid("a free place has a key");
    }
    if (1..entries.len()).any(|at| entries[(at - 1) / 2].count > entries[at].count) {
        return invalid("its items are not in the order of a heap");
    }
    match KeyTable::from_entries(entries)? {
        Some(table) => Ok(table),
        None => invalid("an item occurs twice"),
    }
}
