//! What an index knows of its files, beside their filters: names, stamps, and the blocks they are cut into.
//!
//! Where a filter lies follows from this: filters stand on the rung of their size in the order of their blocks, so many
//! to a shelf, shelves behind one another from the lowest rung to the highest.

use super::settings::{MAX_RUNG, Settings, rung, rung_bits};
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

/// The longest path that a system would open.
const MAX_PATH_BYTES: usize = 4096;

/// The most text of an index: the lengths of all filters add up without an overflow.
const MAX_TEXT_BYTES: u64 = 1 << 50;

/// What was asked to be indexed: a directory, or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// As it was written.
    pub given: PathBuf,
    /// From the root of the file system.
    pub absolute: PathBuf,
}

/// A file in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Under which root, by number.
    pub root: u32,
    /// From the root on; empty if the root is the file.
    pub path: PathBuf,
    pub stamp: Stamp,
    /// Whether a later change of the file must show in its stamp.
    pub certain: bool,
    /// Whether its text is compressed.
    pub compressed: bool,
    /// Its blocks, by number.
    pub blocks: Range<u32>,
    /// How many of them come before the first zero byte: from there on it is no text.
    pub texts: u32,
}

impl Entry {
    /// Whether it comes before another, or is it.
    pub fn order(&self, root: u32, path: &Path) -> Ordering {
        self.root.cmp(&root).then_with(|| in_order(&self.path, path))
    }
}

/// A piece of a file's text that has a filter of its own. It ends with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Bytes of text.
    pub bytes: u64,
    /// Ends of lines.
    pub lines: u64,
    /// Different keys.
    pub keys: u64,
}

/// Everything but the filters.
#[derive(Clone, Debug)]
pub(super) struct Catalog {
    pub settings: Settings,
    /// How many bits a filter has for each key, in 256ths.
    pub cells: u64,
    pub roots: Vec<Root>,
    /// By root, then by path.
    pub entries: Vec<Entry>,
    pub blocks: Vec<Block>,
}

/// Filters of one size, and where they lie.
pub(super) struct Rung {
    /// The bits of each.
    pub bits: u64,
    /// Their blocks, in the order of the columns.
    pub blocks: Vec<u32>,
    /// Where the first of its shelves starts, behind the catalog.
    pub start: u64,
}

impl Rung {
    /// Its shelves: where each starts, and its blocks.
    pub fn shelves(&self) -> impl Iterator<Item = (u64, &[u32])> {
        let full = shelf::length(self.bits, WIDTH);
        self.blocks.chunks(WIDTH).enumerate().map(move |(i, blocks)| (self.start + i as u64 * full, blocks))
    }
}

impl Catalog {
    /// Where all filters lie, and how many bytes they take. A block without keys has no filter.
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
        out.extend(self.settings.rate.to_bits().to_le_bytes());
        put_varint(&mut out, u64::from(self.settings.grams.unwrap_or(0)));
        put_varint(&mut out, self.settings.block);
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
            // Neighbours share most of their names.
            let shared = path.iter().zip(before.1).take_while(|(a, b)| a == b).count();
            put_varint(&mut out, shared as u64);
            put_bytes(&mut out, &path[shared..]);
            out.push(u8::from(entry.certain) | u8::from(entry.compressed) << 1);
            put_stamp(&mut out, &entry.stamp);
            put_varint(&mut out, entry.blocks.len() as u64);
            put_varint(&mut out, u64::from(entry.texts));
            for block in &self.blocks[entry.blocks.start as usize..entry.blocks.end as usize] {
                for number in [block.bytes, block.lines, block.keys] {
                    put_varint(&mut out, number);
                }
            }
            before = (entry.root, path);
        }
        out
    }

    pub fn decode(bytes: &[u8]) -> Result<Catalog, FormatError> {
        Fields(bytes)
            .catalog()
            .ok_or_else(|| FormatError::Invalid { what: "its list of files makes no sense".into() })
    }

    /// What an entry is called: its root as it was written, and the path from there.
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

/// What the catalog consists of; `None` if it is not so.
trait Read {
    fn catalog(self) -> Option<Catalog>;
    fn name(&mut self) -> Option<Vec<u8>>;
    fn stamp(&mut self) -> Option<Stamp>;
    fn file_time(&mut self) -> Option<FileTime>;
}

impl Read for Fields<'_> {
    fn catalog(mut self) -> Option<Catalog> {
        let rate = f64::from_bits(self.u64()?);
        let grams = u32::try_from(self.varint()?).ok()?;
        let settings = Settings { rate, grams: (grams > 0).then_some(grams), block: self.varint()? };
        settings.check().ok()?;
        let cells = self.varint().filter(|cells| (1..=1 << 16).contains(cells))?;
        // Nothing is reserved for what is only claimed: every entry takes bytes that must be there.
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
            let (count, texts) = (self.varint()?, u32::try_from(self.varint()?).ok()?);
            for _ in 0..count {
                blocks.push(Block { bytes: self.varint()?, lines: self.varint()?, keys: self.varint()? });
            }
            let path = PathBuf::from(OsString::from_vec(path));
            let ordered = entries.last().is_none_or(|last| last.order(root, &path).is_lt());
            if flags > 3 || !ordered || root as usize >= roots.len() || u64::from(texts) > count {
                return None;
            }
            // Names that share their starts take more memory than bytes here.
            if path.as_os_str().len() > MAX_PATH_BYTES {
                return None;
            }
            // What is believed of a file is read as it is said here.
            let bytes =
                blocks[start as usize..].iter().try_fold(0u64, |sum, block| sum.checked_add(block.bytes))?;
            text = text.checked_add(bytes).filter(|text| *text <= MAX_TEXT_BYTES)?;
            if flags == 1 && bytes != stamp.size {
                return None;
            }
            let blocks = start..u32::try_from(blocks.len()).ok()?;
            let (certain, compressed) = (flags & 1 > 0, flags & 2 > 0);
            entries.push(Entry { root, path, stamp, certain, compressed, blocks, texts });
        }
        // A key is a byte of text at least, and two of them begin with it at most.
        let sane = blocks.iter().all(|block| {
            block.keys <= block.bytes.saturating_mul(2) && block.bytes < 1 << 44 && block.lines <= block.bytes
        });
        (sane && self.0.is_empty()).then_some(Catalog { settings, cells, roots, entries, blocks })
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
