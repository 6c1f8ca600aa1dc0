//! The pages of a column chunk, decompressed one at a time.
//!
//! ```text
//! header (Thrift) | page, compressed | header | page ...
//! ```
//!
//! The first page may be a dictionary, into which the values of later pages are indexes. The
//! `parquet` crate decodes the values, but this module reads the pages: it takes memory only for
//! bytes and values that a page can really have.
//!
//! # References
//!
//! - The format of Parquet, `parquet.thrift`,
//!   <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>.

use crate::codec::decompress;
use crate::footer::thrift::{Cursor, Problem, Wire};
use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The longest header of a page that is read. Statistics may make a header long.
const MAX_HEADER_BYTES: u64 = 1 << 20;

/// The number of bytes that are read for a header at first.
const FIRST_HEADER_BYTES: u64 = 512;

/// The maximum depth of unknown fields in a header.
const MAX_DEPTH: u32 = 32;

/// The number of values that a page may always have.
const FREE_VALUES: u64 = 1 << 24;

/// The maximum number of values in a larger page for each of its bytes. Runs of equal values take
/// few bytes, but a reader holds all values of a list, or the lengths of all values, at once.
const MAX_VALUES_PER_BYTE: u64 = 64;

/// Which pages are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All pages, to decode each row.
    All,
    /// The dictionary, and pages that do not refer to it: together they have every value.
    Distinct,
}

/// Reads the pages of a column chunk.
pub struct Pages {
    file: File,
    codec: Compression,
    /// The part of the file that has not been read.
    at: u64,
    end: u64,
    wanted: Wanted,
    has_dictionary: bool,
    /// The shortest that a value in a dictionary can be.
    min_value_bytes: u64,
}

/// The header of a page.
#[derive(Debug, Default, PartialEq, Eq)]
struct Header {
    kind: i64,
    length: u64,
    compressed: u64,
    values: u32,
    nulls: u32,
    rows: u32,
    encoding: i64,
    levels: [i64; 2],
    level_bytes: [u32; 2],
    is_compressed: bool,
}

const DATA_PAGE: i64 = 0;
const DICTIONARY_PAGE: i64 = 2;
const DATA_PAGE_V2: i64 = 3;

impl Pages {
    /// Creates a reader of the pages between two positions of a file.
    pub fn new(
        file: File,
        codec: Compression,
        (at, end): (u64, u64),
        wanted: Wanted,
        min_value_bytes: u64,
    ) -> Pages {
        Pages { file, codec, at, end, wanted, has_dictionary: false, min_value_bytes }
    }

    /// Reads the dictionary if the next page is one. Returns its values in plain encoding.
    pub fn take_dictionary(&mut self) -> Result<Option<Bytes>> {
        let at = self.at;
        if at == self.end || self.header()?.kind != DICTIONARY_PAGE {
            self.at = at;
            return Ok(None);
        }
        self.at = at;
        match self.next_page()? {
            Some(Page::DictionaryPage {
                buf,
                encoding: Encoding::PLAIN | Encoding::PLAIN_DICTIONARY,
                ..
            }) => Ok(Some(buf)),
            _ => Err(problem("a dictionary has an unknown encoding")),
        }
    }

    /// Reads the next page that is wanted.
    pub fn next_page(&mut self) -> Result<Option<Page>> {
        while self.at < self.end {
            let header = self.header()?;
            let start = self.at;
            self.at =
                start.checked_add(header.compressed).filter(|end| *end <= self.end).ok_or_else(|| {
                    problem(format!(
                        "a page of {} bytes at byte {start} ends beyond its column",
                        header.compressed
                    ))
                })?;
            let refers = [Some(Encoding::PLAIN_DICTIONARY), Some(Encoding::RLE_DICTIONARY)]
                .contains(&encoding(header.encoding));
            let is_data = [DATA_PAGE, DATA_PAGE_V2].contains(&header.kind);
            if is_data && refers && !self.has_dictionary {
                return Err(problem("a page refers to a dictionary that is missing"));
            }
            if is_data && refers && self.wanted == Wanted::Distinct
                || !is_data && header.kind != DICTIONARY_PAGE
            {
                continue;
            }
            return self.page(start, header).map(Some);
        }
        Ok(None)
    }

    /// Reads the header at the current position, and moves behind it.
    fn header(&mut self) -> Result<Header> {
        let mut wanted = FIRST_HEADER_BYTES;
        loop {
            let length = wanted.min(self.end - self.at);
            let mut bytes = vec![0; length as usize];
            self.file.read_exact_at(&mut bytes, self.at)?;
            let mut cursor = Cursor(&bytes);
            match Header::take(&mut cursor) {
                Ok(header) => {
                    self.at += length - cursor.0.len() as u64;
                    return Ok(header);
                }
                Err(_) if length == wanted && wanted < MAX_HEADER_BYTES => wanted *= 8,
                Err(what) => {
                    return Err(problem(format!("in the header of the page at byte {}, {what}", self.at)));
                }
            }
        }
    }

    fn page(&mut self, start: u64, header: Header) -> Result<Page> {
        let mut bytes = vec![0; header.compressed as usize];
        self.file.read_exact_at(&mut bytes, start)?;
        let damaged = |what: String| problem(format!("the page at byte {start} is damaged: {what}"));
        if u64::from(header.values) > FREE_VALUES.max(header.length.saturating_mul(MAX_VALUES_PER_BYTE)) {
            return Err(damaged(format!("it claims {} values in {} bytes", header.values, header.length)));
        }
        // The levels of a page of the second version are not compressed.
        let levels = u64::from(header.level_bytes[0]) + u64::from(header.level_bytes[1]);
        if levels > header.length.min(header.compressed) {
            return Err(damaged("its levels are longer than itself".to_string()));
        }
        let levels = levels as usize;
        let codec = if header.is_compressed { self.codec } else { Compression::UNCOMPRESSED };
        let buf = if codec == Compression::UNCOMPRESSED {
            match bytes.len() as u64 == header.length {
                true => bytes,
                false => return Err(damaged("it has another length than its header says".to_string())),
            }
        } else {
            let length = header.length as usize - levels;
            let packed = &bytes[levels..];
            // A page without values may have no compressed bytes.
            let values = match packed.is_empty() && length == 0 {
                true => Some(Vec::new()),
                false => decompress(codec, packed, length).map_err(|error| damaged(error.to_string()))?,
            };
            let values =
                values.ok_or_else(|| problem(format!("the compression {codec} is not supported")))?;
            [&bytes[..levels], &values].concat()
        };
        let encoding =
            |number| encoding(number).ok_or_else(|| damaged(format!("it has an unknown encoding, {number}")));
        let num_values = header.values;
        Ok(match header.kind {
            DICTIONARY_PAGE => {
                if self.has_dictionary {
                    return Err(damaged("it is a second dictionary".to_string()));
                }
                self.has_dictionary = true;
                if u64::from(num_values).saturating_mul(self.min_value_bytes.max(1)) > header.length {
                    return Err(damaged(format!("it claims {num_values} values in {} bytes", header.length)));
                }
                Page::DictionaryPage {
                    buf: buf.into(),
                    num_values,
                    encoding: encoding(header.encoding)?,
                    is_sorted: false,
                }
            }
            DATA_PAGE => Page::DataPage {
                buf: buf.into(),
                num_values,
                encoding: encoding(header.encoding)?,
                def_level_encoding: encoding(header.levels[0])?,
                rep_level_encoding: encoding(header.levels[1])?,
                statistics: None,
            },
            _ => Page::DataPageV2 {
                buf: buf.into(),
                num_values,
                encoding: encoding(header.encoding)?,
                num_nulls: header.nulls,
                num_rows: header.rows,
                def_levels_byte_len: header.level_bytes[0],
                rep_levels_byte_len: header.level_bytes[1],
                is_compressed: header.is_compressed,
                statistics: None,
            },
        })
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.next_page()
    }

    // Only skipped rows need this, and whether a row goes on in the next page: it may.
    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        let more = PageMetadata { num_rows: None, num_levels: None, is_dict: false };
        Ok((self.at < self.end).then_some(more))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.next_page().map(drop)
    }
}

fn problem(what: impl Into<String>) -> ParquetError {
    ParquetError::General(what.into())
}

impl Header {
    /// Takes a header.
    fn take(cursor: &mut Cursor<'_>) -> Result<Header, Problem> {
        const INCOMPLETE: Problem = "something is missing";
        let mut header = Header { is_compressed: true, kind: -1, encoding: -1, ..Header::default() };
        let (mut lengths, mut inner, mut before) = ([None; 2], None, 0);
        while let Some((number, wire)) = cursor.field(before)? {
            match (number, wire) {
                (1, Wire::I32) => header.kind = cursor.signed()?,
                (2 | 3, Wire::I32) => {
                    let length =
                        i32::try_from(cursor.signed()?).ok().and_then(|length| u64::try_from(length).ok());
                    lengths[number as usize - 2] = Some(length.ok_or("a length is impossible")?);
                }
                (5 | 7 | 8, Wire::Struct) => {
                    header.take_inner(cursor, number)?;
                    inner = Some(number);
                }
                _ => cursor.pass_over(wire, MAX_DEPTH)?,
            }
            before = number;
        }
        let [length, compressed] = lengths;
        (header.length, header.compressed) = (length.ok_or(INCOMPLETE)?, compressed.ok_or(INCOMPLETE)?);
        let expected = match header.kind {
            DATA_PAGE => Some(5),
            DICTIONARY_PAGE => Some(7),
            DATA_PAGE_V2 => Some(8),
            // The pages of an index have no values.
            _ => inner,
        };
        if inner == expected { Ok(header) } else { Err(INCOMPLETE) }
    }

    /// Takes the part of a header that depends on the kind of page.
    fn take_inner(&mut self, cursor: &mut Cursor<'_>, kind: i16) -> Result<(), Problem> {
        let mut before = 0;
        loop {
            // The value of a Boolean is in its type.
            let truth = cursor.0.first().is_some_and(|byte| byte & 0x0f == 1);
            let Some((number, wire)) = cursor.field(before)? else { return Ok(()) };
            let count = |number: i64| {
                u32::try_from(number)
                    .ok()
                    .filter(|count| *count <= i32::MAX as u32)
                    .ok_or("a number is impossible")
            };
            match (kind, number, wire) {
                (_, 1, Wire::I32) => self.values = count(cursor.signed()?)?,
                (5 | 7, 2, Wire::I32) | (8, 4, Wire::I32) => self.encoding = cursor.signed()?,
                (5, 3 | 4, Wire::I32) => self.levels[number as usize - 3] = cursor.signed()?,
                (8, 2, Wire::I32) => self.nulls = count(cursor.signed()?)?,
                (8, 3, Wire::I32) => self.rows = count(cursor.signed()?)?,
                (8, 5 | 6, Wire::I32) => self.level_bytes[number as usize - 5] = count(cursor.signed()?)?,
                (8, 7, Wire::Bool) => self.is_compressed = truth,
                _ => cursor.pass_over(wire, MAX_DEPTH)?,
            }
            before = number;
        }
    }
}

/// Returns the encoding with this number.
fn encoding(number: i64) -> Option<Encoding> {
    #[expect(deprecated, reason = "old files have it")]
    Some(match number {
        0 => Encoding::PLAIN,
        2 => Encoding::PLAIN_DICTIONARY,
        3 => Encoding::RLE,
        4 => Encoding::BIT_PACKED,
        5 => Encoding::DELTA_BINARY_PACKED,
        6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        7 => Encoding::DELTA_BYTE_ARRAY,
        8 => Encoding::RLE_DICTIONARY,
        9 => Encoding::BYTE_STREAM_SPLIT,
        _ => return None,
    })
}
