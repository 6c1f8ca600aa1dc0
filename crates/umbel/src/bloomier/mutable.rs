//! The map with mutable values. A first table encodes which of a key's cells is its own, and a
//! second table stores the value in that cell.

use super::{PLANNED_LARGEST, Values, bytes, failed, pairs, plan_map, planned_keys, rate, stats, wish};
use crate::arch::prefetch;
use crate::file::FormatError;
use crate::map::get_each;
use crate::memory::{Mover, Packed, Words};
use crate::methods::{map_methods, structure_methods};
use crate::retrieval::{Construction, Sink, TableShape, build, decode_tile};
use crate::sizing::bloomier::value_bits;
use crate::structure::{self, Head, Parts, Probe, TABLE, VALUES, check_tail};
use crate::tile::ones;
use crate::{
    Batch, Capabilities, CodeBook, Digest, Hasher, Key, Kind, Map, Plan, Result, Spec, Stats, Structure, TILE,
};

/// A map whose values can change, but whose keys cannot.
///
/// ```
/// use umbel::BloomierMutable;
/// let mut shards = BloomierMutable::new(&["alice", "bob", "carol"], &[0, 1, 2], 0.001)?;
/// assert!(shards.set("bob", 2)?);
/// assert_eq!(shards.get("bob"), Some(2));
/// assert!(!shards.set("dave", 1)?, "not in the map");
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// A key outside the map is mistaken for a member at the map's rate, k / 2^q for k cells per key.
/// Setting the value of such a key overwrites the value of another.
pub struct BloomierMutable {
    shape: TableShape,
    /// For each key, the index of its own cell among its k cells.
    places: Words,
    /// The layout of `held`, which stores the value of each key in its own cell.
    cells: Packed,
    held: Words,
    values: Values,
    head: Head,
}

impl BloomierMutable {
    /// Creates the map from each key to the value at the same index.
    ///
    /// # Errors
    ///
    /// Returns an error if there are not as many values as keys, if a key has two values, if `rate`
    /// is out of range, or if there is not enough memory.
    pub fn new<B: Batch + ?Sized>(keys: &B, values: &[u64], rate: f64) -> Result<BloomierMutable> {
        let spec = Spec::new(keys.len().max(1) as u64, rate)?;
        let pairs = pairs(spec.hasher(), keys, values)?;
        BloomierMutable::from_pairs(&spec, pairs, None, &Construction::default())
    }

    /// Creates the map of these digests and values; see
    /// [`Bloomier::from_pairs`](super::Bloomier::from_pairs). Values set later can be at most the
    /// largest of these, unless the options of `spec` allow more.
    ///
    /// # Errors
    ///
    /// As [`Bloomier::from_pairs`](super::Bloomier::from_pairs).
    pub fn from_pairs(
        spec: &Spec,
        mut pairs: Vec<(Digest, u64)>,
        book: Option<CodeBook>,
        construction: &Construction<'_>,
    ) -> Result<BloomierMutable> {
        let values = Values::new(spec, &pairs, book)?;
        let width = value_bits(values.largest);
        let n = (pairs.len() as u64).max(1);
        let (shape, _) = plan_map(Kind::BloomierMutable, spec, n, cells_of_key(spec), width)?;
        let sinks = |shape: &TableShape| (0..shape.shards()).map(|_| ValueCells::new(shape, width)).collect();
        let built = build(&mut pairs, &wish(spec, shape.width(), construction), sinks).map_err(failed)?;
        let cells = Packed::new(built.shape.cells(), width)?;
        let mut held = Words::zeroed(cells.lines())?;
        // If there are several shards, each starts at a whole word.
        let each = (built.shape.stride() * u64::from(width)).div_ceil(64) as usize;
        for (part, sink) in held.words_mut().chunks_mut(each).zip(&built.sinks) {
            part[..each].copy_from_slice(&sink.held.words()[..each]);
        }
        let rate = rate(cells_of_key(spec), built.shape.width(), built.keys);
        let head = Head::of_all(spec, built.keys, built.shape.bits() + cells.bits(), rate)?;
        Ok(BloomierMutable { shape: built.shape, places: built.words, cells, held, values, head })
    }

    /// Returns the largest value that a key can have.
    pub fn largest_value(&self) -> u64 {
        self.values.largest
    }

    /// Returns the names of the values, if they have any.
    pub fn book(&self) -> Option<&CodeBook> {
        self.values.book.as_ref()
    }

    /// Returns the cell that holds the value of the key, if it has one.
    fn cell(&self, digest: Digest) -> Option<u64> {
        let place = self.shape.decode(self.places.words(), digest);
        self.shape.position(digest, u64::try_from(place).ok()?)
    }
}

/// Returns the number of decoded values that would make an unknown key look like a member: one per
/// cell of a key.
fn cells_of_key(spec: &Spec) -> u128 {
    spec.options().bloomier.segments.unwrap_or(3).into()
}

/// A sink that stores the value of each key in its own cell and encodes the index of that cell.
struct ValueCells {
    cells: Packed,
    held: Words,
}

impl ValueCells {
    fn new(shape: &TableShape, width: u32) -> Result<ValueCells> {
        let cells = Packed::new(shape.stride(), width)?;
        Ok(ValueCells { cells, held: Words::zeroed(cells.lines())? })
    }
}

impl Sink<u64> for ValueCells {
    fn place(&mut self, cell: u64, which: u32, value: u64) -> u128 {
        self.cells.set(self.held.words_mut(), cell, value);
        which.into()
    }
}

structure_methods!([] BloomierMutable);
map_methods!([] BloomierMutable);

impl structure::sealed::Sealed for BloomierMutable {}

impl Structure for BloomierMutable {
    const KIND: Kind = Kind::BloomierMutable;

    const CAPABILITIES: Capabilities = Capabilities { fixed: true, ..Capabilities::NOTHING };

    fn plan(spec: &Spec) -> Result<Plan> {
        let width = value_bits(spec.options().bloomier.largest.unwrap_or(PLANNED_LARGEST));
        Ok(plan_map(Kind::BloomierMutable, spec, planned_keys(spec)?, cells_of_key(spec), width)?.1)
    }

    fn predicted_rate(&self, n: u64) -> Result<f64> {
        Ok(rate(self.shape.cells_of_key().into(), self.shape.width(), n))
    }

    fn try_clone(&self) -> Result<BloomierMutable> {
        Ok(BloomierMutable {
            shape: self.shape,
            places: self.places.try_clone()?,
            cells: self.cells,
            held: self.held.try_clone()?,
            values: self.values.try_clone()?,
            head: self.head.clone(),
        })
    }

    fn trace(&self, digest: Digest, probe: &mut dyn FnMut(Probe) -> Result<()>) -> Result<bool> {
        self.shape.trace(digest, 0, probe)?;
        let Some(cell) = self.cell(digest) else { return Ok(false) };
        probe(Probe { section: 1, bits: self.cells.range(cell) })?;
        Ok(self.get_digest(digest).is_some())
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn head_mut(&mut self) -> &mut Head {
        &mut self.head
    }

    fn params(&self) -> Vec<u64> {
        [&self.shape.params()[..], &self.values.params()].concat()
    }

    fn sections(&self) -> Vec<(u32, &Words)> {
        [(TABLE, &self.places), (VALUES, &self.held)].into_iter().chain(self.values.section()).collect()
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.places.relocate(mover);
        self.held.relocate(mover);
        self.values.relocate(mover);
    }

    fn restore(mut parts: Parts) -> Result<BloomierMutable> {
        let [shards, kind, a, b, width, seed, largest, names] = parts.params()?;
        let shape = TableShape::from_params([shards, kind, a, b, width, seed])?;
        let places = parts.section(TABLE, shape.lines())?;
        let cells = Packed::new(shape.cells(), value_bits(largest))?;
        let held = parts.section(VALUES, cells.lines())?;
        let values = Values::restore(&mut parts, largest, names)?;
        Ok(BloomierMutable { shape, places, cells, held, values, head: parts.finish_all(shape.cells())? })
    }

    fn check_contents(&self) -> Result<(), FormatError> {
        self.shape.check_contents(&self.places)?;
        check_tail(&self.held, self.cells.bits())?;
        if self.cells.iter(self.held.words()).any(|value| value > self.values.largest) {
            return Err(FormatError::invalid("it holds a value that is larger than its largest"));
        }
        self.values.check_contents()
    }
}

impl Map for BloomierMutable {
    fn kind(&self) -> Kind {
        Kind::BloomierMutable
    }

    #[inline(always)]
    fn hasher(&self) -> &Hasher {
        &self.head.hasher
    }

    fn get_digest(&self, digest: Digest) -> Option<u64> {
        let value = self.cells.get(self.held.words(), self.cell(digest)?);
        (value <= self.values.largest).then_some(value)
    }

    fn get_tile(&self, tile: &[Digest], values: &mut [u64; TILE]) -> u64 {
        if self.shape.width() > 64 {
            return get_each(self, tile, values);
        }
        let tile = &tile[..tile.len().min(TILE)];
        let places = decode_tile(&self.shape, self.head.level, self.places.lines(), tile);
        let held = self.held.words();
        let mut found = 0;
        let mut cells = [0; TILE];
        for (i, digest) in tile.iter().enumerate() {
            if let Some(cell) = self.shape.position(*digest, places[i]) {
                cells[i] = cell;
                prefetch(held, self.cells.split(cells[i]).0);
                found |= 1 << i;
            }
        }
        for i in ones(found) {
            values[i] = self.cells.get(held, cells[i]);
            if values[i] > self.values.largest {
                found &= !(1 << i);
            }
        }
        found
    }

    fn stats(&self) -> Stats {
        let bits = self.shape.bits() + self.cells.bits();
        Stats { bits, bytes: bytes(self), ..stats(self, &self.shape, &self.values) }
    }
}

impl BloomierMutable {
    /// Sets the value of `key`. Returns `false`, and changes nothing, if the key is certainly not
    /// in the map.
    ///
    /// A key outside the map is mistaken for a member at the map's rate; setting it then overwrites
    /// the value of another key.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is larger than the map's [largest
    /// value](BloomierMutable::largest_value).
    pub fn set<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> Result<bool> {
        self.set_digest(key.digest(&self.head.hasher), value)
    }

    /// Sets the value of the key with this digest; see [`BloomierMutable::set`].
    ///
    /// # Errors
    ///
    /// As [`BloomierMutable::set`].
    pub fn set_digest(&mut self, digest: Digest, value: u64) -> Result<bool> {
        self.values.check(value)?;
        let Some(cell) = self.cell(digest) else { return Ok(false) };
        self.cells.set(self.held.words_mut(), cell, value);
        Ok(true)
    }
}
