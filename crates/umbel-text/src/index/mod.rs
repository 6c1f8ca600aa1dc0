//! An index that finds the files that may contain a word without reading the others.
//!
//! Every file has a Bloom filter of its words, as the tables of Bigtable, Cassandra and LevelDB
//! have one of their keys: "certainly not here" saves reading the file. A large file is split into
//! blocks of lines, each with its own filter. Filters of one size are stored side by side with
//! their bits in rows, so that a query reads a few rows instead of thousands of filters. Every
//! filter has the size that its file needs, so that a huge file among small ones wastes nothing.
//!
//! A file that has changed since it was indexed is never ruled out by its old filter. Its size,
//! inode and times are compared, and if they differ, the file may contain anything. Changes that
//! the system does not report cannot be noticed: a program that has a file mapped into memory may
//! write to it for a while before any time of the file changes.
//!
//! ```
//! use umbel_text::index::{self, Index, Look, Settings, Options};
//!
//! let folder = tempfile::tempdir()?;
//! let (logs, file) = (folder.path().join("logs"), folder.path().join("logs.idx"));
//! std::fs::create_dir(&logs)?;
//! std::fs::write(logs.join("monday.log"), "disk full on node7\n")?;
//! std::fs::write(logs.join("tuesday.log"), "all quiet\n")?;
//!
//! index::build(&file, &[logs.clone()], &Settings::WORDS, &Options::default())?;
//! let index = Index::open(&file)?;
//! let whole_word = Look { whole_words: true, ..Look::default() };
//! let query = index.any_of(&["node7"], whole_word);
//! let named: Vec<_> = index.select(&query)?.named().collect();
//! assert_eq!(named, [logs.join("monday.log")]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The keys of an index may also be the values of a column of table files, which a
//! [`ColumnReader`] extracts; everything else is the same. See [`build_column`].
//!
//! `docs/index.md` describes the bytes of the file.

mod builder;
mod catalog;
mod column;
mod keys;
mod location;
mod pages;
mod query;
mod reading;
mod select;
mod settings;
mod shelf;

pub use builder::{BuildSummary, Options, build, build_column, update, update_column};
pub use catalog::Root;
pub use column::{Column, ColumnReader, ColumnValues, key};
pub use location::{beside, default_index};
pub use query::Look;
pub use select::{Part, Piece, Query, Selected, Selection, Why, everything};
pub use settings::{KeySource, Settings};

use crate::{Error, Result};
use catalog::{Block, Catalog, Rung};
use pages::Pages;
use shelf::Row;
use std::path::{Path, PathBuf};
use umbel::Digest;
use umbel::file::FormatError;
use umbel::file::fields::Fields;
use umbel::hash::reduce;

/// The first bytes of an index.
pub const MAGIC: [u8; 8] = *b"UMBELIDX";

/// The size of the header: magic, version, four zeros, the length of the catalog and the length of
/// all contents.
const HEADER_BYTES: u64 = 32;

/// An index on disk. A query reads only the rows it needs.
pub struct Index {
    pages: Pages,
    catalog: Catalog,
    rungs: Vec<Rung>,
    /// The offset of the first shelf.
    shelves: u64,
}

impl Index {
    /// Opens an index. Reads and verifies its list of files; filters are verified when they are
    /// queried.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, is not an index, is damaged, or has an unknown version.
    pub fn open(path: impl AsRef<Path>) -> Result<Index> {
        let pages = Pages::open(path.as_ref())?;
        let invalid = |what: &str| pages.wrong(FormatError::Invalid { what: what.into() });
        if pages.start()? != MAGIC {
            return Err(invalid("it is not an index: `umbel index build` makes one"));
        }
        let mut head = [0; HEADER_BYTES as usize];
        pages.read(0, &mut head)?;
        let mut fields = Fields(&head[MAGIC.len()..]);
        let (version, _) = (fields.u32().unwrap_or(0), fields.u32());
        if !Catalog::is_version(version) {
            let what = format!("version {version} of an index");
            return Err(pages.wrong(FormatError::Unknown { what }));
        }
        let (catalog, total) = (fields.u64().unwrap_or(0), fields.u64().unwrap_or(0));
        let expected = pages::file_length(total);
        if expected != pages.length() || catalog.saturating_add(HEADER_BYTES) > total {
            return Err(pages.wrong(FormatError::Length { expected, found: pages.length() }));
        }
        let mut bytes = vec![0; catalog as usize];
        pages.read(HEADER_BYTES, &mut bytes)?;
        let catalog = Catalog::decode(&bytes, version).map_err(|problem| pages.wrong(problem))?;
        let (rungs, length) = catalog.rungs();
        let shelves = HEADER_BYTES + bytes.len() as u64;
        if shelves.checked_add(length) != Some(total) {
            return Err(invalid("its filters are not those of its files"));
        }
        Ok(Index { pages, catalog, rungs, shelves })
    }

    /// Returns the path of the index.
    pub fn path(&self) -> &Path {
        self.pages.path()
    }

    /// Returns the source of the keys of the index.
    pub fn source(&self) -> &KeySource {
        &self.catalog.source
    }

    /// Returns the settings of an index of text files.
    ///
    /// # Errors
    ///
    /// Fails if it is the index of a column.
    pub fn text(&self) -> Result<&Settings> {
        match self.source() {
            KeySource::Text(settings) => Ok(settings),
            KeySource::Column(column) => {
                Err(Error::ColumnIndex { path: self.path().to_owned(), column: column.name.clone() })
            }
        }
    }

    /// Returns the column of an index of table files.
    ///
    /// # Errors
    ///
    /// Fails if it is an index of text files.
    pub fn column(&self) -> Result<&Column> {
        self.source().column().ok_or_else(|| Error::TextIndex { path: self.path().to_owned() })
    }

    /// Returns the types that the column has in the files, as a [`ColumnReader`] named them.
    pub fn column_types(&self) -> &[String] {
        &self.catalog.types
    }

    /// Returns the directories and files that were indexed.
    pub fn roots(&self) -> &[Root] {
        &self.catalog.roots
    }

    /// Returns a description of each file.
    pub fn files(&self) -> impl ExactSizeIterator<Item = FileFacts> + '_ {
        self.catalog.entries.iter().map(|entry| {
            let blocks = &self.catalog.blocks[entry.blocks.start as usize..entry.blocks.end as usize];
            let bits = |keys| settings::rung_bits(settings::rung(keys, self.catalog.cells));
            FileFacts {
                name: self.catalog.name(entry),
                bytes: entry.stamp.size,
                text: blocks.iter().map(|block| block.bytes).sum(),
                keys: blocks.iter().map(|block| block.keys).sum(),
                blocks: blocks.len(),
                filter_bits: blocks.iter().filter(|block| block.keys > 0).map(|block| bits(block.keys)).sum(),
                compressed: entry.compressed,
                column_type: self.catalog.column_type(entry).map(str::to_owned),
            }
        })
    }

    /// Returns the size of the index in bytes.
    pub fn length(&self) -> u64 {
        self.pages.length()
    }

    /// Returns the number of filters.
    pub fn filters(&self) -> u64 {
        self.rungs.iter().map(|rung| rung.blocks.len() as u64).sum()
    }

    /// Returns the number of filters that have all of these keys, false positives included.
    ///
    /// # Errors
    ///
    /// Fails if the index is damaged or cannot be read.
    pub fn count(&self, keys: &[Digest]) -> Result<u64> {
        let mut count = 0;
        self.each_match(keys, |_| count += 1)?;
        Ok(count)
    }

    /// Calls `each` with every block whose filter has all keys.
    fn each_match(&self, keys: &[Digest], mut each: impl FnMut(u32)) -> Result<()> {
        for rung in &self.rungs {
            for (start, blocks) in rung.shelves() {
                let matches = self.matches(rung.bits, start, blocks.len(), keys)?;
                for (i, &word) in matches.iter().enumerate() {
                    let mut left = word;
                    while left > 0 {
                        each(blocks[64 * i + left.trailing_zeros() as usize]);
                        left &= left - 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the columns of a shelf that have all keys, as a bit mask.
    fn matches(&self, bits: u64, start: u64, width: usize, keys: &[Digest]) -> Result<Row> {
        let mut matches = Row::default();
        for column in 0..width {
            matches[column / 64] |= 1 << (column % 64);
        }
        let mut bytes = [0; shelf::WIDTH / 8 + 1];
        for key in keys {
            for x in key.stream().take(self.catalog.source.hashes() as usize) {
                let (at, length, shift) = shelf::place(reduce(x, bits), width);
                self.pages.read(self.shelves + start + at, &mut bytes[..length])?;
                let row = shelf::row_in(&bytes[..length], shift, width);
                matches.iter_mut().zip(row).for_each(|(matches, row)| *matches &= row);
                if matches.iter().all(|word| *word == 0) {
                    return Ok(matches);
                }
            }
        }
        Ok(matches)
    }

    /// Reads all columns of a shelf.
    fn columns(&self, bits: u64, start: u64, width: usize) -> Result<Vec<Vec<u64>>> {
        let mut bytes = vec![0; shelf::length(bits, width) as usize];
        self.pages.read(self.shelves + start, &mut bytes)?;
        Ok(shelf::unshelve(&bytes, width, bits))
    }
}

/// A description of a file in an index.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FileFacts {
    /// The name of the file, which begins as its root was written.
    pub name: PathBuf,
    /// The length of the file in bytes.
    pub bytes: u64,
    /// The length of its decompressed text in bytes, or the number of values of its column.
    pub text: u64,
    /// The number of distinct words or values, and of distinct substrings if they are indexed, summed
    /// over the blocks.
    pub keys: u64,
    /// The number of blocks.
    pub blocks: usize,
    /// The total size of its filters in bits.
    pub filter_bits: u64,
    /// Whether the file is compressed.
    pub compressed: bool,
    /// The type of the column; `None` if the file is not a table with this column.
    pub column_type: Option<String>,
}
