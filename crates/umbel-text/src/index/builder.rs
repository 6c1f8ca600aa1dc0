//! Builds an index: reads many files at once and stores their filters side by side.
//!
//! An update writes the same file as a new build, byte for byte, but copies the filters of
//! unchanged files from the old index. Memory is bounded by the filters of the largest file and by
//! the largest shelf, regardless of the total length of the files: filters wait in a temporary file
//! until those of their size can be stored together.

use super::catalog::{Catalog, Entry, Root};
use super::column::{Column, ColumnReader};
use super::pages::PageWriter;
use super::reading::{FileRead, FileReader};
use super::settings::{KeySource, Settings};
use super::shelf::{WIDTH, shelve};
use super::{HEADER_BYTES, Index, MAGIC};
use crate::walk::{FoundFile, Walked, identity, in_order, join, walk};
use crate::{Error, Result};
use rayon::prelude::*;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tempfile::SpooledTempFile;
use umbel::file::{Placing, save_with};

/// Options for writing an index and reporting progress.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether to fail if the index already exists.
    pub create_new: bool,
    /// The number of bytes of files read so far.
    pub bytes: Arc<AtomicU64>,
    /// The length of the longest line that is read, in bytes; `None` for
    /// [`MAX_LINE_BYTES`](crate::lines::MAX_LINE_BYTES). A file with a longer line that is not
    /// binary is not in the index.
    pub max_line: Option<usize>,
}

/// The result of a build or an update.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct BuildSummary {
    /// The number of files in the index.
    pub files: u64,
    /// The number of files that were read. The others had not changed.
    pub read: u64,
    /// The number of files of the old index that no longer exist.
    pub dropped: u64,
    /// The number of bytes of text, or of values of a column.
    pub text: u64,
    /// The size of the index in bytes.
    pub bytes: u64,
    /// Paths that could not be read. Files among them are not in the index, except those that an
    /// update could not examine.
    pub failed: Vec<(PathBuf, io::Error)>,
    /// The number of files that could not be examined, because their directory cannot be listed for
    /// instance, and that an update has kept as they were in the old index.
    pub unexamined: u64,
    /// Files that changed while they were read. They count as changed until an update can read them
    /// undisturbed.
    pub restless: Vec<PathBuf>,
}

/// The number of bytes of files read at once.
const BATCH_BYTES: u64 = 64 << 20;
/// The number of files read at once.
const BATCH_FILES: usize = 512;
/// The number of bytes of filters that wait in memory before a temporary file is used.
const SPOOL_BYTES: usize = 256 << 20;

/// Builds the index of directories and files.
///
/// # Errors
///
/// Fails if a setting is out of range, there is no root, a root does not exist, or the index cannot
/// be written. Files that cannot be read are in [`BuildSummary::failed`].
pub fn build(
    index: &Path,
    roots: &[PathBuf],
    settings: &Settings,
    options: &Options,
) -> Result<BuildSummary> {
    build_from(index, roots, KeySource::Text(*settings), None, options)
}

/// Builds the index of a column of the tables in directories and files.
///
/// Files that `tables` does not take for tables have an entry without values, so that an update
/// reads them only if they have changed.
///
/// # Errors
///
/// Fails if the rate is out of range, there is no root, a root does not exist, no file has the
/// column, or the index cannot be written. Files that cannot be read are in [`BuildSummary::failed`].
pub fn build_column(
    index: &Path,
    roots: &[PathBuf],
    column: &Column,
    tables: &dyn ColumnReader,
    options: &Options,
) -> Result<BuildSummary> {
    build_from(index, roots, KeySource::Column(column.clone()), Some(tables), options)
}

fn build_from(
    index: &Path,
    roots: &[PathBuf],
    source: KeySource,
    tables: Option<&dyn ColumnReader>,
    options: &Options,
) -> Result<BuildSummary> {
    source.check()?;
    if roots.is_empty() {
        return Err(Error::parameter("roots", "nothing", "a directory or a file to index"));
    }
    let absolute = |given: &PathBuf| {
        let absolute = std::path::absolute(given).map_err(Error::io(given, "find"))?;
        Ok(Root { given: given.clone(), absolute })
    };
    let roots = roots.iter().map(absolute).collect::<Result<Vec<Root>>>()?;
    make(index, roots, source, tables, None, options)
}

/// Updates an index: reads new and changed files and drops files that no longer exist.
///
/// Only a file that is certainly gone is dropped. Files that cannot be examined stay in the index,
/// and [`BuildSummary::failed`] names the directory that could not be listed, or is suddenly empty
/// like the mount point of a disk that is not mounted.
///
/// # Errors
///
/// Fails if the index cannot be read or written, if a root does not exist, or if it is the index of
/// a column.
pub fn update(index: &Path, options: &Options) -> Result<BuildSummary> {
    let old = Index::open(index)?;
    old.text()?;
    make(index, old.catalog.roots.clone(), old.catalog.source.clone(), None, Some(&old), options)
}

/// Updates the index of a column as [`update`] does that of text files.
///
/// # Errors
///
/// Fails if the index cannot be read or written, if a root does not exist, or if it is not the index
/// of a column.
pub fn update_column(index: &Path, tables: &dyn ColumnReader, options: &Options) -> Result<BuildSummary> {
    let old = Index::open(index)?;
    old.column()?;
    make(index, old.catalog.roots.clone(), old.catalog.source.clone(), Some(tables), Some(&old), options)
}

fn make(
    to: &Path,
    roots: Vec<Root>,
    source: KeySource,
    tables: Option<&dyn ColumnReader>,
    old: Option<&Index>,
    options: &Options,
) -> Result<BuildSummary> {
    let placing = Placing { create_new: options.create_new, ..Placing::default() };
    let mut summary = BuildSummary::default();
    // `save_with` fails before the work starts if the location is not writable.
    save_with(to, placing, |file| {
        let mut builder = Builder::new(to, roots, source, old);
        for root in 0..builder.catalog.roots.len() as u32 {
            builder.add_root(root, tables, options)?;
        }
        builder.check_column()?;
        summary = builder.write(file)?;
        Ok::<(), Error>(())
    })?;
    Ok(summary)
}

/// An index that is being built.
struct Builder<'a> {
    to: &'a Path,
    old: Option<&'a Index>,
    catalog: Catalog,
    /// The source of each block's filter.
    sources: Vec<FilterSource>,
    filters: FilterSpool,
    summary: BuildSummary,
}

impl<'a> Builder<'a> {
    fn new(to: &'a Path, roots: Vec<Root>, source: KeySource, old: Option<&'a Index>) -> Builder<'a> {
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let filters = FilterSpool { file: tempfile::spooled_tempfile_in(SPOOL_BYTES, folder), length: 0 };
        // An updated index keeps the number it began with, even on a machine that would round it
        // differently.
        let cells = old.map_or_else(|| source.cells(), |old| old.catalog.cells);
        let catalog = Catalog { cells, roots, ..Catalog::new(source) };
        Builder { to, old, catalog, sources: Vec::new(), filters, summary: BuildSummary::default() }
    }

    fn failed(&self, doing: &'static str) -> impl Fn(io::Error) -> Error + use<> {
        let path = self.to.to_owned();
        move |source| Error::Io { path: path.clone(), doing, source }
    }

    /// Adds the files under a root, and reads those that have changed.
    fn add_root(&mut self, root: u32, tables: Option<&dyn ColumnReader>, options: &Options) -> Result<()> {
        let path = match self.old {
            Some(old) => old.root_path(root),
            None => self.catalog.roots[root as usize].given.clone(),
        };
        // A disk that is not mounted must not empty the index.
        fs::metadata(&path).map_err(Error::io(&path, "open"))?;
        let mut walked = walk(&path, identity(self.to));
        let hidden = self.keep_hidden(root, &path, &mut walked);
        self.summary.failed.extend(walked.failed);
        for batch in batches(&walked.files) {
            let (bytes, max_line) = (&*options.bytes, options.max_line);
            let (source, cells) = (&self.catalog.source, self.catalog.cells);
            let reader = FileReader { source, cells, tables, bytes, max_line };
            let known = |found: &FoundFile| match hidden.iter().any(|place| found.path.starts_with(place)) {
                true => self.old?.catalog.entry(root, &found.path).cloned(),
                false => self.old?.unchanged(root, found),
            };
            let read = |found: &FoundFile| match known(found) {
                Some(entry) => Ok(Taken::Known(entry)),
                None => reader.read(&join(&path, &found.path), &found.path).map(Taken::Read),
            };
            let batch: Vec<_> = batch.par_iter().map(|found| (found, read(found))).collect();
            for (found, result) in batch {
                match result {
                    Ok(taken) => self.add(root, taken)?,
                    // The file was removed meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => self.summary.failed.push((join(&path, &found.path), error)),
                }
            }
        }
        Ok(())
    }

    /// Adds the files of the old index that a walk could not examine to those it found. Returns the
    /// places that hide them, as paths from the root: such a place and everything under it is kept
    /// as it was.
    fn keep_hidden(&mut self, root: u32, path: &Path, walked: &mut Walked) -> Vec<PathBuf> {
        let Some(old) = self.old else { return Vec::new() };
        let known = || old.catalog.entries.iter().filter(move |entry| entry.root == root);
        if walked.files.is_empty() && walked.failed.is_empty() && known().next().is_some() && is_empty(path) {
            let problem = format!(
                "it is empty, but the index has files of it ({}): mount its disk and update again, or build the index again",
                known().count()
            );
            walked.failed.push((path.to_owned(), io::Error::other(problem)));
        }
        let relative = |(place, _): &(PathBuf, _)| place.strip_prefix(path).ok().map(Path::to_owned);
        let hidden: Vec<PathBuf> = walked.failed.iter().filter_map(relative).collect();
        let found = walked.files.len();
        walked.files.extend(
            known()
                .filter(|entry| hidden.iter().any(|place| entry.path.starts_with(place)))
                .map(|entry| FoundFile { path: entry.path.clone(), stamp: entry.stamp }),
        );
        self.summary.unexamined += (walked.files.len() - found) as u64;
        walked.files.sort_unstable_by(|a, b| in_order(&a.path, &b.path));
        hidden
    }

    /// Adds a file, with new filters or those of the old index.
    fn add(&mut self, root: u32, taken: Taken) -> Result<()> {
        let start = self.catalog.blocks.len() as u32;
        let entry = match taken {
            Taken::Read(FileRead { mut entry, column_type, filters }) => {
                self.summary.read += 1;
                for (block, filter) in filters {
                    self.catalog.blocks.push(block);
                    let kept = self.filters.add(&filter).map_err(self.failed("keep filters beside"))?;
                    self.sources.push(FilterSource::New(kept));
                }
                entry.root = root;
                entry.column_type = column_type.map_or(0, |name| self.catalog.type_number(&name));
                if !entry.certain {
                    self.summary.restless.push(self.catalog.name(&entry));
                }
                entry
            }
            Taken::Known(mut entry) => {
                let blocks = entry.blocks.start as usize..entry.blocks.end as usize;
                self.sources.extend(entry.blocks.clone().map(FilterSource::Old));
                if let Some(old) = self.old {
                    self.catalog.blocks.extend(&old.catalog.blocks[blocks]);
                    let name = old.catalog.column_type(&entry);
                    entry.column_type = name.map_or(0, |name| self.catalog.type_number(name));
                }
                entry
            }
        };
        let blocks = start..self.catalog.blocks.len() as u32;
        self.catalog.entries.push(Entry { blocks, ..entry });
        Ok(())
    }

    /// Fails for a new index of a column that is in none of the files that could be read.
    fn check_column(&self) -> Result<()> {
        match self.catalog.source.column() {
            Some(column)
                if self.old.is_none() && self.catalog.types.is_empty() && self.summary.failed.is_empty() =>
            {
                Err(Error::NoColumn { column: column.name.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Writes the index.
    fn write(mut self, file: &mut File) -> Result<BuildSummary> {
        let failed = self.failed("write to");
        let (rungs, length) = self.catalog.rungs();
        let encoded = self.catalog.encode();
        let total = HEADER_BYTES + encoded.len() as u64 + length;
        let mut head = MAGIC.to_vec();
        head.extend(self.catalog.version().to_le_bytes());
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
                        (FilterSource::Old(block), Some(old)) => old.get(*block)?,
                        // Without an old index there are no such blocks.
                        (FilterSource::Old(_), None) => Vec::new(),
                        (FilterSource::New(start), _) => {
                            self.filters.get(*start, rung.bits).map_err(self.failed("keep filters beside"))?
                        }
                    });
                }
                pages.write(&shelve(&columns, rung.bits)).map_err(&failed)?;
            }
        }
        pages.finish().map_err(&failed)?;
        let Builder { catalog, old, mut summary, .. } = self;
        summary.files = catalog.entries.len() as u64;
        summary.text = catalog.blocks.iter().map(|block| block.bytes).sum();
        summary.dropped = old.map_or(0, |old| old.gone(&catalog));
        summary.bytes = super::pages::file_length(total);
        Ok(summary)
    }
}

/// Returns whether a directory has no entries.
fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none())
}

/// A file for the index.
enum Taken {
    /// A file that has been read.
    Read(FileRead),
    /// A file that has not changed, by its entry in the old index.
    Known(Entry),
}

/// The source of a block's filter.
enum FilterSource {
    /// The spool, at this offset.
    New(u64),
    /// The old index, by the number of the block there.
    Old(u32),
}

/// Splits files, in order, into batches whose filters fit into memory.
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

/// Filters that wait for others of their size, in memory or in a temporary file.
struct FilterSpool {
    file: SpooledTempFile,
    length: u64,
}

impl FilterSpool {
    /// Stores a filter and returns its offset.
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

/// The filters of the old index, read shelf by shelf.
struct OldFilters<'a> {
    index: &'a Index,
    /// The rung of each block and its position there.
    places: Vec<(u32, u32)>,
    /// The rung and shelf of `filters`.
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

    /// Returns the filter of a block. Blocks are requested in the order of the old index, so each
    /// shelf is read once.
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
