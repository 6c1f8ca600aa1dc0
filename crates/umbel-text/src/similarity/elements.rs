//! Splits a document into a set of elements.

use super::Sketch;
use super::chunks::Chunks;
use super::text::Text;
use super::visible::{is_html, visible_text};
use crate::Result;
use std::io::{self, ErrorKind, Read};
use umbel::key::Hashed;
use umbel::{Bloom, Digest, Hasher, Standard};

/// The elements by which documents are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Words in lower case, regardless of their order.
    Words,
    /// Runs of this many words. A copied text keeps most of them; another text on the same topic
    /// does not.
    Shingles(usize),
    /// Chunks of about 256 bytes whose boundaries depend on the content, for any file.
    Chunks,
}

/// The distinct elements of a document, as digests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elements {
    digests: Vec<Digest>,
}

/// The number of bytes read at once.
const READ_BYTES: usize = 64 << 10;

impl Elements {
    /// Reads a document to its end. For HTML, which is recognised by its start or announced by
    /// `html`, only visible text counts.
    ///
    /// # Errors
    ///
    /// Fails if the reader fails, or if the document has a zero byte near its start and so has no
    /// words, unless it is split into chunks.
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

    /// Returns the number of distinct elements.
    pub fn len(&self) -> usize {
        self.digests.len()
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    /// Returns the digests of the elements in ascending order, for an exact comparison.
    pub fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// Builds the filter of the elements in this shape.
    ///
    /// # Errors
    ///
    /// Fails if memory is short.
    pub fn filter(&self, shape: Standard) -> Result<Sketch> {
        let mut filter = Bloom::with_layout(shape, Hasher::default())?;
        filter.insert_batch(&Hashed(&self.digests));
        Ok(filter)
    }
}

/// Fills the buffer, unless the input ends first.
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

/// Collects the elements of a document as its bytes arrive.
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

/// A set of digests that takes the memory of about twice as many digests as are distinct.
#[derive(Debug, Default)]
pub(super) struct Distinct {
    all: Vec<u64>,
    /// The number of digests after the last deduplication.
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
