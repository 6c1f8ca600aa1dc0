//! A file used in place, verified part by part as it is touched.

use super::decode::{assemble, decode_header, in_place, open, part};
use super::header::Header;
use super::{FormatError, Info, Loaded, Meta, ReadOnly, Storable};
#[cfg(feature = "files")]
use super::{Placing, part::Part};
use crate::aging::Timestamp;
use crate::map::push_values;
use crate::memory::{Words, map_file};
use crate::space_code::Estimator;
use crate::tile;
use crate::{
    Answers, AnyCount, AnyFilter, AnyMap, Batch, Category, CodeBook, Count, Digest, Error, Filter, Hasher,
    Key, KeyRing, Kind, Map, Multiplicity, Probe, Result, Stats, Stored, TILE,
};
use memmap2::Mmap;
use std::fs::File;
#[cfg(feature = "files")]
use std::io::Write;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Opens a file without reading it: the time does not depend on its size.
///
/// The file must be neither changed nor shortened while it is mapped. A part that is changed after
/// it was verified may yield wrong answers. When a missing part is touched, the system ends the
/// program with the signal SIGBUS (to report more, a program needs
/// [`release_bus_signal`](crate::memory::release_bus_signal) and a handler). [`save`](super::save)
/// does neither: it replaces a file by a new one, and programs that have mapped the old one keep
/// it.
///
/// # Errors
///
/// If the file cannot be opened or mapped, its header is invalid or damaged, or its secret is not
/// in the ring.
pub fn map(path: impl AsRef<Path>, ring: &KeyRing) -> Result<Mapped> {
    let path = path.as_ref();
    let (map, file) = map_whole(path)?;
    Mapped::new(map, file, ring, path.to_owned()).map_err(|error| error.at(path))
}

fn map_whole(path: &Path) -> Result<(Arc<Mmap>, File)> {
    let (file, len) = open(path)?;
    if len == 0 {
        return Err(Error::from(FormatError::NotAFilter).at(path));
    }
    let map = map_file(&file).map_err(|source| Error::io(path, "map", source))?;
    Ok((Arc::new(map), file))
}

/// The information about a file and its filter that is available without a secret.
#[derive(Debug)]
#[non_exhaustive]
pub struct Examined {
    /// The information in the header.
    pub info: Info,
    /// Not exposed, because lookups without the secret would be meaningless.
    filter: ReadOnly<Stored>,
}

impl Examined {
    /// Measures how full the filter is.
    pub fn stats(&self) -> Stats {
        self.filter.stats()
    }

    /// Sets the clock of a filter with a time window; see
    /// [`Aging::advance`](crate::Aging::advance).
    ///
    /// # Errors
    ///
    /// If `now` is before the time set last.
    pub fn advance(&mut self, now: Timestamp) -> Result<()> {
        self.filter.advance(now)
    }

    /// Returns the memory of the filter in the file, section by section.
    pub fn sections(&self) -> Vec<&Words> {
        self.filter.sections()
    }

    /// Returns the largest value that a map can hold; `None` if the file does not hold a map.
    pub fn largest_value(&self) -> Option<u64> {
        match &*self.filter {
            Stored::Map(map) => Some(map.largest_value()),
            _ => None,
        }
    }
}

/// Reads and verifies a whole file and counts its bits. This needs no secret, and no memory of the
/// filter's size.
///
/// # Errors
///
/// If the file cannot be read, or is invalid or damaged.
pub fn examine(path: impl AsRef<Path>) -> Result<Examined> {
    let path = path.as_ref();
    let (map, file) = map_whole(path)?;
    let mapped = Mapped::new(map, file, &KeyRing::blind(), path.to_owned()).map_err(|e| e.at(path))?;
    let info = Info::from_header(&mapped.header);
    let filter = mapped.verify()?.filter;
    Ok(Examined { info, filter })
}

/// Replaces the metadata of a file and leaves everything else unchanged. No secret is needed.
///
/// ```
/// use umbel::{Blocked, Bloom, file};
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("fruit.umbel");
/// file::save(&path, &Bloom::<Blocked>::with_capacity(100_000, 0.01)?, &file::Options::default())?;
/// file::set_meta(&path, [("source".to_string(), "garden".to_string())].into())?;
/// assert_eq!(file::inspect(&path)?.meta["source"], "garden");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// If the file cannot be read or replaced, is invalid or damaged, or there is too much metadata.
#[cfg(feature = "files")]
pub fn set_meta(path: impl AsRef<Path>, meta: Meta) -> Result<()> {
    let path = path.as_ref();
    let (map, file) = map_whole(path)?;
    let blind = KeyRing::blind();
    let mapped = Mapped::new(Arc::clone(&map), file, &blind, path.to_owned()).map_err(|e| e.at(path))?;
    let mut header = mapped.header.clone();
    mapped.verify()?;
    // The checksums cover chunks of the body, counted from its start, and the body does not change.
    let body = part(&map, header.header_len..header.file_len);
    header.meta = meta;
    header.check_meta()?;
    header.place();
    let failed = |source| Error::io(path, "write to", source);
    let mut part = Part::beside(path, Placing::default())?;
    part.file().write_all(&header.encode()).and_then(|()| part.file().write_all(body)).map_err(failed)?;
    part.persist().map(drop)
}

/// A filter in a mapped file, for lookups only. Every part is verified before the first answer from
/// it.
///
/// Lookups are fallible, since the part that a key needs may turn out to be damaged. Once the whole
/// file has been touched, or after [`Mapped::verify`], nothing more is checked.
///
/// `F` is the kind: `BloomFilter::map(path)` returns a `Mapped<BloomFilter>`. [`map`] returns a
/// `Mapped<Stored>`, which holds any kind. Neither can be changed.
///
/// ```
/// use umbel::BloomFilter;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("fruit.umbel");
/// BloomFilter::from_keys(["apple", "pear"], 0.001)?.save(&path)?;
/// let fruit = BloomFilter::map(&path)?;
/// assert!(fruit.contains("apple")?);
/// assert!(fruit.contains_batch(&["pear", "stone"])?.iter().eq([true, false]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```compile_fail
/// # use umbel::BloomFilter;
/// BloomFilter::map("fruit.umbel").unwrap().insert("plum");
/// ```
#[derive(Debug)]
pub struct Mapped<F = Stored> {
    map: Arc<Mmap>,
    /// The open file, which remains valid if its name is reused.
    file: File,
    header: Header,
    filter: Stored,
    path: PathBuf,
    /// One bit per chunk, set once the chunk was found intact.
    intact: Box<[AtomicU64]>,
    /// The number of chunks that have not been checked yet.
    unchecked: AtomicUsize,
    /// The result of checking the whole file, once a chunk has made that necessary.
    contents: OnceLock<Result<(), FormatError>>,
    kind: PhantomData<fn() -> F>,
}

impl Mapped<Stored> {
    fn new(map: Arc<Mmap>, file: File, ring: &KeyRing, path: PathBuf) -> Result<Mapped> {
        in_place()?;
        let header = decode_header(&map)?;
        // Sketches are verified when opened: they are decoded at once, or every answer depends on
        // all of their bits.
        let verified = header.kind.category() == Category::Sketch;
        if verified {
            header.check_chunks(&map)?;
        }
        let filter = assemble(&header, ring, |offset, lines| {
            // The header has bounded the range, and a mapping starts at a page.
            let outside = || FormatError::invalid("a section lies outside the file").into();
            Words::mapped(Arc::clone(&map), offset as usize, lines as usize).ok_or_else(outside)
        })?;
        let (intact, unchecked) = if verified { (!0, 0) } else { (0, header.sums.len()) };
        let intact = (0..header.sums.len().div_ceil(64)).map(|_| AtomicU64::new(intact)).collect();
        let unchecked = AtomicUsize::new(unchecked);
        let contents = OnceLock::new();
        Ok(Mapped { map, file, header, filter, path, intact, unchecked, contents, kind: PhantomData })
    }

    /// Returns the mapped file with its concrete type.
    ///
    /// # Errors
    ///
    /// If the file holds another kind.
    pub fn into_kind<F: Storable>(self) -> Result<Mapped<F>> {
        F::check_kind(self.kind()).map_err(|error| Error::from(error).at(&self.path))?;
        let Mapped { map, file, header, filter, path, intact, unchecked, contents, .. } = self;
        Ok(Mapped { map, file, header, filter, path, intact, unchecked, contents, kind: PhantomData })
    }

    /// Returns whether `key` may be a member of the set.
    ///
    /// # Errors
    ///
    /// If the part of the file that the key needs is damaged, or the file does not hold a set.
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> Result<bool> {
        self.member(key)
    }

    /// Looks up many keys of a set; the fast way.
    ///
    /// # Errors
    ///
    /// As [`contains`](Mapped::contains).
    pub fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Result<Answers> {
        self.members(keys)
    }

    /// Looks up at most 64 digests at once: bit `i` of the result is set if the key of `tile[i]`
    /// may be a member.
    ///
    /// # Errors
    ///
    /// As [`contains`](Mapped::contains); also for a filter of the literature, which does not take
    /// digests.
    pub fn contains_tile(&self, tile: &[Digest]) -> Result<u64> {
        self.members_of_tile(tile)
    }

    /// Returns the value of `key` in the map; `None` if it is certainly not in it.
    ///
    /// # Errors
    ///
    /// If the part of the file that the key needs is damaged, or the file does not hold a map.
    pub fn get<K: Key + ?Sized>(&self, key: &K) -> Result<Option<u64>> {
        self.value(key)
    }

    /// Returns the values of many keys; the fast way.
    ///
    /// # Errors
    ///
    /// As [`get`](Mapped::get).
    pub fn get_batch<B: Batch + ?Sized>(&self, keys: &B) -> Result<Vec<Option<u64>>> {
        self.values(keys)
    }

    /// Estimates how often `key` was recorded in the multiset. The estimate depends on all bits, so
    /// the first call checks the whole file.
    ///
    /// # Errors
    ///
    /// If the file is damaged or does not hold a multiset.
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> Result<Multiplicity> {
        Ok(self.counts()?.count(key))
    }

    /// Estimates how often each of many keys was recorded; the fast way.
    ///
    /// # Errors
    ///
    /// As [`count`](Mapped::count).
    pub fn count_batch<B: Batch + ?Sized>(&self, keys: &B) -> Result<Vec<Multiplicity>> {
        Ok(self.counts()?.count_batch(keys))
    }

    /// Estimates how often each of many keys was recorded, with this estimator.
    ///
    /// # Errors
    ///
    /// As [`count`](Mapped::count).
    pub fn estimate_batch<B: Batch + ?Sized>(
        &self,
        keys: &B,
        estimator: Estimator,
    ) -> Result<Vec<Multiplicity>> {
        Ok(self.counts()?.estimate_batch(keys, estimator))
    }
}

impl Mapped<Stored> {
    /// Checks all parts that have not been checked yet, and returns the structure for operations
    /// that read all of it, such as [`Stored::stats`] or a union with another. It reads the file in
    /// place.
    ///
    /// ```
    /// use umbel::hash::KeyRing;
    /// use umbel::{BloomFilter, file};
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("fruit.umbel");
    /// BloomFilter::from_keys(["apple", "pear"], 0.001)?.save(&path)?;
    /// let fruit = file::map(&path, &KeyRing::new())?;
    /// assert_eq!(fruit.verified()?.inserted(), Some(2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If any part of the file is damaged.
    pub fn verified(&self) -> Result<&Stored> {
        self.check_all()?;
        let contents = self.contents.get_or_init(|| self.filter.check_contents());
        contents.clone().map_err(|error| Error::from(error).at(&self.path))?;
        Ok(&self.filter)
    }
}

impl<F: Filter> Mapped<F> {
    /// Returns whether `key` may be a member.
    ///
    /// # Errors
    ///
    /// If the part of the file that the key needs is damaged.
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> Result<bool> {
        self.member(key)
    }

    /// Looks up many keys; the fast way.
    ///
    /// # Errors
    ///
    /// As `contains`.
    pub fn contains_batch<B: Batch + ?Sized>(&self, keys: &B) -> Result<Answers> {
        self.members(keys)
    }
}

impl<F: Map> Mapped<F> {
    /// Returns the value of `key`; `None` if it is certainly not in the map.
    ///
    /// # Errors
    ///
    /// If the part of the file that the key needs is damaged.
    pub fn get<K: Key + ?Sized>(&self, key: &K) -> Result<Option<u64>> {
        self.value(key)
    }

    /// Returns the values of many keys; the fast way.
    ///
    /// # Errors
    ///
    /// As `get`.
    pub fn get_batch<B: Batch + ?Sized>(&self, keys: &B) -> Result<Vec<Option<u64>>> {
        self.values(keys)
    }
}

impl<F: Count> Mapped<F> {
    /// Estimates how often `key` was recorded. The estimate depends on all bits, so the first call
    /// checks the whole file.
    ///
    /// # Errors
    ///
    /// If the file is damaged.
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> Result<Multiplicity> {
        Ok(self.counts()?.count(key))
    }

    /// Estimates how often each of many keys was recorded; the fast way.
    ///
    /// # Errors
    ///
    /// As `count`.
    pub fn count_batch<B: Batch + ?Sized>(&self, keys: &B) -> Result<Vec<Multiplicity>> {
        Ok(self.counts()?.count_batch(keys))
    }
}

impl<F> Mapped<F> {
    /// Returns the kind of filter in the file.
    pub fn kind(&self) -> Kind {
        self.filter.kind()
    }

    /// Returns the function that turns keys into digests; `None` for a family of the literature.
    pub fn hasher(&self) -> Option<&Hasher> {
        self.filter.hasher()
    }

    /// Returns the information in the header, which was verified when the file was opened.
    pub fn info(&self) -> Info {
        Info::from_header(&self.header)
    }

    /// Returns the metadata.
    pub fn meta(&self) -> &Meta {
        &self.header.meta
    }

    /// Returns the checksum at the end of the header. It covers the checksums of all chunks, so it
    /// stands for the whole file.
    #[cfg(feature = "files")]
    pub(crate) fn header_sum(&self) -> u64 {
        let end = self.header.header_len;
        u64::from_le_bytes(part(&self.map, end - 8..end).try_into().expect("eight bytes were taken"))
    }

    /// Returns the parameters of the filter's shape.
    #[cfg(feature = "files")]
    pub(crate) fn params(&self) -> &[u64] {
        &self.header.params
    }

    /// Returns the open file.
    #[cfg(feature = "files")]
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the length of the file.
    pub fn file_len(&self) -> u64 {
        self.header.file_len
    }

    /// Returns whether the file is still at least as long as it was. A missing part of the last
    /// page reads as zeros, without a signal, so call this after the last lookup to be sure.
    pub fn is_whole(&self) -> bool {
        self.file.metadata().is_ok_and(|now| now.len() >= self.header.file_len)
    }

    /// Sets the clock of a filter with a time window; see
    /// [`Aging::advance`](crate::Aging::advance).
    ///
    /// # Errors
    ///
    /// If `now` is before the time set last.
    pub fn advance(&mut self, now: Timestamp) -> Result<()> {
        self.filter.advance(now)
    }

    /// Checks all parts that have not been checked yet, and returns the filter, which reads the
    /// file in place.
    ///
    /// # Errors
    ///
    /// If any part of the file is damaged.
    pub fn verify(self) -> Result<Loaded<ReadOnly<F>>>
    where
        F: Storable,
    {
        self.check_all()?;
        self.filter.check_contents().map_err(|error| Error::from(error).at(&self.path))?;
        let embedded_key = self.header.embedded_key.is_some();
        Ok(Loaded { filter: ReadOnly(F::from_stored(self.filter)?), meta: self.header.meta, embedded_key })
    }

    fn member<K: Key + ?Sized>(&self, key: &K) -> Result<bool> {
        match &self.filter {
            Stored::Literature(filter) => key.with_bytes(|bytes| {
                // A single pass that stops at the first zero bit.
                for bit in filter.scheme().positions(bytes) {
                    let probe = Probe::bit(bit);
                    self.check_probe(&probe)?;
                    if probe.value(filter.words()) == 0 {
                        return Ok(false);
                    }
                }
                Ok(true)
            }),
            _ => {
                let filter = self.as_set()?;
                let digest = key.digest(filter.hasher());
                self.check_digest(digest)?;
                Ok(filter.contains_digest(digest))
            }
        }
    }

    fn members<B: Batch + ?Sized>(&self, keys: &B) -> Result<Answers> {
        if let Stored::Literature(filter) = &self.filter {
            if self.unchecked.load(Relaxed) == 0 {
                return Ok(filter.contains_batch(keys));
            }
            return (0..keys.len()).map(|i| keys.with_bytes(i, |bytes| self.member(bytes))).collect();
        }
        let filter = self.as_set()?;
        if self.unchecked.load(Relaxed) == 0 {
            return Ok(filter.contains_batch(keys));
        }
        let mut answers = Answers::with_capacity(keys.len());
        self.each_tile(keys, filter.hasher(), |tile| {
            answers.push_tile(filter.contains_tile(tile), tile.len())
        })?;
        Ok(answers)
    }

    fn members_of_tile(&self, tile: &[Digest]) -> Result<u64> {
        let filter = self.as_set()?;
        tile.iter().take(TILE).try_for_each(|digest| self.check_digest(*digest))?;
        Ok(filter.contains_tile(tile))
    }

    fn value<K: Key + ?Sized>(&self, key: &K) -> Result<Option<u64>> {
        let map = self.as_map()?;
        let digest = key.digest(map.hasher());
        self.check_digest(digest)?;
        Ok(map.get_digest(digest))
    }

    fn values<B: Batch + ?Sized>(&self, keys: &B) -> Result<Vec<Option<u64>>> {
        let map = self.as_map()?;
        if self.unchecked.load(Relaxed) == 0 {
            return Ok(map.get_batch(keys));
        }
        let (mut answers, mut values) = (Vec::with_capacity(keys.len()), [0; TILE]);
        self.each_tile(keys, map.hasher(), |tile| {
            let found = map.get_tile(tile, &mut values);
            push_values(&mut answers, found, &values[..tile.len()]);
        })?;
        Ok(answers)
    }

    /// Returns the names of the map's values, if it has any. They are checked as a whole.
    ///
    /// # Errors
    ///
    /// If the file does not hold a map, or the names are damaged.
    pub fn book(&self) -> Result<Option<&CodeBook>> {
        let map = self.as_map()?;
        let Some(book) = map.book() else { return Ok(None) };
        // The code book is the last section.
        let bits = size_of_val(book.words().words()) as u64 * 8;
        self.check_probe(&Probe { section: self.header.sections.len() - 1, bits: 0..bits })?;
        book.check_contents().map_err(|error| Error::from(error).at(&self.path))?;
        Ok(Some(book))
    }

    fn as_set(&self) -> Result<&AnyFilter> {
        match &self.filter {
            Stored::Set(filter) => Ok(filter),
            other => Err(Error::parameter("kind", other.kind(), "a set of digests")),
        }
    }

    fn as_map(&self) -> Result<&AnyMap> {
        match &self.filter {
            Stored::Map(map) => Ok(map),
            other => Err(Error::parameter("kind", other.kind(), "a map")),
        }
    }

    /// Returns the multiset after checking the whole file.
    fn counts(&self) -> Result<&AnyCount> {
        let Stored::Count(counts) = &self.filter else {
            return Err(Error::parameter("kind", self.filter.kind(), "a multiset"));
        };
        self.check_all()?;
        Ok(counts)
    }

    /// Checks all chunks that have not been checked yet.
    fn check_all(&self) -> Result<()> {
        if self.unchecked.load(Relaxed) == 0 {
            return Ok(());
        }
        (0..self.header.sums.len()).try_for_each(|index| self.check(index))
    }

    /// Hashes keys tile by tile, and checks the parts that each key touches before `ask` looks them
    /// up.
    fn each_tile<B: Batch + ?Sized>(
        &self,
        keys: &B,
        hasher: &Hasher,
        mut ask: impl FnMut(&[Digest]),
    ) -> Result<()> {
        tile::each(keys, hasher, |tile| {
            tile.iter().try_for_each(|digest| self.check_digest(*digest))?;
            ask(tile);
            Ok(())
        })
    }

    fn check_digest(&self, digest: Digest) -> Result<()> {
        if self.unchecked.load(Relaxed) == 0 {
            return Ok(());
        }
        let check = &mut |probe| self.check_probe(&probe);
        match &self.filter {
            Stored::Set(filter) => filter.trace(digest, check).map(drop),
            Stored::Map(map) => map.trace(digest, check).map(drop),
            Stored::Count(counts) => counts.trace(digest, check).map(drop),
            // Verified when the file was opened.
            Stored::Sketch(_) => Ok(()),
            Stored::Literature(_) => Ok(()),
        }
    }

    /// Checks the chunks that a lookup reads.
    fn check_probe(&self, probe: &Probe) -> Result<()> {
        let start = self.header.sections[probe.section].offset - self.header.header_len;
        let chunk = |bit: u64| ((start + bit / 8) >> self.header.chunk_log2) as usize;
        let last = probe.bits.end.saturating_sub(1).max(probe.bits.start);
        (chunk(probe.bits.start)..=chunk(last)).try_for_each(|index| self.check(index))
    }

    /// Checks a chunk, once.
    fn check(&self, index: usize) -> Result<()> {
        let (word, bit) = (&self.intact[index / 64], 1 << (index % 64));
        if word.load(Relaxed) & bit != 0 {
            return Ok(());
        }
        let bytes = part(&self.map, self.header.chunk(index));
        let checked = self.header.check_chunk(index, bytes).and_then(|()| self.check_crowded(index));
        checked.map_err(|error| Error::from(error).at(&self.path))?;
        // Two threads may check the same chunk at the same time; only one of them counts it.
        if word.fetch_or(bit, Relaxed) & bit == 0 {
            self.unchecked.fetch_sub(1, Relaxed);
        }
        Ok(())
    }

    /// Checks the whole file if the contents of an intact chunk would make lookups slow.
    fn check_crowded(&self, index: usize) -> Result<(), FormatError> {
        let Stored::Set(AnyFilter::Quotient(filter)) = &self.filter else { return Ok(()) };
        let words = |bytes: u64| (bytes / 8) as usize;
        let (body, chunk) = (self.header.header_len, self.header.chunk(index));
        if !filter
            .is_crowded(words(chunk.start - body)..words(chunk.end - body), 1 << self.header.chunk_log2 >> 3)
        {
            return Ok(());
        }
        let check = || self.header.check_chunks(&self.map).and_then(|()| self.filter.check_contents());
        self.contents.get_or_init(check).clone()
    }
}
