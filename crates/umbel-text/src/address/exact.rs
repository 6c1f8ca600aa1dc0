//! The exact list: sorted whole hashes in a file, found by binary search and verified page by page.

use super::{Confirm, Full};
use crate::{Error, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use umbel::Hasher;
use umbel::file::{Placing, save_bytes};
use umbel::internals::regular_file;

const MAGIC: &[u8; 8] = b"umbelurl";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 64;
const PAGE_BYTES: usize = 4096;
/// The number of hashes in a page.
const HASHES_PER_PAGE: u64 = 127;

/// An exact list of addresses in a file: the whole hash of each.
///
/// ```text
/// header   64 bytes: "umbelurl", version (4, little-endian) = 1, zeros, at 40 the sum of all
///          hashes (8), at 48 their number (8), at 56 the sum of the 56 bytes before
/// pages    4096 bytes each: 127 hashes of 32 bytes in ascending order, 24 zeros, and the sum of the
///          4088 bytes before, seeded with the number of the page; the last page has zeros in place
///          of missing hashes
/// ```
/// Sums are XXH3-64. Only pages are read, and each is verified whenever it is read. A lookup among
/// a million hashes reads about fourteen pages.
pub struct Exact {
    file: File,
    path: PathBuf,
    count: u64,
    all: u64,
}

/// Returns the identity of a list, which is stored in the list and in the filter built with it.
pub(super) fn identity(hashes: &[Full]) -> u64 {
    Hasher::fast(0).digest_bytes(hashes.as_flattened()).get()
}

fn sum(seed: u64, bytes: &[u8]) -> [u8; 8] {
    Hasher::fast(seed).digest_bytes(bytes).get().to_le_bytes()
}

fn damaged(path: &Path, what: &str) -> Error {
    Error::damaged(path, format!("{what}; build it again"))
}

impl Exact {
    /// Writes a list of distinct hashes in ascending order. The file is written completely or not
    /// at all; `replace` allows an existing file to be replaced.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written, or exists and `replace` is `false`.
    pub fn save(path: impl AsRef<Path>, hashes: &[Full], replace: bool) -> Result<()> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[40..48].copy_from_slice(&identity(hashes).to_le_bytes());
        bytes[48..56].copy_from_slice(&(hashes.len() as u64).to_le_bytes());
        let header = sum(0, &bytes[..56]);
        bytes[56..].copy_from_slice(&header);
        for (number, hashes) in (0..).zip(hashes.chunks(HASHES_PER_PAGE as usize)) {
            let start = bytes.len();
            bytes.extend(hashes.iter().flatten());
            bytes.resize(start + PAGE_BYTES - 8, 0);
            let page = sum(number, &bytes[start..]);
            bytes.extend(page);
        }
        save_bytes(path, &bytes, Placing { create_new: !replace, ..Placing::default() })?;
        Ok(())
    }

    /// Opens a list, and verifies its header and its length.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, is not an exact list, is damaged, or has an unknown
    /// version.
    pub fn open(path: impl AsRef<Path>) -> Result<Exact> {
        let path = path.as_ref().to_owned();
        let failed = || Error::io(&path, "read");
        let mut file = regular_file::open(&path).map_err(failed())?;
        let mut header = Vec::new();
        (&mut file).take(HEADER_BYTES as u64).read_to_end(&mut header).map_err(failed())?;
        if !header.starts_with(MAGIC) {
            return Err(Error::NotAnExactList { path });
        }
        let Ok(header) = <[u8; HEADER_BYTES]>::try_from(header) else {
            return Err(damaged(&path, "it is shorter than its header"));
        };
        if header[56..] != sum(0, &header[..56]) {
            return Err(damaged(&path, "its header is not what was written"));
        }
        let version = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        if version != VERSION {
            return Err(Error::Newer { path, version });
        }
        let number = |at: usize| {
            header[at..at + 8].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        let (all, count) = (number(40), number(48));
        let len = file.metadata().map_err(failed())?.len();
        let wanted = count
            .div_ceil(HASHES_PER_PAGE)
            .checked_mul(PAGE_BYTES as u64)
            .and_then(|pages| pages.checked_add(HEADER_BYTES as u64));
        if wanted != Some(len) {
            return Err(damaged(&path, "its length does not match the number of its hashes"));
        }
        Ok(Exact { file, path, count, all })
    }

    /// Returns the number of hashes.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Returns whether the list has no hashes.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the identity of the list; see [`Screen::fits`](super::Screen::fits).
    pub(super) fn identity(&self) -> u64 {
        self.all
    }

    /// Reads and verifies a page, and returns its hashes.
    fn page(&mut self, number: u64) -> Result<Vec<Full>> {
        let mut page = [0; PAGE_BYTES];
        let at = HEADER_BYTES as u64 + number * PAGE_BYTES as u64;
        let read = self.file.seek(SeekFrom::Start(at)).and_then(|_| self.file.read_exact(&mut page));
        read.map_err(Error::io(&self.path, "read"))?;
        let (page, written) = page.split_at(PAGE_BYTES - 8);
        if written != sum(number, page) {
            return Err(damaged(&self.path, "a page is not what was written"));
        }
        let (hashes, _) = page.as_chunks::<32>();
        let left = self.count - number * HASHES_PER_PAGE;
        Ok(hashes[..left.min(HASHES_PER_PAGE) as usize].to_vec())
    }
}

impl Confirm for Exact {
    fn starting_with(&mut self, first: &[u8]) -> Result<Vec<Full>> {
        let before = |hash: &Full| hash[..] < *first;
        // Find the first page whose last hash is not before the prefix.
        let (mut low, mut high) = (0, self.count.div_ceil(HASHES_PER_PAGE));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.page(middle)?.last().is_some_and(before) { low = middle + 1 } else { high = middle }
        }
        let mut found = Vec::new();
        for number in low..self.count.div_ceil(HASHES_PER_PAGE) {
            let page = self.page(number)?;
            let start = page.partition_point(before);
            found.extend(page[start..].iter().take_while(|hash| hash.starts_with(first)));
            if page.last().is_none_or(|last| !last.starts_with(first)) {
                break;
            }
        }
        Ok(found)
    }
}
