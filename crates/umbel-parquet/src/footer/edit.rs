//! Edits a footer: places filters in the descriptions of column chunks, and copies all else byte by
//! byte, so that nothing is lost that this crate does not know.

use super::thrift::{Cursor, Problem, Wire};

/// The field of `FileMetaData` with the row groups.
const ROW_GROUPS: i16 = 4;
/// The field of `FileMetaData` with the algorithm by which a footer is signed.
const ENCRYPTION: i16 = 8;
/// The field of a row group with its column chunks.
const CHUNKS: i16 = 1;
/// The field of a column chunk with its description.
const DESCRIPTION: i16 = 3;
/// The field of a column chunk with the way it is encrypted.
const CHUNK_ENCRYPTION: i16 = 8;
/// The fields of a description with the position and the length of its filter.
const FILTER_OFFSET: i16 = 14;
const FILTER_LENGTH: i16 = 15;

/// The maximum depth of values.
const MAX_DEPTH: u32 = 200;

/// The place of a filter in the file, with its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterPlace {
    pub offset: u64,
    pub length: u32,
}

/// Returns a footer in which a column has these filters, one for each row group.
pub fn with_filters(footer: &[u8], column: usize, filters: &[FilterPlace]) -> Result<Vec<u8>, Problem> {
    let mut edit = Edit { from: Cursor(footer), to: Vec::with_capacity(footer.len() + 16 * filters.len()) };
    edit.fields(&mut |edit, number, wire| match (number, wire) {
        (ENCRYPTION, _) => Err("it is signed, and a changed footer would not be"),
        (ROW_GROUPS, Wire::List) => {
            let groups = edit.list()?;
            if groups != filters.len() {
                return Err("it has another number of row groups");
            }
            filters.iter().try_for_each(|filter| {
                edit.fields(&mut |edit, number, wire| match (number, wire) {
                    (CHUNKS, Wire::List) => {
                        let chunks = edit.list()?;
                        for chunk in 0..chunks {
                            if chunk == column { edit.chunk(*filter)? } else { edit.copy(Wire::Struct)? }
                        }
                        Ok(())
                    }
                    _ => edit.copy(wire),
                })
            })
        }
        _ => edit.copy(wire),
    })?;
    let Edit { from, mut to } = edit;
    to.extend_from_slice(from.0);
    Ok(to)
}

/// A footer that is read, and the edited one.
struct Edit<'a> {
    from: Cursor<'a>,
    to: Vec<u8>,
}

impl Edit<'_> {
    /// Copies the bytes that `read` takes.
    fn taken<T>(&mut self, read: impl FnOnce(&mut Cursor<'_>) -> Result<T, Problem>) -> Result<T, Problem> {
        let before = self.from.0;
        let result = read(&mut self.from)?;
        self.to.extend_from_slice(&before[..before.len() - self.from.0.len()]);
        Ok(result)
    }

    /// Copies a value.
    fn copy(&mut self, wire: Wire) -> Result<(), Problem> {
        self.taken(|from| from.pass_over(wire, MAX_DEPTH))
    }

    /// Copies the start of a list of structs, and returns the number of them.
    fn list(&mut self) -> Result<usize, Problem> {
        match self.taken(|from| from.list())? {
            (count, Wire::Struct) => Ok(count),
            (0, _) => Ok(0),
            _ => Err("a list has elements of another type"),
        }
    }

    /// Copies the fields of a struct; `each` copies the value of a field.
    fn fields(
        &mut self,
        each: &mut dyn FnMut(&mut Self, i16, Wire) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let mut before = 0;
        while let Some((number, wire)) = self.taken(|from| from.field(before))? {
            each(self, number, wire)?;
            before = number;
        }
        Ok(())
    }

    /// Copies a column chunk, and places a filter in it.
    fn chunk(&mut self, filter: FilterPlace) -> Result<(), Problem> {
        let mut placed = false;
        self.fields(&mut |edit, number, wire| match (number, wire) {
            (CHUNK_ENCRYPTION, _) => Err("the column is encrypted"),
            (DESCRIPTION, Wire::Struct) => {
                placed = true;
                edit.description(filter)
            }
            _ => edit.copy(wire),
        })?;
        if placed { Ok(()) } else { Err("a column chunk has no description") }
    }

    /// Copies the description of a column chunk with another filter.
    ///
    /// A field stores the distance of its number from that of the field before it. So the head of
    /// each field behind the new ones is written again.
    fn description(&mut self, filter: FilterPlace) -> Result<(), Problem> {
        let (mut before, mut written, mut placed) = (0, 0, false);
        loop {
            let type_bits = self.from.0.first().map_or(0, |byte| byte & 0x0f);
            let field = self.from.field(before)?;
            if !placed && field.is_none_or(|(number, _)| number >= FILTER_OFFSET) {
                self.head(written, FILTER_OFFSET, 6);
                put_signed(&mut self.to, filter.offset as i64);
                self.head(FILTER_OFFSET, FILTER_LENGTH, 5);
                put_signed(&mut self.to, filter.length.into());
                (written, placed) = (FILTER_LENGTH, true);
            }
            let Some((number, wire)) = field else {
                self.to.push(0);
                return Ok(());
            };
            before = number;
            if number == FILTER_OFFSET || number == FILTER_LENGTH {
                self.from.pass_over(wire, MAX_DEPTH)?;
                continue;
            }
            self.head(written, number, type_bits);
            written = number;
            self.copy(wire)?;
        }
    }

    /// Writes the head of a field.
    fn head(&mut self, before: i16, number: i16, type_bits: u8) {
        match number.checked_sub(before) {
            Some(distance @ 1..=15) => self.to.push((distance as u8) << 4 | type_bits),
            _ => {
                self.to.push(type_bits);
                put_signed(&mut self.to, number.into());
            }
        }
    }
}

/// Appends a signed number, whose sign is its lowest bit.
pub fn put_signed(to: &mut Vec<u8>, number: i64) {
    umbel::file::fields::put_varint(to, (number << 1 ^ number >> 63) as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILTER: FilterPlace = FilterPlace { offset: 100, length: 47 };

    /// A footer with one row group of one column chunk, with these fields behind its description.
    fn footer(description: &[u8], behind: &[u8]) -> Vec<u8> {
        let chunk = [&[0x3c][..], description, behind, &[0]].concat();
        [&[0x15, 2, 0x39, 0x1c, 0x19, 0x1c][..], &chunk, &[0, 0]].concat()
    }

    #[test]
    fn a_filter_comes_between_the_fields_before_and_behind_it() {
        let with = |description: &[u8]| with_filters(&footer(description, &[]), 0, &[FILTER]);
        let placed = [0x15, 2, 0xd6, 0xc8, 1, 0x15, 0x5e];
        assert_eq!(with(&[0x15, 2, 0]), Ok(footer(&[&placed[..], &[0]].concat(), &[])));
        // Field 16 is behind field 1, and then behind field 15.
        assert_eq!(with(&[0x15, 2, 0xfc, 0, 0]), Ok(footer(&[&placed[..], &[0x1c, 0, 0]].concat(), &[])));
        // A filter that is there is replaced.
        assert_eq!(with(&[0x15, 2, 0xd6, 2, 0x15, 4, 0]), Ok(footer(&[&placed[..], &[0]].concat(), &[])));
        // Another column stays as it is.
        let bytes = footer(&[0x15, 2, 0], &[]);
        assert_eq!(with_filters(&bytes, 1, &[FILTER]), Ok(bytes));
    }

    #[test]
    fn signed_and_encrypted_footers_are_not_edited() {
        let encrypted = footer(&[0x15, 2, 0], &[0x5c, 0]);
        assert_eq!(with_filters(&encrypted, 0, &[FILTER]), Err("the column is encrypted"));
        let mut signed = footer(&[0x15, 2, 0], &[]);
        signed.truncate(signed.len() - 1);
        signed.extend([0x4c, 0, 0]);
        assert!(with_filters(&signed, 0, &[FILTER]).unwrap_err().contains("signed"));
        let bytes = footer(&[0x15, 2, 0], &[]);
        assert!(with_filters(&bytes, 0, &[]).is_err());
        for cut in 0..bytes.len() {
            assert!(with_filters(&bytes[..cut], 0, &[FILTER]).is_err(), "cut at {cut}");
        }
    }
}
