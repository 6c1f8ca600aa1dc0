//! Searches files for lines that contain a text, like `grep -F`, but reads only the files and
//! blocks that an index could not rule out.
//!
//! ```
//! use umbel_text::index::{Look, everything};
//! use umbel_text::search::{Pattern, Searcher};
//!
//! let folder = tempfile::tempdir()?;
//! let log = folder.path().join("monday.log");
//! std::fs::write(&log, "all quiet\ndisk full on node7\n")?;
//!
//! let pattern = Pattern::new(["full"], Look { whole_words: true, ..Look::default() });
//! let mut lines = Vec::new();
//! for file in &everything(folder.path()).files {
//!     Searcher::new(&pattern).search(file, |line| {
//!         lines.push((line.number, line.text.to_vec()));
//!         true
//!     })?;
//! }
//! assert_eq!(lines, [(2, b"disk full on node7".to_vec())]);
//! # Ok::<(), std::io::Error>(())
//! ```

use crate::index::{Look, Part, Piece, Selected};
use crate::lines::MAX_LINE_BYTES;
use crate::text::Text;
use crate::tokens::fold_into;
use memchr::memmem::Finder;
use memchr::{memchr, memchr_iter, memrchr};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use umbel::internals::regular_file;

/// The number of bytes read at once from a file that is not in the index.
const BLOCK_BYTES: usize = 1 << 20;

/// A pattern that matches lines with at least one of several texts.
#[derive(Clone, Debug)]
pub struct Pattern {
    texts: Vec<Finder<'static>>,
    look: Look,
    /// Whether it suffices to fold ASCII letters, which keeps all byte positions.
    ascii: bool,
}

impl Pattern {
    /// Creates a pattern that matches lines with at least one of these texts.
    pub fn new(texts: impl IntoIterator<Item = impl AsRef<[u8]>>, look: Look) -> Pattern {
        let mut ascii = true;
        let finder = |text: &[u8]| {
            ascii &= look.ascii || text.is_ascii();
            let mut folded = Vec::new();
            match look {
                Look { ignore_case: false, .. } => folded.extend_from_slice(text),
                Look { ascii: true, .. } => folded.extend(text.to_ascii_lowercase()),
                _ => fold_into(text, &mut folded),
            }
            Finder::new(&folded).into_owned()
        };
        let texts = texts.into_iter().map(|text| text.as_ref().to_vec()).collect::<Vec<_>>();
        let texts = texts.iter().map(|text| &text[..]).map(finder).collect();
        Pattern { texts, look, ascii }
    }

    /// Returns the start of the first match at or after `from`. `next` caches the next match of
    /// each text, so that a rare text is not searched for again after every match of a frequent
    /// one.
    fn find(&self, text: &[u8], from: usize, next: &mut Vec<Option<usize>>) -> Option<usize> {
        next.resize(self.texts.len(), None);
        for (finder, next) in self.texts.iter().zip(&mut *next) {
            if next.is_none_or(|next| next < from) {
                *next = Some(self.find_one(finder, text, from).unwrap_or(usize::MAX));
            }
        }
        // After the last newline there is no line, not even an empty one.
        let end = text.strip_suffix(b"\n").map_or(text.len(), <[u8]>::len);
        next.iter().flatten().copied().min().filter(|start| *start <= end)
    }

    fn is_in(&self, line: &[u8]) -> bool {
        self.texts.iter().any(|finder| self.find_one(finder, line, 0).is_some())
    }

    fn find_one(&self, finder: &Finder<'_>, text: &[u8], mut from: usize) -> Option<usize> {
        loop {
            let start = from + finder.find(text.get(from..)?)?;
            if !self.look.whole_words || self.is_whole(text, start, start + finder.needle().len()) {
                return Some(start);
            }
            from = start + 1;
        }
    }

    /// Returns whether a match has no word character directly before or after it.
    fn is_whole(&self, text: &[u8], start: usize, end: usize) -> bool {
        let alphabet = self.look.alphabet();
        let is_word = |(character, _): (Option<char>, usize)| character.is_some_and(|c| alphabet.contains(c));
        !is_word(bstr::decode_last_utf8(&text[..start])) && !is_word(bstr::decode_utf8(&text[end..]))
    }
}

/// A line that matches a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchedLine<'a> {
    /// The number of the line, from 1; 0 if lines are not counted.
    pub number: u64,
    /// The bytes of the line, without the newline.
    pub text: &'a [u8],
    /// Whether the file has a zero byte in or before the line's block, and so is not text.
    pub binary: bool,
}

/// Searches files for a pattern, one after the other.
pub struct Searcher<'a> {
    pattern: &'a Pattern,
    numbers: bool,
    max_line: usize,
    block: Vec<u8>,
    folded: Vec<u8>,
    read: AtomicU64,
}

impl<'a> Searcher<'a> {
    /// Creates a searcher for this pattern. Lines are counted.
    pub fn new(pattern: &'a Pattern) -> Searcher<'a> {
        let (block, folded, read) = Default::default();
        Searcher { pattern, numbers: true, max_line: MAX_LINE_BYTES, block, folded, read }
    }

    /// Sets the length of the longest line that is read, in bytes. It has to fit into memory.
    pub fn max_line(mut self, bytes: usize) -> Searcher<'a> {
        self.max_line = bytes;
        self
    }

    /// Sets whether lines are counted, which costs a little.
    pub fn numbers(mut self, numbers: bool) -> Searcher<'a> {
        self.numbers = numbers;
        self
    }

    /// Returns the number of bytes read from files.
    pub fn bytes_read(&self) -> u64 {
        self.read.load(Relaxed)
    }

    /// Calls `each` with every matching line in the selected parts of a file, until `each` returns
    /// `false`.
    ///
    /// # Errors
    ///
    /// Returns the system's error if the file cannot be opened or read, and
    /// [`LineTooLong`](crate::lines::LineTooLong) if a line is too long.
    pub fn search(
        &mut self,
        file: &Selected,
        mut each: impl FnMut(MatchedLine<'_>) -> bool,
    ) -> io::Result<()> {
        if file.part == Part::Nothing {
            return Ok(());
        }
        let opened = regular_file::open(&file.path())?;
        // The index describes the file as it was when its directory was listed.
        let same = file.is_still(&opened)?;
        match &file.part {
            Part::Blocks(pieces) if same && file.compressed => self.packed(&opened, pieces, &mut each),
            Part::Blocks(pieces) if same => self.pieces(&opened, pieces, &mut each),
            _ => self.whole(&opened, &mut each),
        }
    }

    fn whole(&mut self, file: &File, each: &mut impl FnMut(MatchedLine<'_>) -> bool) -> io::Result<()> {
        let Searcher { pattern, numbers, max_line, block, folded, read } = self;
        let mut text = Text::new(file, read, *max_line)?;
        let mut scan = Scan { pattern, numbers: *numbers, lines: 0, binary: false, folded };
        loop {
            text.block(BLOCK_BYTES, block)?;
            if block.is_empty() {
                return Ok(());
            }
            scan.binary = scan.binary || memchr(0, block).is_some();
            if !scan.block(block, each) {
                return Ok(());
            }
        }
    }

    fn pieces(
        &mut self,
        file: &File,
        pieces: &[Piece],
        each: &mut impl FnMut(MatchedLine<'_>) -> bool,
    ) -> io::Result<()> {
        for piece in pieces {
            self.block.resize(piece.bytes as usize, 0);
            file.read_exact_at(&mut self.block, piece.start)?;
            self.read.fetch_add(piece.bytes, Relaxed);
            if !self.piece(piece, each) {
                break;
            }
        }
        Ok(())
    }

    /// Searches blocks of a compressed file, which has to be decompressed from its start.
    fn packed(
        &mut self,
        file: &File,
        pieces: &[Piece],
        each: &mut impl FnMut(MatchedLine<'_>) -> bool,
    ) -> io::Result<()> {
        let read = AtomicU64::new(0);
        let mut text = Text::new(file, &read, self.max_line)?;
        let mut position = 0;
        for piece in pieces {
            text.skip(piece.start - position, &mut self.block)?;
            text.exactly(piece.bytes, &mut self.block)?;
            position = piece.start + piece.bytes;
            if !self.piece(piece, each) {
                break;
            }
        }
        self.read.fetch_add(read.load(Relaxed), Relaxed);
        Ok(())
    }

    /// Searches the block that was read for this piece. Returns whether to continue.
    fn piece(&mut self, piece: &Piece, each: &mut impl FnMut(MatchedLine<'_>) -> bool) -> bool {
        let Searcher { pattern, numbers, block, folded, .. } = self;
        let lines = piece.lines_before;
        Scan { pattern, numbers: *numbers, lines, binary: piece.binary, folded }.block(block, each)
    }
}

/// A scan of the blocks of one text.
struct Scan<'a> {
    pattern: &'a Pattern,
    numbers: bool,
    /// The number of lines before the block.
    lines: u64,
    binary: bool,
    folded: &'a mut Vec<u8>,
}

impl Scan<'_> {
    /// Calls `each` with every matching line of a block. Returns whether to continue.
    fn block(&mut self, block: &[u8], each: &mut impl FnMut(MatchedLine<'_>) -> bool) -> bool {
        if self.pattern.look.ignore_case && !self.pattern.ascii {
            return self.folded_lines(block, each);
        }
        let text = if self.pattern.look.ignore_case {
            self.folded.clear();
            self.folded.extend_from_slice(block);
            self.folded.make_ascii_lowercase();
            &self.folded[..]
        } else {
            block
        };
        let (mut from, mut next) = (0, Vec::new());
        while from < block.len()
            && let Some(found) = self.pattern.find(text, from, &mut next)
        {
            let start = memrchr(b'\n', &block[from..found]).map_or(from, |newline| from + newline + 1);
            let end = memchr(b'\n', &block[found..]).map_or(block.len(), |newline| found + newline);
            if self.numbers {
                self.lines += memchr_iter(b'\n', &block[from..start]).count() as u64;
            }
            let number = if self.numbers { self.lines + 1 } else { 0 };
            if !each(MatchedLine { number, text: &block[start..end], binary: self.binary }) {
                return false;
            }
            self.lines += 1;
            from = end + 1;
        }
        if self.numbers && from < block.len() {
            self.lines += memchr_iter(b'\n', &block[from..]).count() as u64;
        }
        true
    }

    /// Folds and searches line by line, for patterns whose folding can change the length of a line.
    fn folded_lines(&mut self, block: &[u8], each: &mut impl FnMut(MatchedLine<'_>) -> bool) -> bool {
        for line in block.strip_suffix(b"\n").unwrap_or(block).split(|byte| *byte == b'\n') {
            self.lines += 1;
            self.folded.clear();
            fold_into(line, self.folded);
            let number = if self.numbers { self.lines } else { 0 };
            if self.pattern.is_in(self.folded)
                && !each(MatchedLine { number, text: line, binary: self.binary })
            {
                return false;
            }
        }
        true
    }
}
