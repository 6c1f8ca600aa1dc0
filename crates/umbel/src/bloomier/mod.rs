//! Bloomier filters: maps from keys to values in little more than the bits of the values.
//!
//! Each key has three cells in a table of q-bit cells. The table is solved so that the xor of the
//! three cells and a mask computed from the key is the value of the key. The keys themselves are
//! not stored. A key outside the map decodes to a uniform number of q bits, which is one of the |R|
//! values of the map with probability |R| / 2^q. The width q is chosen so that this rate is at most
//! the requested one.
//!
//! ```
//! use umbel::Bloomier;
//! let map = Bloomier::new(&["apple", "plum", "leek"], &[1, 1, 2], 0.001)?;
//! assert_eq!(map.get("plum"), Some(1));
//! assert_eq!(map.get("leek"), Some(2));
//! assert_eq!(map.get("brick"), None);
//! # Ok::<(), umbel::Error>(())
//! ```
//!
//! # When to use it
//!
//! Use it to look up a small value for each of many keys when some wrong answers for unknown keys
//! do no harm, and all keys are given at once. For each key it takes 1.13 times the bits of a value
//! plus log2(1 / rate): 10.2 bits for one of five values at 1 %. A lookup reads three cells, in
//! three cache lines.
//!
//! [`Bloomier`] is fixed once it is built. In [`BloomierMutable`] values can change but keys
//! cannot; it has a second table, and takes log2(3 / rate) bits in place of log2(1 / rate). Values
//! are integers; a [`CodeBook`] gives them names. [`textbook`] has the construction in rounds, as
//! it was published.
//!
//! Building takes 16 bytes for each key, and 24 more for each key of the shards that are being
//! solved. Those are all keys of a map of up to two million; beyond that, they are per thread a
//! quarter of the keys of a map of ten million, or a tenth of those of a map of a hundred million.
//!
//! # References
//!
//! * B. Chazelle, J. Kilian, R. Rubinfeld and A. Tal. *The Bloomier filter: an efficient data
//!   structure for static support lookup tables.* SODA 2004. `CKRT04`
//! * D. Charles and K. Chellapilla. *Bloomier filters: a second look.* ESA 2008. `CC08`
//! * T. M. Graf and D. Lemire. *Binary fuse filters: fast and smaller than xor filters.* ACM
//!   Journal of Experimental Algorithmics 27, 2022. `GL22`

mod book;
mod mutable;
pub mod textbook;

pub use book::CodeBook;
pub use mutable::BloomierMutable;

use crate::file::FormatError;
use crate::map::{get_by_tiles, get_each};
use crate::memory::{LINE_BYTES, Mover, Words};
use crate::methods::{map_methods, structure_methods};
use crate::retrieval::{
    Arranged, BuildError, Construction, Decode, Sink, TableShape, Wish, build, decode_tile,
};
use crate::sizing::estimate::{Cardinality, Estimate};
use crate::sizing::{self, Given};
use crate::structure::{self, BOOK, Head, Parts, Probe, TABLE};
use crate::tile;
use crate::{
    Batch, Capabilities, Digest, Error, Hasher, Kind, Map, Plan, Result, Spec, Stats, Structure, TILE,
};

/// The options of Bloomier filters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The largest value that a key may have; by default the largest value given. The fewer values
    /// are possible, the smaller the map. A plan without this option is for values up to 255.
    pub largest: Option<u64>,
    /// The number of equal segments, 3 or 4, if the table is arranged as in the literature with one
    /// cell of each key in each segment. The default is the fuse arrangement, which takes a tenth
    /// less memory.
    pub segments: Option<u32>,
}

/// The largest value of a map that is planned without values: a byte.
const PLANNED_LARGEST: u64 = 255;

/// An immutable map from keys to values; see the [module documentation](self).
pub struct Bloomier {
    shape: TableShape,
    words: Words,
    values: Values,
    head: Head,
}

/// The values of a map: the integers from 0 to the largest, optionally with a name for each.
#[derive(Debug)]
pub(crate) struct Values {
    largest: u64,
    book: Option<CodeBook>,
}

impl Values {
    /// Determines the range of values from the options, the code book or these pairs.
    fn new(spec: &Spec, pairs: &[(Digest, u64)], book: Option<CodeBook>) -> Result<Values> {
        let named = book.as_ref().map(|book| book.len() - 1);
        let found = pairs.iter().map(|(_, value)| *value).max().unwrap_or_default();
        let largest = spec.options().bloomier.largest.or(named).unwrap_or(found);
        if named.is_some_and(|named| largest > named) {
            return Err(Error::parameter("values", largest, "a name in the code book for each value"));
        }
        let values = Values { largest, book };
        values.check(found)?;
        Ok(values)
    }

    fn check(&self, value: u64) -> Result<()> {
        if value > self.largest {
            return Err(Error::parameter(
                "value",
                value,
                format!("at most {}, the largest of this map", self.largest),
            ));
        }
        Ok(())
    }

    /// Returns the number of possible values.
    fn count(&self) -> u128 {
        u128::from(self.largest) + 1
    }

    /// Returns the parameters that describe the values in a file.
    fn params(&self) -> [u64; 2] {
        [self.largest, self.book.as_ref().map_or(0, CodeBook::len)]
    }

    fn restore(parts: &mut Parts, largest: u64, names: u64) -> Result<Values> {
        let book = CodeBook::restore(parts, names)?;
        if book.is_some() && names.checked_sub(1).is_none_or(|last| last < largest) {
            return Err(FormatError::invalid("its code book has fewer names than it has values").into());
        }
        Ok(Values { largest, book })
    }

    fn try_clone(&self) -> Result<Values> {
        let book = self.book.as_ref().map(CodeBook::try_clone).transpose()?;
        Ok(Values { largest: self.largest, book })
    }

    fn section(&self) -> Option<(u32, &Words)> {
        self.book.as_ref().map(|book| (BOOK, book.words()))
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        if let Some(book) = &mut self.book {
            book.relocate(mover);
        }
    }

    fn check_contents(&self) -> Result<(), FormatError> {
        self.book.as_ref().map_or(Ok(()), CodeBook::check_contents)
    }
}

/// Pairs the digest of each key with its value.
fn pairs<B: Batch + ?Sized>(hasher: &Hasher, keys: &B, values: &[u64]) -> Result<Vec<(Digest, u64)>> {
    if keys.len() != values.len() {
        let needs = format!("one for each of the {} keys", keys.len());
        return Err(Error::parameter("values", values.len(), needs));
    }
    Ok(hasher.digest_batch(keys).into_iter().zip(values.iter().copied()).collect())
}

/// Returns the requested arrangement of the table.
fn wish<'a>(spec: &Spec, width: u32, construction: &Construction<'a>) -> Wish<'a> {
    let arranged = match spec.options().bloomier.segments {
        Some(k) => Arranged::Segments { k },
        None => Arranged::Fuse,
    };
    Wish { width, arranged, shards: None, threads: construction.threads, progress: construction.progress }
}

fn failed(error: BuildError<u64>) -> Error {
    match error {
        BuildError::Other(error) => error,
        BuildError::Conflict { digest, payloads } => Error::Conflict { digest, values: payloads },
    }
}

/// Plans a map for `n` keys. `answers` is the number of decoded values that an unknown key can be
/// mistaken with, and `beside` is the width of the cells in the second table, or 0 without one.
fn plan_map(kind: Kind, spec: &Spec, n: u64, answers: u128, beside: u32) -> Result<(TableShape, Plan)> {
    let Given { p, m, k, .. } = spec.given();
    if let Some(k) = k {
        return Err(Error::parameter(
            "k",
            k,
            "to be left out: how many cells a key has is up to the arrangement",
        ));
    }
    sizing::check::capacity(n)?;
    let shape = |width| TableShape::plan(n, &wish(spec, width, &Construction::default()));
    let all = |shape: &TableShape| shape.cells() * u64::from(shape.width() + beside);
    let shape = match (p, m) {
        (Some(p), _) => shape(sizing::bloomier::bits_for(answers, p)?)?,
        (None, Some(m)) => {
            let wide = (m / shape(1)?.cells())
                .saturating_sub(beside.into())
                .min(sizing::bloomier::MAX_CELL_BITS.into());
            shape((wide as u32).max(1))?
        }
        (None, None) => return Err(Error::parameter("p", "nothing", "a rate or a size")),
    };
    let rate = rate(answers, shape.width(), n);
    if let Some(m) = m.filter(|m| all(&shape) > *m) {
        return Err(Error::parameter("m", m, format!("at least {} bits for {n} keys", all(&shape))));
    }
    let second = (shape.cells() * u64::from(beside)).div_ceil(8 * LINE_BYTES as u64);
    let plan = spec.finish(Plan {
        kind,
        capacity: n,
        bits: all(&shape),
        stored_bits: all(&shape),
        bytes: (shape.lines() + second) * LINE_BYTES as u64,
        hashes: shape.cells_of_key(),
        lines_touched: shape.cells_of_key() + u32::from(beside > 0),
        rate_asked: p.unwrap_or(rate),
        rate,
    })?;
    Ok((shape, plan))
}

/// Returns the rate of wrong answers. It is the rate of the cells, but at least the probability
/// that an unknown key has the digest of one of the `n` keys.
fn rate(answers: u128, width: u32, n: u64) -> f64 {
    sizing::bloomier::rate(answers, width).max(n as f64 / 2f64.powi(64))
}

/// Returns the number of keys that the map is planned for.
fn planned_keys(spec: &Spec) -> Result<u64> {
    let nothing = || Error::parameter("n", "nothing", "a number of keys: a map is made for those it has");
    spec.given().n.ok_or_else(nothing)
}

impl Bloomier {
    /// Creates the map from each key to the value at the same index.
    ///
    /// # Errors
    ///
    /// Returns an error if there are not as many values as keys, if a key has two values, if `rate`
    /// is out of range, or if there is not enough memory.
    pub fn new<B: Batch + ?Sized>(keys: &B, values: &[u64], rate: f64) -> Result<Bloomier> {
        let spec = Spec::new(keys.len().max(1) as u64, rate)?;
        Bloomier::from_pairs(&spec, pairs(spec.hasher(), keys, values)?, None, &Construction::default())
    }

    /// Creates the map of these digests and values for as many keys as there are pairs, with the
    /// rate and the options of `spec`. With a code book, the values are the numbers of its names.
    /// The pairs are sorted in place, and a key that occurs twice with the same value counts once.
    ///
    /// # Errors
    ///
    /// Returns an error if a key has two values, if a value is larger than the options or the code
    /// book allow, if the keys do not fit in the size that `spec` sets, or if there is not enough
    /// memory.
    pub fn from_pairs(
        spec: &Spec,
        mut pairs: Vec<(Digest, u64)>,
        book: Option<CodeBook>,
        construction: &Construction<'_>,
    ) -> Result<Bloomier> {
        let values = Values::new(spec, &pairs, book)?;
        let (shape, _) = plan_map(Kind::Bloomier, spec, (pairs.len() as u64).max(1), values.count(), 0)?;
        let sinks = |shape: &TableShape| Ok((0..shape.shards()).map(|_| Value).collect());
        let built = build(&mut pairs, &wish(spec, shape.width(), construction), sinks).map_err(failed)?;
        let rate = rate(values.count(), built.shape.width(), built.keys);
        let head = Head::of_all(spec, built.keys, built.shape.bits(), rate)?;
        Ok(Bloomier { shape: built.shape, words: built.words, values, head })
    }

    /// Returns the largest value that a key can have.
    pub fn largest_value(&self) -> u64 {
        self.values.largest
    }

    /// Returns the number of bits in a cell.
    pub fn cell_bits(&self) -> u32 {
        self.shape.width()
    }

    /// Returns the names of the values, if they have any.
    pub fn book(&self) -> Option<&CodeBook> {
        self.values.book.as_ref()
    }
}

/// The sink of a map that decodes to the values themselves.
struct Value;

impl Sink<u64> for Value {
    #[inline(always)]
    fn place(&mut self, _: u64, _: u32, value: u64) -> u128 {
        value.into()
    }
}

structure_methods!([] Bloomier);
map_methods!([] Bloomier);

impl structure::sealed::Sealed for Bloomier {}

impl Structure for Bloomier {
    const KIND: Kind = Kind::Bloomier;

    const CAPABILITIES: Capabilities = Capabilities { fixed: true, ..Capabilities::NOTHING };

    fn plan(spec: &Spec) -> Result<Plan> {
        let largest = spec.options().bloomier.largest.unwrap_or(PLANNED_LARGEST);
        Ok(plan_map(Kind::Bloomier, spec, planned_keys(spec)?, u128::from(largest) + 1, 0)?.1)
    }

    fn predicted_rate(&self, n: u64) -> Result<f64> {
        Ok(rate(self.values.count(), self.shape.width(), n))
    }

    fn try_clone(&self) -> Result<Bloomier> {
        let (words, values) = (self.words.try_clone()?, self.values.try_clone()?);
        Ok(Bloomier { shape: self.shape, words, values, head: self.head.clone() })
    }

    fn trace(&self, digest: Digest, probe: &mut dyn FnMut(Probe) -> Result<()>) -> Result<bool> {
        self.shape.trace(digest, 0, probe)?;
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
        [(TABLE, &self.words)].into_iter().chain(self.values.section()).collect()
    }

    fn relocate(&mut self, mover: &mut dyn Mover) {
        self.words.relocate(mover);
        self.values.relocate(mover);
    }

    fn restore(mut parts: Parts) -> Result<Bloomier> {
        let [shards, kind, a, b, width, seed, largest, names] = parts.params()?;
        let shape = TableShape::from_params([shards, kind, a, b, width, seed])?;
        let words = parts.section(TABLE, shape.lines())?;
        let values = Values::restore(&mut parts, largest, names)?;
        if sizing::bloomier::rate(values.count(), shape.width()) > 1.0 {
            return Err(FormatError::invalid("it has more values than its cells can tell apart").into());
        }
        Ok(Bloomier { shape, words, values, head: parts.finish_all(shape.cells())? })
    }

    fn check_contents(&self) -> Result<(), FormatError> {
        self.shape.check_contents(&self.words)?;
        self.values.check_contents()
    }
}

impl Map for Bloomier {
    fn kind(&self) -> Kind {
        Kind::Bloomier
    }

    #[inline(always)]
    fn hasher(&self) -> &Hasher {
        &self.head.hasher
    }

    #[inline]
    fn get_digest(&self, digest: Digest) -> Option<u64> {
        let value = self.shape.decode(self.words.words(), digest);
        u64::try_from(value).ok().filter(|value| *value <= self.values.largest)
    }

    fn get_tile(&self, tile: &[Digest], values: &mut [u64; TILE]) -> u64 {
        if self.shape.width() > 64 {
            return get_each(self, tile, values);
        }
        *values = decode_tile(&self.shape, self.head.level, self.words.lines(), tile);
        let found = |i: usize| u64::from(values[i] <= self.values.largest) << i;
        (0..tile.len().min(TILE)).fold(0, |all, i| all | found(i))
    }

    fn stats(&self) -> Stats {
        Stats { bits: self.shape.bits(), bytes: bytes(self), ..stats(self, &self.shape, &self.values) }
    }

    fn get_batch<B: Batch + ?Sized>(&self, keys: &B) -> Vec<Option<u64>> {
        if self.shape.width() > 64 {
            return get_by_tiles(self, keys);
        }
        let mut answers = Vec::with_capacity(keys.len());
        let largest = self.values.largest;
        let take =
            |values: &[u64]| answers.extend(values.iter().map(|value| (*value <= largest).then_some(*value)));
        let work = Decode { lines: self.words.lines(), take };
        let Ok(_) = tile::run(self.head.level, &self.shape, &self.head.hasher, keys, work);
        answers
    }
}

/// Returns the memory of all sections in bytes.
fn bytes(map: &impl Structure) -> u64 {
    map.sections().iter().map(|(_, words)| size_of_val(words.words()) as u64).sum()
}

/// Returns the statistics that both maps have in common.
fn stats<M: Structure>(map: &M, shape: &TableShape, values: &Values) -> Stats {
    let keys = map.inserted().unwrap_or_default();
    let mut details = vec![("values", values.count() as f64), ("bits of a cell", shape.width().into())];
    if let Some(book) = &values.book {
        details.push(("code book bytes", size_of_val(book.words().words()) as f64));
    }
    Stats {
        cells: shape.cells(),
        // Each key has a cell of its own.
        used_cells: keys,
        hashes: shape.cells_of_key(),
        estimate: Cardinality::Estimated(Estimate { value: keys as f64, standard_error: 0.0 }),
        rate_now: map.predicted_rate(keys).unwrap_or(1.0),
        details,
        ..Stats::from_structure(map)
    }
}
