//! A document as a set of elements.

use super::Sketch;
use super::chunks::Chunks;
use super::text::Text;
use super::visible::{is_html, visible_text};
use crate::Result;
use std::io::{self, ErrorKind, Read};
use umbel::key::Hashed;
use umbel::{Bloom, Digest, Hasher, Standard};

/// What of a document is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Its words, in small letters: which of them it has, not in which order.
    Words,
    /// Runs of so many words: what was copied keeps most of them, what is only about the same does not.
    Shingles(usize),
    /// Chunks of about 256 bytes, cut where the bytes say so: of any file.
    Chunks,
}

/// The different elements of a document, as digests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elements {
    digests: Vec<Digest>,
}

/// The number of bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

impl Elements {
    /// Reads a document to its end. Of HTML, which is recognised by its start or announced by `html`, only visible text
    /// counts.
    ///
    /// # Errors
    ///
    /// Fails if the document has a zero byte near its start, and so has no words, unless it is cut into chunks.
    pub fn read(mut document: impl Read, by: By, html: bool) -> io::Result<Elements> {
        let mut gather = Gather::new(by);
        let mut piece = vec![0; READ_BYTES];
        let start = fill(&mut document, &mut piece)?;
        if by != By::Chunks && memchr::memchr(0, &piece[..start]).is_some() {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "it is binary, and has no words: compare it by chunks",
            ));
        }
        if html || is_html(&piece[..start]) {
            visible_text(io::Cursor::new(&piece[..start]).chain(document), |text| {
                gather.feed(text.as_bytes())
            })?;
        } else {
            gather.feed(&piece[..start]);
            loop {
                match fill(&mut document, &mut piece)? {
                    0 => break,
                    length => gather.feed(&piece[..length]),
                }
            }
        }
        Ok(Elements { digests: gather.finish() })
    }

    /// How many different elements there are.
    pub fn len(&self) -> usize {
        self.digests.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    /// The elements, in the order of their digests: for those who want to compare exactly.
    pub fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// The filter of the elements in this shape.
    pub fn filter(&self, shape: Standard) -> Result<Sketch> {
        let mut filter = Bloom::with_layout(shape, Hasher::default())?;
        filter.insert_batch(&Hashed(&self.digests));
        Ok(filter)
    }
}

/// Fills the buffer, unless the input ends before.
fn fill(from: &mut impl Read, piece: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < piece.len() {
        match from.read(&mut piece[filled..]) {
            Ok(0) => break,
            Ok(length) => filled += length,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Takes a document apart as its bytes come.
enum Gather {
    Text(Text),
    Chunks(Chunks),
}

impl Gather {
    fn new(by: By) -> Gather {
        match by {
            By::Words => Gather::Text(Text::new(1)),
            By::Shingles(words) => Gather::Text(Text::new(words)),
            By::Chunks => Gather::Chunks(Chunks::default()),
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        match self {
            Gather::Text(text) => text.feed(bytes),
            Gather::Chunks(chunks) => chunks.feed(bytes),
        }
    }

    fn finish(self) -> Vec<Digest> {
        match self {
            Gather::Text(text) => text.finish(),
            Gather::Chunks(chunks) => chunks.finish(),
        }
        .finish()
    }
}

/// Digests without repetitions, in memory for about twice as many as there are different ones.
#[derive(Debug, Default)]
pub(super) struct Distinct {
    all: Vec<u64>,
    /// How many were left the last time.
    last: usize,
}

impl Distinct {
    pub(super) fn add(&mut self, digest: Digest) {
        self.all.push(digest.get());
        if self.all.len() >= 2 * self.last.max(1 << 15) {
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.all.sort_unstable();
        self.all.dedup();
        self.last = self.all.len();
    }

    fn finish(mut self) -> Vec<Digest> {
        self.sort();
        self.all.into_iter().map(Digest::from_hash).collect()
    }
}
