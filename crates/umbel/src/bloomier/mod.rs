//! Bloomier filters: maps from keys to values in little more than the bits of the values.
//!
//! Each key has three cells in a table of q-bit cells. The table is solved so that the three cells,
//! xored with a mask computed from the key, give the value of the key. The keys themselves are not
//! stored. The cells of a key outside the map give a uniform number of q bits, which is one of the
//! |R| values of the map with probability |R| / 2^q. The width q is chosen so that this rate is at
//! most the one asked for.
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
//! # When to take it
//!
//! Take it to look up a small value for each of many keys when some wrong answers for unknown keys
//! do no harm, and all keys are given at once. It costs 1.13 times the bits of a value plus log2(1
//! / rate) for each key: 10.2 bits for one of five values at 1 %. A lookup reads three cells, in
//! three cache lines.
//!
//! [`Bloomier`] is fixed once it is built. In [`BloomierMutable`] values can change but keys
//! cannot; it takes a second table, and log2(3 / rate) bits in place of log2(1 / rate). Values are
//! integers; a [`CodeBook`] gives them names. [`textbook`] has the construction in rounds, as it is
//! published.
//!
//! Building takes 16 bytes for each key. It takes 24 more bytes for each key of the shards that are
//! being solved: all keys up to two million, and, per thread, a quarter of ten million or a tenth
//! of a hundred million.
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

/// What only Bloomier filters ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The largest value that a key may have; by default the largest that one has. The fewer values there can be, the
    /// smaller the map. A plan without one is for values up to 255.
    pub largest: Option<u64>,
    /// The arrangement of the literature, a cell in each of 3 or 4 equal segments, instead of the fuse arrangement,
    /// which takes a tenth less memory.
    pub segments: Option<u32>,
}

/// A map that is planned without values is for bytes.
const PLANNED_LARGEST: u64 = 255;

/// A map that never changes.
pub struct Bloomier {
    shape: TableShape,
    words: Words,
    values: Values,
    head: Head,
}

/// The values that a map can have: 0 to the largest, and perhaps a name for each.
#[derive(Debug)]
pub(crate) struct Values {
    largest: u64,
    book: Option<CodeBook>,
}

impl Values {
    /// The values of these pairs.
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

    /// Refuses a value that is too large.
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

    /// How many there are.
    fn count(&self) -> u128 {
        u128::from(self.largest) + 1
    }

    /// The numbers that describe them in a file.
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

/// The digests of keys with their values.
fn pairs<B: Batch + ?Sized>(hasher: &Hasher, keys: &B, values: &[u64]) -> Result<Vec<(Digest, u64)>> {
    if keys.len() != values.len() {
        let needs = format!("one for each of the {} keys", keys.len());
        return Err(Error::parameter("values", values.len(), needs));
    }
    Ok(hasher.digest_batch(keys).into_iter().zip(values.iter().copied()).collect())
}

/// How the table is wanted.
fn wish<'a>(spec: &Spec, width: u32, construction: &Construction<'a>) -> Wish<'a> {
    let arranged = match spec.options().bloomier.segments {
        Some(k) => Arranged::Segments { k },
        None => Arranged::Fuse,
    };
    Wish { width, arranged, shards: None, threads: construction.threads, progress: construction.progress }
}

/// What is wrong with the pairs.
fn failed(error: BuildError<u64>) -> Error {
    match error {
        BuildError::Other(error) => error,
        BuildError::Conflict { digest, payloads } => Error::Conflict { digest, values: payloads },
    }
}

/// The plan of a map with this many answers that strangers can get from cells of its first table, and so many bits
/// beside each of them.
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

/// The rate of wrong answers: that of the cells, but never below that at which one of `n` keys has the digest of another.
fn rate(answers: u128, width: u32, n: u64) -> f64 {
    sizing::bloomier::rate(answers, width).max(n as f64 / 2f64.powi(64))
}

/// For how many keys a map is planned.
fn planned_keys(spec: &Spec) -> Result<u64> {
    let nothing = || Error::parameter("n", "nothing", "a number of keys: a map is made for those it has");
    spec.given().n.ok_or_else(nothing)
}

impl Bloomier {
    /// The map from each key to the value at the same place.
    pub fn new<B: Batch + ?Sized>(keys: &B, values: &[u64], rate: f64) -> Result<Bloomier> {
        let spec = Spec::new(keys.len().max(1) as u64, rate)?;
        Bloomier::from_pairs(&spec, pairs(spec.hasher(), keys, values)?, None, &Construction::default())
    }

    /// The map of these digests and values: as the specification says, for as many keys as there are. With a code book
    /// the values are the numbers of its names. They are sorted where they lie; a key that comes twice with the same value
    /// is one key, and one that comes with two values is refused.
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

    /// The largest value that a key can have.
    pub fn largest_value(&self) -> u64 {
        self.values.largest
    }

    /// The bits of a cell.
    pub fn cell_bits(&self) -> u32 {
        self.shape.width()
    }

    /// The names of its values, if they have any.
    pub fn book(&self) -> Option<&CodeBook> {
        self.values.book.as_ref()
    }
}

/// Each key finds its value.
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

/// The memory of all sections.
fn bytes(map: &impl Structure) -> u64 {
    map.sections().iter().map(|(_, words)| size_of_val(words.words()) as u64).sum()
}

/// What both maps say of themselves.
fn stats<M: Structure>(map: &M, shape: &TableShape, values: &Values) -> Stats {
    let keys = map.inserted().unwrap_or_default();
    let mut details = vec![("values", values.count() as f64), ("bits of a cell", shape.width().into())];
    if let Some(book) = &values.book {
        details.push(("code book bytes", size_of_val(book.words().words()) as f64));
    }
    Stats {
        cells: shape.cells(),
        // Each key has been given a cell of its own.
        used_cells: keys,
        hashes: shape.cells_of_key(),
        estimate: Cardinality::Estimated(Estimate { value: keys as f64, standard_error: 0.0 }),
        rate_now: map.predicted_rate(keys).unwrap_or(1.0),
        details,
        ..Stats::from_structure(map)
    }
}
