//! Making an index: files are read, many at once, and their filters put side by side.
//!
//! An update makes the same file that a new build would, byte for byte, but takes the filters of files that have not
//! changed from the old one. Memory is bounded by the filters of the largest file and by the largest shelf, whatever the
//! length of all files: filters wait in a temporary file until those of their size can be put together.

use super::catalog::{Block, Catalog, Entry, Root};
use super::keys::Keys;
use super::pages::PageWriter;
use super::settings::{Settings, rung, rung_bits};
use super::shelf::{WIDTH, column, shelve};
use super::{HEADER_BYTES, Index, MAGIC, VERSION};
use crate::stamp::Stamp;
use crate::text::Text;
use crate::walk::{FoundFile, identity, join, walk};
use crate::{Error, Result};
use memchr::{memchr, memchr_iter};
use rayon::prelude::*;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tempfile::SpooledTempFile;
use umbel::file::{Placing, save_with};

/// How an index takes its place, and who is told how far the work is.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether it refuses to replace an index that is there already.
    pub create_new: bool,
    /// How many bytes of files were read so far.
    pub bytes: Arc<AtomicU64>,
}

/// What came of it.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Made {
    /// Files in the index.
    pub files: u64,
    /// Those of them that were read; the others had not changed.
    pub read: u64,
    /// Files that were in the index before and are not there any more.
    pub dropped: u64,
    /// Bytes of text.
    pub text: u64,
    /// Bytes of the index.
    pub bytes: u64,
    /// What could not be read, and is not in the index.
    pub failed: Vec<(PathBuf, io::Error)>,
    /// Files that changed while they were read. They count as changed until an update finds them at rest.
    pub restless: Vec<PathBuf>,
}

/// The number of bytes of files that are read at once.
const BATCH_BYTES: u64 = 64 << 20;
/// The number of files that are read at once.
const BATCH_FILES: usize = 512;
/// The number of blocks of one file that are held at once.
const BATCH_BLOCKS: usize = 8;
/// The number of bytes of filters that wait in memory before a temporary file is used.
const SPOOL_BYTES: usize = 256 << 20;

/// Builds the index of directories and files.
pub fn build(index: &Path, roots: &[PathBuf], settings: &Settings, options: &Options) -> Result<Made> {
    settings.check()?;
    if roots.is_empty() {
        return Err(Error::parameter("roots", "nothing", "a directory or a file to index"));
    }
    let absolute = |given: &PathBuf| {
        let failed = |source| Error::Io { path: given.clone(), doing: "find", source };
        Ok(Root { given: given.clone(), absolute: std::path::absolute(given).map_err(failed)? })
    };
    let roots = roots.iter().map(absolute).collect::<Result<Vec<Root>>>()?;
    make(index, roots, *settings, None, options)
}

/// Brings an index up to date: reads what has changed, drops what has gone.
pub fn update(index: &Path, options: &Options) -> Result<Made> {
    let old = Index::open(index)?;
    make(index, old.catalog.roots.clone(), old.catalog.settings, Some(&old), options)
}

fn make(
    to: &Path,
    roots: Vec<Root>,
    settings: Settings,
    old: Option<&Index>,
    options: &Options,
) -> Result<Made> {
    let placing = Placing { create_new: options.create_new, ..Placing::default() };
    let mut made = Made::default();
    // What could not be written in the end fails before the work.
    save_with(to, placing, |file| {
        let mut making = Making::begin(to, roots, settings, old);
        for root in 0..making.catalog.roots.len() as u32 {
            making.gather(root, options)?;
        }
        made = making.write(file)?;
        Ok::<(), Error>(())
    })?;
    Ok(made)
}

/// An index that is being made.
struct Making<'a> {
    to: &'a Path,
    old: Option<&'a Index>,
    catalog: Catalog,
    /// Where the filter of each block comes from.
    sources: Vec<Source>,
    filters: Waiting,
    made: Made,
}

impl<'a> Making<'a> {
    fn begin(to: &'a Path, roots: Vec<Root>, settings: Settings, old: Option<&'a Index>) -> Making<'a> {
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let filters = Waiting { file: tempfile::spooled_tempfile_in(SPOOL_BYTES, folder), length: 0 };
        // An index keeps the number that it began with, wherever it is brought up to date.
        let cells = old.map_or_else(|| settings.cells(), |old| old.catalog.cells);
        let catalog = Catalog { settings, cells, roots, entries: Vec::new(), blocks: Vec::new() };
        Making { to, old, catalog, sources: Vec::new(), filters, made: Made::default() }
    }

    fn failed(&self, doing: &'static str) -> impl Fn(io::Error) -> Error + use<> {
        let path = self.to.to_owned();
        move |source| Error::Io { path: path.clone(), doing, source }
    }

    /// Reads the files under a root, as far as they are not known already.
    fn gather(&mut self, root: u32, options: &Options) -> Result<()> {
        let path = match self.old {
            Some(old) => old.resolve(root),
            None => self.catalog.roots[root as usize].given.clone(),
        };
        // A disk that is not there is no reason to forget what is on it.
        let failed = |source| Error::Io { path: path.clone(), doing: "open", source };
        fs::metadata(&path).map_err(failed)?;
        let walked = walk(&path, identity(self.to));
        self.made.failed.extend(walked.failed);
        for batch in batches(&walked.files) {
            let (settings, cells) = (&self.catalog.settings, self.catalog.cells);
            let read = |found: &FoundFile| match self.old.and_then(|old| old.unchanged(root, found)) {
                Some(entry) => Ok((entry, None)),
                None => read(&join(&path, &found.path), found, (settings, cells), options)
                    .map(|(entry, fresh)| (entry, Some(fresh))),
            };
            let batch: Vec<_> = batch.par_iter().map(|found| (found, read(found))).collect();
            for (found, result) in batch {
                match result {
                    Ok((entry, fresh)) => self.take(Entry { root, ..entry }, fresh)?,
                    // It went while others were read.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => self.made.failed.push((join(&path, &found.path), error)),
                }
            }
        }
        Ok(())
    }

    /// Takes a file in, with fresh filters or those of the old index.
    fn take(&mut self, mut entry: Entry, fresh: Option<Fresh>) -> Result<()> {
        let start = self.catalog.blocks.len() as u32;
        match (fresh, self.old) {
            (Some(fresh), _) => {
                self.made.read += 1;
                for (block, filter) in fresh {
                    self.catalog.blocks.push(block);
                    let kept = self.filters.add(&filter).map_err(self.failed("keep filters beside"))?;
                    self.sources.push(Source::New(kept));
                }
            }
            (None, old) => {
                self.sources.extend(entry.blocks.clone().map(Source::Old));
                let blocks = entry.blocks.start as usize..entry.blocks.end as usize;
                self.catalog.blocks.extend(old.iter().flat_map(|old| &old.catalog.blocks[blocks.clone()]));
            }
        }
        entry.blocks = start..self.catalog.blocks.len() as u32;
        if !entry.certain {
            self.made.restless.push(self.catalog.name(&entry));
        }
        self.catalog.entries.push(entry);
        Ok(())
    }

    /// Puts everything in its place.
    fn write(mut self, file: &mut File) -> Result<Made> {
        let failed = self.failed("write to");
        let (rungs, length) = self.catalog.rungs();
        let encoded = self.catalog.encode();
        let total = HEADER_BYTES + encoded.len() as u64 + length;
        let mut head = MAGIC.to_vec();
        head.extend(VERSION.to_le_bytes());
        head.extend([0; 4]);
        head.extend((encoded.len() as u64).to_le_bytes());
        head.extend(total.to_le_bytes());
        let mut pages = PageWriter::new(BufWriter::with_capacity(1 << 20, file));
        pages.write(&head).and_then(|()| pages.write(&encoded)).map_err(&failed)?;
        let mut old = self.old.map(OldFilters::new);
        for rung in &rungs {
            for (_, blocks) in rung.shelves() {
                let mut columns = Vec::with_capacity(WIDTH);
                for &block in blocks {
                    columns.push(match (&self.sources[block as usize], &mut old) {
                        (Source::Old(block), Some(old)) => old.get(*block)?,
                        // Nothing comes from an index that is not there.
                        (Source::Old(_), None) => Vec::new(),
                        (Source::New(start), _) => {
                            self.filters.get(*start, rung.bits).map_err(self.failed("keep filters beside"))?
                        }
                    });
                }
                pages.write(&shelve(&columns, rung.bits)).map_err(&failed)?;
            }
        }
        pages.finish().map_err(&failed)?;
        let Making { catalog, old, mut made, .. } = self;
        made.files = catalog.entries.len() as u64;
        made.text = catalog.blocks.iter().map(|block| block.bytes).sum();
        made.dropped = old.map_or(0, |old| old.gone(&catalog));
        made.bytes = super::pages::file_length(total);
        Ok(made)
    }
}

/// Where the filter of a block comes from.
enum Source {
    /// From the waiting ones, at this place.
    New(u64),
    /// From the old index, by its number there.
    Old(u32),
}

/// Files in their order, so many that their filters fit into memory.
fn batches(found: &[FoundFile]) -> impl Iterator<Item = &[FoundFile]> {
    let mut left = found;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |found: &&FoundFile| {
            let before = bytes;
            bytes += found.stamp.size;
            before < BATCH_BYTES
        };
        let count = left.iter().take(BATCH_FILES).take_while(fits).count();
        let (now, later) = left.split_at(count);
        left = later;
        (!now.is_empty()).then_some(now)
    })
}

/// The blocks of a file, each with its filter.
type Fresh = Vec<(Block, Vec<u64>)>;

/// Reads a file and makes the filters of its blocks.
fn read(
    path: &Path,
    found: &FoundFile,
    (settings, cells): (&Settings, u64),
    options: &Options,
) -> io::Result<(Entry, Fresh)> {
    let file = File::open(path)?;
    let (stamp, settled) = Stamp::settled(&file)?;
    let mut text = Text::new(&file, &options.bytes)?;
    let mut fresh = Vec::new();
    let (mut texts, mut binary) = (0, false);
    let mut ended = false;
    while !ended {
        let mut blocks = Vec::new();
        while !ended && blocks.len() < BATCH_BLOCKS {
            let mut block = Vec::new();
            text.block(settings.block as usize, &mut block)?;
            // A shorter block is the last one, if there is no error_behind behind it.
            ended = (block.len() as u64) < settings.block && !text.has_error_behind();
            if !block.is_empty() {
                binary = binary || memchr(0, &block).is_some();
                texts += u32::from(!binary);
                blocks.push(block);
            }
        }
        let make = |keys: &mut Keys, block: &Vec<u8>| filter(keys, block, settings, cells);
        fresh.par_extend(blocks.par_iter().map_init(Keys::default, make));
    }
    let compressed = text.compressed;
    // Where text is made up while it is read, as in /proc, neither length nor times tell of a change.
    let bytes: u64 = fresh.iter().map(|(block, _): &(Block, Vec<u64>)| block.bytes).sum();
    let certain =
        settled && Stamp::from_metadata(&file.metadata()?) == stamp && (compressed || bytes == stamp.size);
    let entry = Entry { root: 0, path: found.path.clone(), stamp, certain, compressed, blocks: 0..0, texts };
    Ok((entry, fresh))
}

/// A block of text, and the filter of its keys.
fn filter(keys: &mut Keys, text: &[u8], settings: &Settings, cells: u64) -> (Block, Vec<u64>) {
    let lines = memchr_iter(b'\n', text).count() as u64;
    let keys = keys.collect(text, settings);
    let block = Block { bytes: text.len() as u64, lines, keys: keys.len() as u64 };
    let bits = if block.keys > 0 { rung_bits(rung(block.keys, cells)) } else { 0 };
    (block, column(keys, bits, settings.hashes()))
}

/// Filters that wait for others of their size.
struct Waiting {
    file: SpooledTempFile,
    length: u64,
}

impl Waiting {
    /// Keeps a filter, and tells where.
    fn add(&mut self, filter: &[u64]) -> io::Result<u64> {
        let start = self.length;
        let bytes: Vec<u8> = filter.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.file.seek(SeekFrom::Start(start))?;
        self.file.write_all(&bytes)?;
        self.length += bytes.len() as u64;
        Ok(start)
    }

    fn get(&mut self, start: u64, bits: u64) -> io::Result<Vec<u64>> {
        let mut bytes = vec![0; 8 * super::shelf::words(bits)];
        self.file.seek(SeekFrom::Start(start))?;
        self.file.read_exact(&mut bytes)?;
        Ok(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }
}

/// The filters of an index, taken from it shelf by shelf.
struct OldFilters<'a> {
    index: &'a Index,
    /// For each block its rung, and its place there.
    places: Vec<(u32, u32)>,
    /// The rung and shelf of these filters.
    at: Option<(u32, u32)>,
    filters: Vec<Vec<u64>>,
}

impl<'a> OldFilters<'a> {
    fn new(index: &'a Index) -> OldFilters<'a> {
        let mut places = vec![(0, 0); index.catalog.blocks.len()];
        for (number, rung) in index.rungs.iter().enumerate() {
            for (place, &block) in rung.blocks.iter().enumerate() {
                places[block as usize] = (number as u32, place as u32);
            }
        }
        OldFilters { index, places, at: None, filters: Vec::new() }
    }

    /// Files are asked for in the order of the old index, so that each shelf is taken once.
    fn get(&mut self, block: u32) -> Result<Vec<u64>> {
        let (number, place) = self.places[block as usize];
        let shelf = place / WIDTH as u32;
        if self.at != Some((number, shelf)) {
            let rung = &self.index.rungs[number as usize];
            if let Some((start, blocks)) = rung.shelves().nth(shelf as usize) {
                self.filters = self.index.columns(rung.bits, start, blocks.len())?;
            }
            self.at = Some((number, shelf));
        }
        Ok(std::mem::take(&mut self.filters[place as usize % WIDTH]))
    }
}
