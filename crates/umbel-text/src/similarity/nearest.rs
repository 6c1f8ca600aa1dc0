//! Finds the most similar pairs among many documents.

use super::{Elements, Likeness, Sketch, compare, fitting};
use rayon::prelude::*;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::{Error, Result};
use umbel::memory::count_common;

/// A collection of documents, each with a filter that fits it.
#[derive(Debug, Default)]
pub struct Collection {
    documents: Vec<Document>,
}

#[derive(Debug)]
struct Document {
    elements: usize,
    sketch: Sketch,
}

/// Two documents of a collection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The number of the first document, from 0, in the order of insertion.
    pub left: usize,
    /// The number of the second document, which is larger.
    pub right: usize,
    /// The similarity of the two.
    pub likeness: Likeness,
}

/// The most similar pairs of a collection.
#[derive(Clone, Debug, Default)]
pub struct Nearest {
    /// The pairs, the most similar first.
    pub pairs: Vec<Pair>,
    /// The number of pairs that are similar enough, including those that are not listed.
    pub count: u64,
    /// The number of pairs of filters that were compared. The other pairs differ too much in size.
    pub compared: u64,
}

/// The lowest similarity that can be searched for. Below it, a filter might have to be folded until
/// it is full.
const MIN_SIMILARITY: f64 = 0.05;

/// The size of a block of rows that are compared together, which stays in the fastest caches.
const BLOCK_BYTES: usize = 32 << 10;

impl Collection {
    /// Adds a document, whose number is the number of documents before it.
    ///
    /// # Errors
    ///
    /// Fails if the filter would be too large or memory is short.
    pub fn add(&mut self, elements: &Elements) -> Result<()> {
        let sketch = elements.filter(fitting(elements.len())?)?;
        self.add_sketch(elements.len(), sketch);
        Ok(())
    }

    /// Adds a document with this many elements, whose filter has the [`fitting`] shape.
    pub fn add_sketch(&mut self, elements: usize, sketch: Sketch) {
        self.documents.push(Document { elements, sketch });
    }

    /// Returns the number of documents.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Returns whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Returns the memory of all filters in bytes.
    pub fn bytes(&self) -> u64 {
        self.documents.iter().map(|document| 8 * document.sketch.words().words().len() as u64).sum()
    }

    /// Returns the pairs whose estimated Jaccard similarity is at least `at_least` (0.05 to 1), at
    /// most `most` of them, the most similar first.
    ///
    /// No such pair is missed. Two filters are not compared only if the numbers of elements alone
    /// rule out this similarity.
    ///
    /// # Errors
    ///
    /// Fails if `at_least` is out of range or memory is short.
    pub fn nearest(&self, at_least: f64, most: usize) -> Result<Nearest> {
        if !(MIN_SIMILARITY..=1.0).contains(&at_least) {
            return Err(Error::parameter(
                "at least",
                at_least,
                format!("a similarity from {MIN_SIMILARITY} to 1"),
            ));
        }
        let mut sizes: Vec<usize> = self.documents.iter().map(|document| words(&document.sketch)).collect();
        sizes.sort_unstable_by_key(|words| std::cmp::Reverse(*words));
        sizes.dedup();
        let mut best = Best::new(most);
        // Larger documents, folded to the size of the current class.
        let mut folded: Vec<(usize, Sketch)> = Vec::new();
        for size in sizes {
            let of_class = |number: &usize| words(&self.documents[*number].sketch) == size;
            let members: Vec<usize> = (0..self.len()).filter(of_class).collect();
            let largest = members.iter().map(|number| self.documents[*number].elements).max().unwrap_or(0);
            folded.retain(|(number, _)| largest as f64 >= at_least * self.documents[*number].elements as f64);
            for (_, sketch) in &mut folded {
                while words(sketch) > size {
                    *sketch = sketch.fold()?;
                }
            }
            best.join(self.class(size, &members, &folded, at_least, most));
            for number in members {
                folded.push((number, self.documents[number].sketch.try_clone()?));
            }
        }
        let (count, compared) = (best.count, best.compared);
        let pairs = best.heap.into_sorted_vec().into_iter().map(|ranked| {
            let RankedPair { left, right, .. } = ranked;
            let likeness = compare(&self.documents[left].sketch, &self.documents[right].sketch)?;
            Ok(Pair { left, right, likeness })
        });
        Ok(Nearest { pairs: pairs.collect::<Result<_>>()?, count, compared })
    }

    /// Returns the pairs in which one document has the size of this class and the other is not
    /// smaller.
    fn class(
        &self,
        size: usize,
        members: &[usize],
        folded: &[(usize, Sketch)],
        at_least: f64,
        most: usize,
    ) -> Best {
        let mut rows: Vec<Row> = Vec::with_capacity(members.len() + folded.len());
        let bits = 64.0 * size as f64;
        let row = |number: usize, sketch: &Sketch, member| {
            let ones = sketch.words().count_ones();
            let zeros = 1.0 - ones as f64 / bits;
            let elements = self.documents[number].elements;
            Row { number, elements, ones, member, zeros: zeros.powf(1.0 / (1.0 + at_least)) }
        };
        rows.extend(members.iter().map(|number| row(*number, &self.documents[*number].sketch, true)));
        rows.extend(folded.iter().map(|(number, sketch)| row(*number, sketch, false)));
        // Folded filters belong to larger documents, but in no particular order.
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|at| (rows[*at].elements, rows[*at].number));
        let mut cells: Vec<u64> = Vec::with_capacity(rows.len() * size);
        for at in &order {
            let sketch = match at.checked_sub(members.len()) {
                None => &self.documents[members[*at]].sketch,
                Some(at) => &folded[at].1,
            };
            cells.extend_from_slice(sketch.words().words());
        }
        let rows: Vec<Row> = order.into_iter().map(|at| rows[at]).collect();
        let class = Class { size, bits, cells, rows, at_least };
        let block = (BLOCK_BYTES / 8 / size).max(1);
        let blocks = (0..class.rows.len()).step_by(block).collect::<Vec<_>>();
        blocks
            .into_par_iter()
            .map(|start| class.block(start, block, most))
            .reduce(|| Best::new(most), Best::joined)
    }
}

fn words(sketch: &Sketch) -> usize {
    sketch.words().words().len()
}

/// A document, folded to the size of a class.
#[derive(Clone, Copy)]
struct Row {
    number: usize,
    elements: usize,
    ones: u64,
    /// Whether this is the document's own size.
    member: bool,
    /// The share of zero bits, to the power of 1 / (1 + the requested similarity).
    zeros: f64,
}

/// Filters of one size, sorted by their numbers of elements.
struct Class {
    /// The number of words in a row.
    size: usize,
    bits: f64,
    cells: Vec<u64>,
    rows: Vec<Row>,
    at_least: f64,
}

impl Class {
    fn cells(&self, from: usize, to: usize) -> &[u64] {
        &self.cells[from * self.size..to * self.size]
    }

    /// Compares a block of rows with itself and with all larger rows.
    fn block(&self, start: usize, block: usize, most: usize) -> Best {
        let mut best = Best::new(most);
        let mut counts = Vec::new();
        let end = (start + block).min(self.rows.len());
        // The end of the documents that are small enough to be similar to a row.
        let reach = |row: &Row| {
            self.rows.partition_point(|other| row.elements as f64 >= self.at_least * other.elements as f64)
        };
        let last = reach(&self.rows[end - 1]);
        for from in (start..last).step_by(block) {
            for (i, row) in (start..).zip(&self.rows[start..end]) {
                let (from, to) = (from.max(i + 1), (from + block).min(reach(row)));
                if from >= to {
                    continue;
                }
                count_common(self.cells(i, i + 1), self.cells(from, to), &mut counts);
                for (other, common) in self.rows[from..to].iter().zip(&counts) {
                    if row.member || other.member {
                        best.compared += 1;
                        self.judge(row, other, *common, &mut best);
                    }
                }
            }
        }
        best
    }

    /// Records a pair if it is similar enough.
    fn judge(&self, one: &Row, other: &Row, common: u64, best: &mut Best) {
        let both = one.ones + other.ones;
        // With loads a, b and u = -ln(zeros), (a + b - u) / u >= s means u <= (a + b) / (1 + s).
        // Compare this in bits, which needs no logarithm.
        let most_union = self.bits * (1.0 - one.zeros * other.zeros);
        if (both - common) as f64 > most_union + 1e-6 * self.bits {
            return;
        }
        let load = |ones: u64| -(-(ones as f64) / self.bits).ln_1p();
        let union = load(both - common);
        let jaccard = ((load(one.ones) + load(other.ones) - union) / union).clamp(0.0, 1.0);
        if jaccard >= self.at_least {
            let (left, right) = (one.number.min(other.number), one.number.max(other.number));
            best.add(RankedPair { jaccard, left, right });
        }
    }
}

/// A pair that is similar enough. The least similar pair is the greatest, so that the heap evicts
/// it first.
#[derive(Clone, Copy)]
struct RankedPair {
    jaccard: f64,
    left: usize,
    right: usize,
}

impl Ord for RankedPair {
    fn cmp(&self, other: &RankedPair) -> Ordering {
        let by_place = || (self.left, self.right).cmp(&(other.left, other.right));
        other.jaccard.total_cmp(&self.jaccard).then_with(by_place)
    }
}

impl PartialOrd for RankedPair {
    fn partial_cmp(&self, other: &RankedPair) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RankedPair {
    fn eq(&self, other: &RankedPair) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for RankedPair {}

/// The best pairs so far, and the number of all pairs. The result does not depend on the order of
/// the pairs.
struct Best {
    most: usize,
    heap: BinaryHeap<RankedPair>,
    count: u64,
    compared: u64,
}

impl Best {
    fn new(most: usize) -> Best {
        Best { most, heap: BinaryHeap::new(), count: 0, compared: 0 }
    }

    fn add(&mut self, pair: RankedPair) {
        self.count += 1;
        self.keep(pair);
    }

    fn keep(&mut self, pair: RankedPair) {
        if self.heap.len() < self.most {
            self.heap.push(pair);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && pair < *worst
        {
            *worst = pair;
        }
    }

    fn join(&mut self, other: Best) {
        self.count += other.count;
        self.compared += other.compared;
        other.heap.into_iter().for_each(|pair| self.keep(pair));
    }

    fn joined(mut self, other: Best) -> Best {
        self.join(other);
        self
    }
}
