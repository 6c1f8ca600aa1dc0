//! A file of pages with checksums, so that a part of the file can be verified without reading the
//! rest.
//!
//! A page has 4096 bytes: 4088 bytes of contents, followed by their XXH3-64, seeded with the number
//! of the page. The contents continue from page to page, and the last page is padded with zeros.

use crate::{Error, Result};
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use umbel::file::FormatError;
use umbel::file::fields::sum_at;
use umbel::internals::regular_file;
use umbel::internals::sync;

/// The size of a page in bytes.
pub(super) const PAGE: usize = 4096;
/// The number of bytes of contents in a page.
const CONTENTS: usize = PAGE - 8;

/// Returns the length of a file with this many bytes of contents, or `u64::MAX`, which no file has,
/// if it overflows.
pub(super) fn file_length(contents: u64) -> u64 {
    contents.div_ceil(CONTENTS as u64).saturating_mul(PAGE as u64)
}

/// Writes contents as pages.
pub(super) struct PageWriter<W> {
    to: W,
    page: u64,
    pending: Vec<u8>,
}

impl<W: Write> PageWriter<W> {
    pub fn new(to: W) -> PageWriter<W> {
        PageWriter { to, page: 0, pending: Vec::with_capacity(PAGE) }
    }

    pub fn write(&mut self, mut contents: &[u8]) -> io::Result<()> {
        while !contents.is_empty() {
            let (now, later) = contents.split_at(contents.len().min(CONTENTS - self.pending.len()));
            self.pending.extend_from_slice(now);
            contents = later;
            if self.pending.len() == CONTENTS {
                self.page()?;
            }
        }
        Ok(())
    }

    fn page(&mut self) -> io::Result<()> {
        self.pending.resize(CONTENTS, 0);
        let sum = sum_at(self.page, &self.pending);
        self.pending.extend(sum.to_le_bytes());
        self.to.write_all(&self.pending)?;
        self.pending.clear();
        self.page += 1;
        Ok(())
    }

    /// Writes the last page.
    pub fn finish(mut self) -> io::Result<()> {
        if !self.pending.is_empty() {
            self.page()?;
        }
        self.to.flush()
    }
}

/// Reads contents from pages, and verifies the checksum of every page.
#[derive(Debug)]
pub(super) struct Pages {
    file: File,
    path: PathBuf,
    length: u64,
    /// The pages read last, because the rows of small filters are close to each other.
    window: Mutex<Window>,
}

/// Consecutive pages that have been verified.
#[derive(Debug, Default)]
struct Window {
    first: u64,
    pages: Vec<u8>,
}

/// The maximum number of pages read at once.
const MAX_PAGES_PER_READ: u64 = 64;

impl Pages {
    pub fn open(path: &Path) -> Result<Pages> {
        let file = regular_file::open(path).map_err(Error::io(path, "open"))?;
        let length = file.metadata().map_err(Error::io(path, "examine"))?.len();
        Ok(Pages { file, path: path.to_owned(), length, window: Mutex::default() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The length of the file.
    pub fn length(&self) -> u64 {
        self.length
    }

    pub fn wrong(&self, problem: FormatError) -> Error {
        Error::Format { path: self.path.clone(), problem }
    }

    /// Returns the first bytes without verifying them.
    pub fn start(&self) -> Result<[u8; 8]> {
        let mut start = [0; 8];
        let length = self.length.min(8) as usize;
        self.read_at(&mut start[..length], 0)?;
        Ok(start)
    }

    /// Reads contents from an offset on.
    pub fn read(&self, offset: u64, contents: &mut [u8]) -> Result<()> {
        let window = &mut *sync::lock(&self.window);
        let mut done = 0;
        while done < contents.len() {
            let at = offset + done as u64;
            let (number, within) = (at / CONTENTS as u64, (at % CONTENTS as u64) as usize);
            if !window.numbers().contains(&number) {
                let behind = (offset + contents.len() as u64).div_ceil(CONTENTS as u64);
                self.load(window, number, (behind - number).min(MAX_PAGES_PER_READ))?;
            }
            let inside = &window.pages[(number - window.first) as usize * PAGE..][within..CONTENTS];
            let now = (contents.len() - done).min(inside.len());
            contents[done..done + now].copy_from_slice(&inside[..now]);
            done += now;
        }
        Ok(())
    }

    /// Reads pages and verifies their checksums.
    fn load(&self, window: &mut Window, first: u64, count: u64) -> Result<()> {
        let mut pages = std::mem::take(&mut window.pages);
        pages.resize(count as usize * PAGE, 0);
        self.read_at(&mut pages, first * PAGE as u64)?;
        for (number, page) in (first..).zip(pages.chunks_exact(PAGE)) {
            let (inside, end) = page.split_at(CONTENTS);
            if end != sum_at(number, inside).to_le_bytes() {
                let part = format!("page {number}, from byte {} on,", number * PAGE as u64);
                return Err(self.wrong(FormatError::Damaged { part }));
            }
        }
        *window = Window { first, pages };
        Ok(())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        self.file.read_exact_at(bytes, offset).map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => self.wrong(FormatError::Length {
                expected: self.length.max(offset + bytes.len() as u64),
                found: self.length,
            }),
            _ => Error::io(&self.path, "read")(source),
        })
    }
}

impl Window {
    fn numbers(&self) -> Range<u64> {
        self.first..self.first + (self.pages.len() / PAGE) as u64
    }
}
