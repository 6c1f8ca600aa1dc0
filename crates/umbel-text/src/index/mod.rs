//! Which of these files can hold a word? An index that answers without reading them.
//!
//! Every file has a Bloom filter of its words, as the tables of Bigtable, Cassandra and LevelDB have one of their keys:
//! "certainly not here" saves reading it. A large file is cut into blocks of lines, each with a filter of its own.
//! Filters of one size stand side by side, their bits in rows, so that a word asks a few rows and not thousands of
//! filters; and every file has a filter of its own size, so that a huge one beside small ones wastes nothing.
//!
//! A file that has changed since it was read is never answered for from its old filter: its size, its inode and its times
//! are compared, and if they differ it may hold anything. What the system does not tell cannot be noticed: a program that
//! has a file mapped into its memory may write there for a while before any time of the file changes.
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
//! `docs/index.md` describes the bytes of the file.

mod builder;
mod catalog;
mod keys;
mod location;
mod pages;
mod query;
mod select;
mod settings;
mod shelf;

pub use builder::{BuildSummary, Options, build, update};
pub use catalog::Root;
pub use location::{beside, default_index};
pub use query::Look;
pub use select::{Part, Piece, Query, Selected, Selection, Why, everything};
pub use settings::Settings;

use crate::Result;
use catalog::{Catalog, Rung};
use pages::Pages;
use shelf::Row;
use std::path::{Path, PathBuf};
use umbel::Digest;
use umbel::file::FormatError;
use umbel::file::fields::Fields;
use umbel::hash::reduce;

/// What an index starts with.
pub const MAGIC: [u8; 8] = *b"UMBELIDX";
const VERSION: u32 = 1;

/// The size of the header: magic, version, four zeros, the length of the catalog and that of everything.
const HEADER_BYTES: u64 = 32;

/// An index on disk. Of its filters only those rows are read that a query needs.
pub struct Index {
    pages: Pages,
    catalog: Catalog,
    rungs: Vec<Rung>,
    /// Where the shelves start.
    shelves: u64,
}

impl Index {
    /// Opens an index; its list of files is read and verified, its filters are when they are asked.
    pub fn open(path: impl AsRef<Path>) -> Result<Index> {
        let pages = Pages::open(path.as_ref())?;
        let invalid = |what: &str| pages.wrong(FormatError::Invalid { what: what.into() });
        if pages.start()? != MAGIC {
            return Err(invalid("it is not an index: `umbel index build` makes one"));
        }
        let mut head = [0; HEADER_BYTES as usize];
        pages.read(0, &mut head)?;
        let mut fields = Fields(&head[MAGIC.len()..]);
        let (version, _) = (fields.u32(), fields.u32());
        if version != Some(VERSION) {
            let what = format!("version {} of an index", version.unwrap_or(0));
            return Err(pages.wrong(FormatError::Unknown { what }));
        }
        let (catalog, total) = (fields.u64().unwrap_or(0), fields.u64().unwrap_or(0));
        let expected = pages::file_length(total);
        if expected != pages.length() || catalog.saturating_add(HEADER_BYTES) > total {
            return Err(pages.wrong(FormatError::Length { expected, found: pages.length() }));
        }
        let mut bytes = vec![0; catalog as usize];
        pages.read(HEADER_BYTES, &mut bytes)?;
        let catalog = Catalog::decode(&bytes).map_err(|problem| pages.wrong(problem))?;
        let (rungs, length) = catalog.rungs();
        let shelves = HEADER_BYTES + bytes.len() as u64;
        if shelves.checked_add(length) != Some(total) {
            return Err(invalid("its filters are not those of its files"));
        }
        Ok(Index { pages, catalog, rungs, shelves })
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        self.pages.path()
    }

    /// How it was built.
    pub fn settings(&self) -> &Settings {
        &self.catalog.settings
    }

    /// What was asked to be indexed.
    pub fn roots(&self) -> &[Root] {
        &self.catalog.roots
    }

    /// What there is to say about each file.
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
            }
        })
    }

    /// The bytes of its file.
    pub fn length(&self) -> u64 {
        self.pages.length()
    }

    /// How many filters there are.
    pub fn filters(&self) -> u64 {
        self.rungs.iter().map(|rung| rung.blocks.len() as u64).sum()
    }

    /// How many of them have all of these keys, as far as they can tell.
    pub fn count(&self, keys: &[Digest]) -> Result<u64> {
        let mut count = 0;
        self.each_match(keys, |_| count += 1)?;
        Ok(count)
    }

    /// Calls with every block whose filter has all keys.
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

    /// The columns of a shelf that have all keys.
    fn matches(&self, bits: u64, start: u64, width: usize, keys: &[Digest]) -> Result<Row> {
        let mut matches = Row::default();
        for column in 0..width {
            matches[column / 64] |= 1 << (column % 64);
        }
        let mut bytes = [0; shelf::WIDTH / 8 + 1];
        for key in keys {
            for x in key.stream().take(self.catalog.settings.hashes() as usize) {
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

    /// The columns of a shelf.
    fn columns(&self, bits: u64, start: u64, width: usize) -> Result<Vec<Vec<u64>>> {
        let mut bytes = vec![0; shelf::length(bits, width) as usize];
        self.pages.read(self.shelves + start, &mut bytes)?;
        Ok(shelf::unshelve(&bytes, width, bits))
    }
}

/// What there is to say about a file of an index.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FileFacts {
    /// Its name, as its root was written.
    pub name: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// The length of its text, decompressed.
    pub text: u64,
    /// Different words, and pieces of text if those are indexed; in each block.
    pub keys: u64,
    /// How many blocks it is cut into.
    pub blocks: usize,
    /// The bits of its filters.
    pub filter_bits: u64,
    /// Whether it is compressed.
    pub compressed: bool,
}
