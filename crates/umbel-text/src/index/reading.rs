//! Reads one file for an index: its blocks, each with the filter of its keys.

use super::catalog::{Block, Entry};
use super::column::{Column, ColumnReader, ColumnValues};
use super::keys::Keys;
use super::settings::{KeySource, Settings, rung, rung_bits};
use super::shelf::column;
use crate::lines::MAX_LINE_BYTES;
use crate::stamp::Stamp;
use crate::text::Text;
use memchr::{memchr, memchr_iter};
use rayon::prelude::*;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use umbel::Digest;
use umbel::internals::regular_file;

/// The number of blocks of one file held in memory at once, unless they have long lines.
const BATCH_BLOCKS: u64 = 8;

/// The blocks of a file, each with its new filter.
pub(super) type NewFilters = Vec<(Block, Vec<u64>)>;

/// Reads files for an index.
pub(super) struct FileReader<'a> {
    pub source: &'a KeySource,
    /// The number of bits per key, in 256ths.
    pub cells: u64,
    /// The reader of tables, for an index of a column.
    pub tables: Option<&'a dyn ColumnReader>,
    /// The number of bytes read so far.
    pub bytes: &'a AtomicU64,
    /// The length of the longest line that is read.
    pub max_line: Option<usize>,
}

/// The result of reading a file.
pub(super) struct FileRead {
    /// The entry of the file, without its blocks.
    pub entry: Entry,
    /// The type of its column.
    pub column_type: Option<String>,
    pub filters: NewFilters,
}

impl FileReader<'_> {
    /// Reads the file at `path`, which is called `name` in the index.
    pub fn read(&self, path: &Path, name: &Path) -> io::Result<FileRead> {
        let file = regular_file::open(path)?;
        let (stamp, settled) = Stamp::settled(&file)?;
        let mut entry = Entry {
            root: 0,
            path: name.to_owned(),
            stamp,
            certain: false,
            compressed: false,
            blocks: 0..0,
            texts: 0,
            column_type: 0,
        };
        let mut column_type = None;
        let filters = match (self.source, self.tables) {
            (KeySource::Text(settings), _) => self.read_text(&file, settings, &mut entry)?,
            (KeySource::Column(column), Some(tables)) => {
                let filters;
                (column_type, filters) = self.read_column(&file, column, tables)?;
                filters
            }
            // Without a reader nothing is known of the file.
            (KeySource::Column(_), None) => return Err(io::ErrorKind::Unsupported.into()),
        };
        // Text that is generated while it is read, as in /proc, changes without changing its length
        // or its times.
        let bytes: u64 = filters.iter().map(|(block, _)| block.bytes).sum();
        let complete = entry.compressed || self.source.column().is_some() || bytes == stamp.size;
        entry.certain = settled && Stamp::from_metadata(&file.metadata()?) == stamp && complete;
        Ok(FileRead { entry, column_type, filters })
    }

    fn read_text(&self, file: &File, settings: &Settings, entry: &mut Entry) -> io::Result<NewFilters> {
        let mut text = Text::new(file, self.bytes, self.max_line.unwrap_or(MAX_LINE_BYTES))?;
        let mut new_filters = Vec::new();
        let (mut binary, mut ended) = (false, false);
        while !ended {
            let (mut blocks, mut held) = (Vec::new(), 0);
            while !ended && held < BATCH_BLOCKS * settings.block {
                let mut block = Vec::new();
                text.block(settings.block as usize, &mut block)?;
                // A shorter block is the last one, unless an error follows it.
                ended = (block.len() as u64) < settings.block && !text.has_pending_error();
                held += block.len() as u64;
                if !block.is_empty() {
                    binary = binary || memchr(0, &block).is_some();
                    entry.texts += u32::from(!binary);
                    blocks.push(block);
                }
            }
            let make = |keys: &mut Keys, block: &Vec<u8>| {
                let lines = memchr_iter(b'\n', block).count() as u64;
                let keys = keys.collect(block, settings);
                let block = Block { bytes: block.len() as u64, lines, keys: keys.len() as u64 };
                filter(block, keys, self.cells, self.source.hashes())
            };
            new_filters.par_extend(blocks.par_iter().map_init(Keys::default, make));
        }
        entry.compressed = text.compressed;
        Ok(new_filters)
    }

    fn read_column(
        &self,
        file: &File,
        column: &Column,
        tables: &dyn ColumnReader,
    ) -> io::Result<(Option<String>, NewFilters)> {
        let mut values = ColumnValues::new(self.cells, self.source.hashes());
        let column_type = tables.read(file, &column.name, &mut values)?;
        self.bytes.fetch_add(file.metadata()?.len(), Relaxed);
        Ok((column_type, values.finish()))
    }
}

/// Returns a block with the filter of its keys.
pub(super) fn filter(
    block: Block,
    keys: impl Iterator<Item = Digest>,
    cells: u64,
    hashes: u32,
) -> (Block, Vec<u64>) {
    let bits = if block.keys > 0 { rung_bits(rung(block.keys, cells)) } else { 0 };
    (block, column(keys, bits, hashes))
}
