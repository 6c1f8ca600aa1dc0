//! The header before a bit set in a Parquet file: a structure in Thrift's compact protocol.
//!
//! ```text
//! 15 <varint>    field 1, a number: the bytes of the bit set, zigzag-encoded
//! 1c 1c 00 00    field 2, a union: its field 1, an empty structure, is the split-block algorithm
//! 1c 1c 00 00    field 3, likewise: XXH64
//! 1c 1c 00 00    field 4, likewise: not compressed
//! 00             the end
//! ```
//!
//! The high half of a field's first byte is the difference of its number to the one before it, and
//! the low half its type.

use super::BLOCK_BYTES;
use crate::file::FormatError;
use crate::file::fields::{Fields, put_varint};
use crate::{Error, Result};

/// The number of bytes from the start of a header that [`parse_header`] needs at most, unless a
/// later version of Parquet adds fields.
pub const MAX_HEADER_BYTES: usize = 64;

/// The header of a bit set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// The number of bytes of the header itself, after which the bit set begins.
    pub len: usize,
    /// The number of bytes of the bit set: a multiple of 32, and not 0.
    pub bytes: usize,
}

/// Types of Thrift's compact protocol.
mod types {
    pub const TRUE: u8 = 1;
    pub const FALSE: u8 = 2;
    pub const BYTE: u8 = 3;
    pub const I16: u8 = 4;
    pub const I32: u8 = 5;
    pub const I64: u8 = 6;
    pub const DOUBLE: u8 = 7;
    pub const BINARY: u8 = 8;
    pub const LIST: u8 = 9;
    pub const SET: u8 = 10;
    pub const MAP: u8 = 11;
    pub const STRUCT: u8 = 12;
}

/// The depth to which structures that are skipped may be nested.
const MAX_DEPTH: u32 = 8;

/// The unions of a header, by their field numbers: what they choose, and the only known choice.
const CHOICES: [(&str, &str); 3] =
    [("algorithm", "split blocks"), ("hash", "XXH64"), ("compression", "none")];

/// Returns whether bytes begin as every header that is written does: a field 1 that is a number,
/// and the algorithm.
pub(super) fn is_start(start: &[u8]) -> bool {
    let mut fields = Fields(start);
    fields.array() == Some([0x15]) && fields.varint().is_some() && fields.0.starts_with(&[0x1c, 0x1c, 0, 0])
}

/// Returns whether bytes begin with a field 1 that is a number, as a header does that is cut off.
pub(super) fn seems_start(start: &[u8]) -> bool {
    start.starts_with(&[0x15])
}

/// Parses the header at the start of `bytes`, of which [`MAX_HEADER_BYTES`] are enough.
///
/// ```
/// use umbel::foreign::sbbf::{parse_header, write_header};
/// let header = parse_header(&write_header(1024)?)?;
/// assert_eq!((header.len, header.bytes), (16, 1024));
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// # Errors
///
/// If the bytes are not a header, or it announces a bit set that cannot be: of a length that is 0
/// or not a multiple of 32, or of another algorithm, hash or compression.
pub fn parse_header(bytes: &[u8]) -> Result<Header> {
    let mut fields = Fields(bytes);
    let (mut length, mut chosen) = (None, [false; CHOICES.len()]);
    let mut id = 0;
    while let Some(kind) = next_field(&mut fields, &mut id)? {
        match (id, kind) {
            (1, types::I32) => length = Some(zigzag(fields.varint().ok_or_else(cut_off)?)),
            (2..=4, types::STRUCT) => {
                let (union, known) = CHOICES[id as usize - 2];
                let mut choice = 0;
                while let Some(kind) = next_field(&mut fields, &mut choice)? {
                    if choice != 1 {
                        let what = format!("{union} number {choice} of Parquet, which is not {known}");
                        return Err(FormatError::Unknown { what }.into());
                    }
                    skip(&mut fields, kind, MAX_DEPTH)?;
                    chosen[id as usize - 2] = true;
                }
            }
            (1..=4, _) => {
                return Err(FormatError::invalid(format!("its header's field {id} has type {kind}")).into());
            }
            _ => skip(&mut fields, kind, MAX_DEPTH)?,
        }
    }
    if let Some(missing) = chosen.iter().position(|chosen| !chosen) {
        return Err(
            FormatError::invalid(format!("its header does not name the {}", CHOICES[missing].0)).into()
        );
    }
    let length =
        length.ok_or_else(|| FormatError::invalid("its header does not name the length of the bit set"))?;
    match usize::try_from(length) {
        Ok(length) if length > 0 && length % BLOCK_BYTES == 0 => {
            Ok(Header { len: bytes.len() - fields.0.len(), bytes: length })
        }
        _ => {
            let what = format!("its bit set has {length} bytes, and not a multiple of {BLOCK_BYTES} above 0");
            Err(FormatError::invalid(what).into())
        }
    }
}

/// Returns the header of a bit set of this many bytes, as the Parquet libraries write it.
///
/// # Errors
///
/// If the length is 0, not a multiple of 32, or too large for the header.
pub fn write_header(bytes: usize) -> Result<Vec<u8>> {
    if bytes == 0 || !bytes.is_multiple_of(BLOCK_BYTES) || i32::try_from(bytes).is_err() {
        let needs = "a multiple of 32 below 2^31, and not 0";
        return Err(Error::parameter("bytes", bytes, needs));
    }
    let mut header = vec![0x15];
    put_varint(&mut header, 2 * bytes as u64);
    header.extend([0x1c, 0x1c, 0, 0].repeat(CHOICES.len()));
    header.push(0);
    Ok(header)
}

fn cut_off() -> Error {
    FormatError::invalid("its header is cut off").into()
}

fn zigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Reads the head of the next field of a structure: its number goes to `id`, its type is returned.
/// `None` is the end of the structure.
fn next_field(fields: &mut Fields<'_>, id: &mut i64) -> Result<Option<u8>> {
    let [head] = fields.array().ok_or_else(cut_off)?;
    if head == 0 {
        return Ok(None);
    }
    *id = match head >> 4 {
        0 => zigzag(fields.varint().ok_or_else(cut_off)?),
        delta => id.saturating_add(delta.into()),
    };
    Ok(Some(head & 15))
}

/// Skips the value of a field, with at most `depth` levels of structures in it.
fn skip(fields: &mut Fields<'_>, kind: u8, depth: u32) -> Result<()> {
    let depth =
        depth.checked_sub(1).ok_or_else(|| FormatError::invalid("its header is nested too deeply"))?;
    match kind {
        types::TRUE | types::FALSE => {}
        types::BYTE => drop(fields.array::<1>().ok_or_else(cut_off)?),
        types::I16 | types::I32 | types::I64 => drop(fields.varint().ok_or_else(cut_off)?),
        types::DOUBLE => drop(fields.array::<8>().ok_or_else(cut_off)?),
        types::BINARY => {
            let len = fields.varint().ok_or_else(cut_off)?;
            fields.bytes(len).ok_or_else(cut_off)?;
        }
        types::LIST | types::SET => {
            let [head] = fields.array().ok_or_else(cut_off)?;
            let len = match head >> 4 {
                15 => fields.varint().ok_or_else(cut_off)?,
                len => len.into(),
            };
            (0..len).try_for_each(|_| skip_element(fields, head & 15, depth))?;
        }
        types::MAP => {
            let len = fields.varint().ok_or_else(cut_off)?;
            if len > 0 {
                let [kinds] = fields.array().ok_or_else(cut_off)?;
                (0..len).try_for_each(|_| {
                    skip_element(fields, kinds >> 4, depth)?;
                    skip_element(fields, kinds & 15, depth)
                })?;
            }
        }
        types::STRUCT => {
            let mut id = 0;
            while let Some(kind) = next_field(fields, &mut id)? {
                skip(fields, kind, depth)?;
            }
        }
        _ => {
            return Err(
                FormatError::invalid(format!("its header has a field of the unknown type {kind}")).into()
            );
        }
    }
    Ok(())
}

/// Skips an element of a list or a map. There, unlike in a field, a truth value takes a byte, so
/// that every element does.
fn skip_element(fields: &mut Fields<'_>, kind: u8, depth: u32) -> Result<()> {
    match kind {
        types::TRUE | types::FALSE => skip(fields, types::BYTE, depth),
        kind => skip(fields, kind, depth),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_those_of_the_format() {
        let expected = [0x15, 0x80, 0x10, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0];
        assert_eq!(write_header(1024).unwrap(), expected);
        for bytes in [32, 64, 4096, 1 << 20, i32::MAX as usize - 31] {
            let mut header = write_header(bytes).unwrap();
            let len = header.len();
            assert_eq!(parse_header(&header).unwrap(), Header { len, bytes });
            header.extend([0xff; 9]);
            assert_eq!(parse_header(&header).unwrap().len, len, "bytes after the header");
            (0..len).for_each(|cut| assert!(parse_header(&header[..cut]).is_err(), "cut at {cut}"));
        }
    }

    #[test]
    fn lengths_that_cannot_be_are_refused() {
        for bytes in [0, 31, 33, 1 << 31] {
            assert!(write_header(bytes).is_err(), "{bytes}");
        }
        let end = [0x1c, 0x1c, 0, 0].repeat(3);
        for length in [&[0u8][..], &[66], &[1], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]] {
            let header = [&[0x15], length, &end, &[0]].concat();
            assert!(parse_header(&header).is_err(), "{length:x?}");
        }
    }

    #[test]
    fn fields_of_later_versions_are_skipped_and_other_choices_refused() {
        let known = &write_header(32).unwrap()[..14];
        // A map of an integer to a list of two truth values, a string, a double, a structure.
        let added = [
            0x1b, 1, 0x59, 2, 0x21, 1, 2, 0x18, 2, b'x', b'y', 0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0x1c, 0x11, 0, 0,
        ];
        let header = [known, &added].concat();
        assert_eq!(parse_header(&header).unwrap(), Header { len: header.len(), bytes: 32 });
        for union in [2, 6, 10] {
            let mut other = write_header(32).unwrap();
            other[union + 1] = 0x2c;
            assert!(parse_header(&other).unwrap_err().to_string().len() > 10, "field {union}");
        }
        // Structures in structures, deeper than any header needs.
        assert!(parse_header(&[0x1c; 1000]).is_err());
        assert!(parse_header(&[&[0x19u8, 0xfc][..], &[0xff; 9], &[1]].concat()).is_err());
    }
}
