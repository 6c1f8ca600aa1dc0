//! The keys of one task, on their way into pieces.

use super::bits;
use super::piece::{HEADER_BYTES, MAX_PAYLOAD_BYTES, Piece, seal};
use super::plan::{BitLayout, Parts, PiecePlan};
use super::route::{BitRoute, LineRoute, Route};
use crate::arch::prefetch;
use crate::key::Hashed;
use crate::memory::LINE_BYTES;
use crate::{Batch, BloomFilter, Digest, Result, tile};
use std::mem;

/// Takes the keys of one task, and returns them as pieces.
///
/// The entries of keys are collected by part until a piece is full. A filter that fits into the
/// memory for them is filled instead once the entries would take more bytes than its bits.
///
/// See the [module](super) for an example.
#[derive(Debug)]
pub struct Collector {
    plan: PiecePlan,
    entries: Entries,
    /// The bits of all keys, instead of entries.
    filled: Option<BloomFilter>,
}

/// The memory for entries, and the size of the largest filter that is filled. Engines give a task a
/// few hundred MiB.
const MAX_COLLECTED_BYTES: u64 = 32 << 20;
/// The smallest payload that leaves because the piece is full.
const MIN_FULL_BYTES: usize = 4 << 10;

impl Collector {
    /// Creates the collector of one task.
    pub fn new(plan: &PiecePlan) -> Collector {
        Collector { plan: plan.clone(), entries: Entries::new(plan), filled: None }
    }

    /// Adds keys. [Drain](Collector::drain) the collector after each batch, so that full pieces do
    /// not wait in memory.
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    pub fn add<B: Batch + ?Sized>(&mut self, keys: &B) -> Result<()> {
        let Collector { plan, entries, filled } = self;
        if let Some(filter) = filled {
            return fill(filter, entries, keys);
        }
        tile::chunks(keys, plan.hasher(), |digests| {
            if let Some(filter) = filled {
                return fill(filter, entries, &Hashed(digests));
            }
            entries.add(plan, digests);
            *filled = entries.replace_by_bits(plan)?;
            Ok(())
        })
    }

    /// Returns the pieces that are full, each with its part; if these were the `last` keys of the
    /// task, all pieces. The collector is then empty.
    pub fn drain(&mut self, last: bool) -> Vec<(u32, Vec<u8>)> {
        let Collector { plan, entries, filled } = self;
        if last {
            if let (Some(filter), Parts::Ranges(ranges)) = (filled.take(), plan.all_parts()) {
                for range in 0..plan.parts() {
                    let lines = &filter.words().lines()[ranges.lines_of(range)];
                    let inserted = mem::take(&mut entries.inserted[0]);
                    bits::encode(plan, range, lines, inserted, |piece| entries.pieces.push((range, piece)));
                }
            }
            entries.finish(plan);
        }
        mem::take(&mut entries.pieces)
    }
}

/// Inserts keys into the filter that has replaced the entries.
fn fill<B: Batch + ?Sized>(filter: &mut BloomFilter, entries: &mut Entries, keys: &B) -> Result<()> {
    filter.insert_batch(keys);
    entries.inserted[0] += keys.len() as u64;
    Ok(())
}

/// The entries of keys, by part.
#[derive(Debug)]
struct Entries {
    /// For each part, the space for a header and the entries after it.
    parts: Vec<Vec<u8>>,
    /// The number of insertions that no piece has reported yet: for each shard, or for all ranges.
    inserted: Vec<u64>,
    /// The length at which a piece is full.
    full: usize,
    /// The number of keys that have entries here or in a piece.
    keys: u64,
    recent: Recent,
    /// Complete pieces.
    pieces: Vec<(u32, Vec<u8>)>,
}

impl Entries {
    fn new(plan: &PiecePlan) -> Entries {
        let parts = plan.parts() as usize;
        let share = (MAX_COLLECTED_BYTES as usize / parts).clamp(MIN_FULL_BYTES, MAX_PAYLOAD_BYTES);
        let counts = if plan.shard_plan().is_some() { parts } else { 1 };
        Entries {
            parts: vec![vec![0; HEADER_BYTES]; parts],
            inserted: vec![0; counts],
            // Whole lines are whole entries, of any size.
            full: HEADER_BYTES + share / LINE_BYTES * LINE_BYTES,
            keys: 0,
            recent: Recent::new(),
            pieces: Vec::new(),
        }
    }

    fn add(&mut self, plan: &PiecePlan, digests: &[Digest]) {
        let ranges = match plan.all_parts() {
            Parts::Shards(shards) => {
                return digests.iter().for_each(|digest| {
                    let shard = shards.shard_of(*digest);
                    self.inserted[shard] += 1;
                    if !self.recent.contains_or_insert(*digest) {
                        self.push(plan, shard, &digest.get().to_le_bytes());
                    }
                });
            }
            Parts::Ranges(ranges) => ranges,
        };
        self.inserted[0] += digests.len() as u64;
        let (bits, lines) = (ranges.log2 + 3, ranges.log2 - LINE_BYTES.ilog2());
        match ranges.layout {
            BitLayout::Standard(layout) => self.collect(plan, digests, BitRoute { layout, log2: bits }),
            BitLayout::Partitioned(layout) => self.collect(plan, digests, BitRoute { layout, log2: bits }),
            BitLayout::Blocked(layout) => self.collect(plan, digests, LineRoute { layout, log2: lines }),
        }
    }

    fn collect<R: Route>(&mut self, plan: &PiecePlan, digests: &[Digest], route: R) {
        for digest in digests {
            if !self.recent.contains_or_insert(*digest) {
                self.keys += 1;
                route.route(*digest, |part, entry| self.push(plan, part, entry));
            }
        }
    }

    #[inline(always)]
    fn push(&mut self, plan: &PiecePlan, part: usize, entry: &[u8]) {
        let entries = &mut self.parts[part];
        // The next line of each of a thousand pieces: the processor foresees only a few of them.
        prefetch(entries, entries.len() + LINE_BYTES);
        entries.extend_from_slice(entry);
        if entries.len() >= self.full {
            self.pieces.push(seal_part(plan, part, entries, &mut self.inserted));
        }
    }

    /// Returns a filter that has the bits of all entries, and forgets these, if they take more
    /// memory than it.
    fn replace_by_bits(&mut self, plan: &PiecePlan) -> Result<Option<BloomFilter>> {
        let Parts::Ranges(ranges) = plan.all_parts() else { return Ok(None) };
        let bytes = ranges.bytes();
        if bytes > MAX_COLLECTED_BYTES || self.keys.saturating_mul(ranges.bytes_per_key()) <= bytes {
            return Ok(None);
        }
        let mut filter = plan.build()?;
        for (part, entries) in (0..).zip(&mut self.parts) {
            let payload = &entries[HEADER_BYTES..];
            let piece = Piece { part, inserted: 0, content: plan.entries(), start: 0, payload };
            bits::apply(ranges, &piece, &mut filter.words_mut().lines_mut()[ranges.lines_of(part)])?;
            *entries = vec![0; HEADER_BYTES];
        }
        Ok(Some(filter))
    }

    /// Turns all entries into pieces, and reports all insertions.
    fn finish(&mut self, plan: &PiecePlan) {
        let Entries { parts, inserted, pieces, .. } = self;
        for (part, entries) in parts.iter_mut().enumerate() {
            let unreported = inserted.len() > 1 && inserted[part] > 0;
            if entries.len() > HEADER_BYTES || unreported {
                pieces.push(seal_part(plan, part, entries, inserted));
            }
        }
        // All keys since the last piece were recent ones.
        if inserted[0] > 0 {
            pieces.push(seal_part(plan, 0, &mut parts[0], inserted));
        }
        (self.keys, self.recent) = (0, Recent::new());
    }
}

/// Makes a piece of the entries of a part, and reports insertions with it.
#[cold]
fn seal_part(plan: &PiecePlan, part: usize, entries: &mut Vec<u8>, inserted: &mut [u64]) -> (u32, Vec<u8>) {
    let mut next = Vec::with_capacity(entries.len());
    next.resize(HEADER_BYTES, 0);
    let count = if inserted.len() > 1 { &mut inserted[part] } else { &mut inserted[0] };
    let piece = mem::replace(entries, next);
    (part as u32, seal(piece, plan, part as u32, plan.entries(), 0, mem::take(count)))
}

/// The number of recent digests: few enough that the nearest cache has room for other data.
const RECENT: usize = 1 << 9;

/// Digests that were added a short time ago, which need no second entry. Columns are often sorted,
/// and a few keys are often frequent: without this, all their rows would go to one merge.
struct Recent(Box<[u64; RECENT]>);

impl Recent {
    fn new() -> Recent {
        // A value in each place that no digest of the place has.
        Recent(Box::new(std::array::from_fn(|place| !(place as u64))))
    }

    #[inline(always)]
    fn contains_or_insert(&mut self, digest: Digest) -> bool {
        let digest = digest.get();
        let place = &mut self.0[digest as usize % RECENT];
        mem::replace(place, digest) == digest
    }
}

impl std::fmt::Debug for Recent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recent")
    }
}
