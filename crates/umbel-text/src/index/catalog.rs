//! The catalog of an index: the names, stamps and blocks of its files, without the filters.
//!
//! The catalog determines the location of every filter. Filters are grouped by size (a rung), in
//! the order of their blocks, and each rung is divided into shelves. The shelves follow each other
//! from the lowest rung to the highest.

use super::column::Column;
use super::settings::{KeySource, MAX_RUNG, Settings, rung, rung_bits};
use super::shelf::{self, WIDTH};
use crate::stamp::{FileTime, Stamp};
use crate::walk::{in_order, join};
use std::cmp::Ordering;
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use umbel::file::FormatError;
use umbel::file::fields::{Fields, put_varint};

/// The longest path that a system opens.
const MAX_PATH_BYTES: usize = 4096;

/// The maximum length of all text in an index, chosen so that the total length of all filters does
/// not overflow.
const MAX_TEXT_BYTES: u64 = 1 << 50;

/// A directory or file that the user asked to index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The path as the user wrote it.
    pub given: PathBuf,
    /// The absolute path.
    pub absolute: PathBuf,
}

/// A file in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The number of its root.
    pub root: u32,
    /// The path from the root; empty if the root is the file.
    pub path: PathBuf,
    pub stamp: Stamp,
    /// Whether any later change of the file shows in its stamp.
    pub certain: bool,
    /// Whether the file is compressed.
    pub compressed: bool,
    /// The numbers of its blocks.
    pub blocks: Range<u32>,
    /// The number of blocks before the one with the first zero byte, from which on the file is not
    /// text.
    pub texts: u32,
    /// The number of the type of its column, from 1; 0 if the file is not a table with this column.
    pub column_type: u32,
}

impl Entry {
    /// Compares this entry with a file in the order of the catalog.
    pub fn order(&self, root: u32, path: &Path) -> Ordering {
        self.root.cmp(&root).then_with(|| in_order(&self.path, path))
    }
}

/// A piece of a file with its own filter. In a text it ends with the end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The number of bytes of text, or of values of a column.
    pub bytes: u64,
    /// The number of line ends; 0 in a column.
    pub lines: u64,
    /// The number of distinct keys.
    pub keys: u64,
}

/// All contents of an index except for the filters.
#[derive(Clone, Debug)]
pub(super) struct Catalog {
    pub source: KeySource,
    /// The number of bits per key, in 256ths.
    pub cells: u64,
    pub roots: Vec<Root>,
    /// The files, sorted by root and path.
    pub entries: Vec<Entry>,
    pub blocks: Vec<Block>,
    /// The types that the column has in different files.
    pub types: Vec<String>,
}

/// The filters of one size and their location.
pub(super) struct Rung {
    /// The size of each filter in bits.
    pub bits: u64,
    /// The blocks of the filters, in the order of the columns.
    pub blocks: Vec<u32>,
    /// The offset of the first shelf, counted from the end of the catalog.
    pub start: u64,
}

impl Rung {
    /// Returns the offset and the blocks of each shelf.
    pub fn shelves(&self) -> impl Iterator<Item = (u64, &[u32])> {
        let full = shelf::length(self.bits, WIDTH);
        self.blocks.chunks(WIDTH).enumerate().map(move |(i, blocks)| (self.start + i as u64 * full, blocks))
    }
}

/// The version of an index of text files.
const TEXT_VERSION: u32 = 1;
/// The version of an index of a column.
const COLUMN_VERSION: u32 = 2;

impl Catalog {
    /// Creates a catalog without files.
    pub fn new(source: KeySource) -> Catalog {
        let cells = source.cells();
        let (roots, entries, blocks, types) = Default::default();
        Catalog { source, cells, roots, entries, blocks, types }
    }

    /// Returns the version of the format that this catalog needs.
    pub fn version(&self) -> u32 {
        match self.source {
            KeySource::Text(_) => TEXT_VERSION,
            KeySource::Column(_) => COLUMN_VERSION,
        }
    }

    /// Returns the number of a type, and adds it if it is new.
    pub fn type_number(&mut self, name: &str) -> u32 {
        let known = self.types.iter().position(|known| known == name).unwrap_or_else(|| {
            self.types.push(name.to_owned());
            self.types.len() - 1
        });
        known as u32 + 1
    }

    /// Returns the type of the column in a file.
    pub fn column_type(&self, entry: &Entry) -> Option<&str> {
        let number = entry.column_type.checked_sub(1)?;
        self.types.get(number as usize).map(String::as_str)
    }

    /// Returns the locations of all filters, and their total size in bytes. A block without keys
    /// has no filter.
    pub fn rungs(&self) -> (Vec<Rung>, u64) {
        let mut blocks: Vec<Vec<u32>> = vec![Vec::new(); MAX_RUNG as usize + 1];
        for (number, block) in self.blocks.iter().enumerate().filter(|(_, block)| block.keys > 0) {
            blocks[rung(block.keys, self.cells) as usize].push(number as u32);
        }
        let mut start = 0;
        let mut rungs = Vec::new();
        for (number, blocks) in blocks.into_iter().enumerate().filter(|(_, blocks)| !blocks.is_empty()) {
            let bits = rung_bits(number as u32);
            let length: u64 = blocks.chunks(WIDTH).map(|shelf| shelf::length(bits, shelf.len())).sum();
            rungs.push(Rung { bits, blocks, start });
            start += length;
        }
        (rungs, start)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(self.source.rate().to_bits().to_le_bytes());
        match &self.source {
            KeySource::Text(settings) => {
                put_varint(&mut out, u64::from(settings.grams.unwrap_or(0)));
                put_varint(&mut out, settings.block);
            }
            KeySource::Column(column) => {
                put_bytes(&mut out, column.name.as_bytes());
                put_varint(&mut out, self.types.len() as u64);
                self.types.iter().for_each(|name| put_bytes(&mut out, name.as_bytes()));
            }
        }
        let is_text = self.source.text().is_some();
        put_varint(&mut out, self.cells);
        put_varint(&mut out, self.roots.len() as u64);
        for root in &self.roots {
            put_bytes(&mut out, root.given.as_os_str().as_bytes());
            put_bytes(&mut out, root.absolute.as_os_str().as_bytes());
        }
        put_varint(&mut out, self.entries.len() as u64);
        let mut before: (u32, &[u8]) = (0, &[]);
        for entry in &self.entries {
            let path = entry.path.as_os_str().as_bytes();
            put_varint(&mut out, u64::from(entry.root - before.0));
            // Neighbours share most of their path.
            let shared = path.iter().zip(before.1).take_while(|(a, b)| a == b).count();
            put_varint(&mut out, shared as u64);
            put_bytes(&mut out, &path[shared..]);
            out.push(u8::from(entry.certain) | u8::from(entry.compressed) << 1);
            put_stamp(&mut out, &entry.stamp);
            put_varint(&mut out, entry.blocks.len() as u64);
            put_varint(&mut out, u64::from(if is_text { entry.texts } else { entry.column_type }));
            for block in &self.blocks[entry.blocks.start as usize..entry.blocks.end as usize] {
                put_varint(&mut out, block.bytes);
                if is_text {
                    put_varint(&mut out, block.lines);
                }
                put_varint(&mut out, block.keys);
            }
            before = (entry.root, path);
        }
        out
    }

    /// Returns whether there is a format with this version.
    pub fn is_version(version: u32) -> bool {
        [TEXT_VERSION, COLUMN_VERSION].contains(&version)
    }

    /// Decodes the catalog of an index of this version.
    pub fn decode(bytes: &[u8], version: u32) -> Result<Catalog, FormatError> {
        Fields(bytes)
            .catalog(version)
            .ok_or_else(|| FormatError::Invalid { what: "its list of files makes no sense".into() })
    }

    /// Returns the name of an entry: its root as the user wrote it, followed by the path from
    /// there.
    pub fn name(&self, entry: &Entry) -> PathBuf {
        join(&self.roots[entry.root as usize].given, &entry.path)
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_stamp(out: &mut Vec<u8>, stamp: &Stamp) {
    put_varint(out, stamp.size);
    put_varint(out, stamp.inode);
    for FileTime(seconds, nanoseconds) in [stamp.modified, stamp.changed] {
        out.extend(seconds.to_le_bytes());
        out.extend(nanoseconds.to_le_bytes());
    }
}

/// Parsers for the parts of a catalog. They return `None` for invalid data.
trait Read {
    fn catalog(self, version: u32) -> Option<Catalog>;
    fn source(&mut self, version: u32) -> Option<(KeySource, Vec<String>)>;
    fn string(&mut self) -> Option<String>;
    fn name(&mut self) -> Option<Vec<u8>>;
    fn stamp(&mut self) -> Option<Stamp>;
    fn file_time(&mut self) -> Option<FileTime>;
}

impl Read for Fields<'_> {
    fn catalog(mut self, version: u32) -> Option<Catalog> {
        let (source, types) = self.source(version)?;
        source.check().ok()?;
        let is_text = source.text().is_some();
        let cells = self.varint().filter(|cells| (1..=1 << 16).contains(cells))?;
        // Do not reserve memory for a claimed number of entries: each entry takes bytes that must
        // be present.
        let mut roots = Vec::new();
        for _ in 0..self.varint()? {
            let (given, absolute) = (self.name()?, self.name()?);
            roots.push(Root {
                given: OsString::from_vec(given).into(),
                absolute: OsString::from_vec(absolute).into(),
            });
        }
        let (mut entries, mut blocks, mut text) = (Vec::<Entry>::new(), Vec::<Block>::new(), 0u64);
        for _ in 0..self.varint()? {
            let (root, before) =
                entries.last().map_or((0, &[][..]), |last| (last.root, last.path.as_os_str().as_bytes()));
            let root = root.checked_add(u32::try_from(self.varint()?).ok()?)?;
            let shared = usize::try_from(self.varint()?).ok()?;
            let mut path = before.get(..shared)?.to_vec();
            path.extend(self.name()?);
            let [flags] = self.array()?;
            let stamp = self.stamp()?;
            let start = u32::try_from(blocks.len()).ok()?;
            let (count, number) = (self.varint()?, u32::try_from(self.varint()?).ok()?);
            let (texts, column_type) = if is_text { (number, 0) } else { (0, number) };
            for _ in 0..count {
                let bytes = self.varint()?;
                let lines = if is_text { self.varint()? } else { 0 };
                blocks.push(Block { bytes, lines, keys: self.varint()? });
            }
            let path = PathBuf::from(OsString::from_vec(path));
            let ordered = entries.last().is_none_or(|last| last.order(root, &path).is_lt());
            if flags > 3 || !ordered || root as usize >= roots.len() || u64::from(texts) > count {
                return None;
            }
            // A file without the column has no values, and is not compressed as a whole.
            if column_type as usize > types.len() || !is_text && (flags > 1 || column_type == 0 && count > 0)
            {
                return None;
            }
            // Paths that share a prefix take more memory than bytes in the file, so limit their
            // length.
            if path.as_os_str().len() > MAX_PATH_BYTES {
                return None;
            }
            // The blocks of an uncompressed file are read at these offsets if it is certain to be
            // unchanged, so they must cover exactly the file.
            let bytes =
                blocks[start as usize..].iter().try_fold(0u64, |sum, block| sum.checked_add(block.bytes))?;
            text = text.checked_add(bytes).filter(|text| *text <= MAX_TEXT_BYTES)?;
            if is_text && flags == 1 && bytes != stamp.size {
                return None;
            }
            let blocks = start..u32::try_from(blocks.len()).ok()?;
            let (certain, compressed) = (flags & 1 > 0, flags & 2 > 0);
            entries.push(Entry { root, path, stamp, certain, compressed, blocks, texts, column_type });
        }
        // A key has at least one byte of text, and at most two keys begin at each byte.
        let keys_at_most = if is_text { 2 } else { 1 };
        let sane = blocks.iter().all(|block| {
            block.keys <= block.bytes.saturating_mul(keys_at_most)
                && block.bytes < 1 << 44
                && block.lines <= block.bytes
        });
        (sane && self.0.is_empty()).then_some(Catalog { source, cells, roots, entries, blocks, types })
    }

    fn source(&mut self, version: u32) -> Option<(KeySource, Vec<String>)> {
        let rate = f64::from_bits(self.u64()?);
        if version == TEXT_VERSION {
            let grams = u32::try_from(self.varint()?).ok()?;
            let settings = Settings { rate, grams: (grams > 0).then_some(grams), block: self.varint()? };
            return Some((KeySource::Text(settings), Vec::new()));
        }
        let column = Column { name: self.string()?, rate };
        let mut types = Vec::new();
        for _ in 0..self.varint()? {
            types.push(self.string()?);
        }
        Some((KeySource::Column(column), types))
    }

    fn string(&mut self) -> Option<String> {
        String::from_utf8(self.name()?).ok()
    }

    fn name(&mut self) -> Option<Vec<u8>> {
        let length = self.varint()?;
        self.bytes(length).map(<[u8]>::to_vec)
    }

    fn stamp(&mut self) -> Option<Stamp> {
        Some(Stamp {
            size: self.varint()?,
            inode: self.varint()?,
            modified: self.file_time()?,
            changed: self.file_time()?,
        })
    }

    fn file_time(&mut self) -> Option<FileTime> {
        Some(FileTime(self.u64()? as i64, self.u32()?))
    }
}
