//! From a record to its key: a field of it, trimmed, in lower case, decoded.

use super::csv;
use crate::hex;
use anyhow::{Result, bail};
use bstr::ByteSlice;
use memchr::memmem;

/// What of a record is the key.
pub struct Shape {
    pub line_end: u8,
    pub separator: Vec<u8>,
    pub field: Option<Field>,
    pub header: bool,
    pub print_field: bool,
    pub csv: bool,
    pub trim: bool,
    pub lower: bool,
    pub hex: bool,
}

/// Which field.
#[derive(Clone, Debug)]
pub enum Field {
    /// Counted from zero.
    Number(usize),
    /// As the header of each file has it.
    Name(String),
}

/// Why a record has no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    Field,
    Hex,
}

impl Shape {
    /// Whether the key is the record itself, byte for byte.
    pub fn is_plain(&self) -> bool {
        self.field.is_none() && !self.trim && !self.lower && !self.hex
    }

    /// The number of the key's field in a file that starts with this record.
    pub fn field_in(&self, header: Option<&[u8]>, file: &str) -> Result<usize> {
        let name = match (&self.field, header) {
            (None, _) => return Ok(0),
            (Some(Field::Number(number)), _) => return Ok(*number),
            (Some(Field::Name(name)), Some(header)) => (name, header),
            // An empty file has no header, and no lines in which to look for the field.
            (Some(Field::Name(_)), None) => return Ok(0),
        };
        let (name, header) = name;
        let mut names = Vec::new();
        let mut found = Vec::new();
        for number in 0.. {
            let Some(field) = self.nth(header, number, &mut found) else { break };
            if field.trim() == name.as_bytes() {
                return Ok(number);
            }
            names.push(field.trim().to_str_lossy().into_owned());
        }
        bail!("{file} has no field \"{name}\": its fields are {}", names.join(", "))
    }

    /// The field with this number, if the record has so many; `unquoted` is room for one that has quotes.
    fn nth<'a>(&self, record: &'a [u8], number: usize, unquoted: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        if self.csv {
            return csv::field(record, self.separator[0], number, unquoted);
        }
        if let &[separator] = &self.separator[..] {
            return nth_between(record, memchr::memchr_iter(separator, record), 1, number);
        }
        nth_between(record, memmem::find_iter(record, &self.separator), self.separator.len(), number)
    }

    /// Appends the key of a record to `keys`, and its field as it stands there to `printed`, if it is to be printed.
    pub fn key(
        &self,
        record: &[u8],
        number: usize,
        keys: &mut Vec<u8>,
        printed: &mut Vec<u8>,
        unquoted: &mut Vec<u8>,
    ) -> Result<(), Lack> {
        let mut key = match self.field {
            None => record,
            Some(_) => self.nth(record, number, unquoted).ok_or(Lack::Field)?,
        };
        let field = key;
        if self.trim {
            key = key.trim_ascii();
        }
        if self.hex {
            hex::decode(key, keys).ok_or(Lack::Hex)?;
        } else if self.lower {
            lower(key, keys);
        } else {
            keys.extend_from_slice(key);
        }
        if self.print_field {
            printed.extend_from_slice(field);
        }
        Ok(())
    }
}

fn nth_between(
    record: &[u8],
    mut separators: impl Iterator<Item = usize>,
    width: usize,
    number: usize,
) -> Option<&[u8]> {
    let start = match number {
        0 => 0,
        _ => separators.nth(number - 1)? + width,
    };
    Some(&record[start..separators.next().unwrap_or(record.len())])
}

fn lower(key: &[u8], keys: &mut Vec<u8>) {
    if key.is_ascii() {
        let start = keys.len();
        keys.extend_from_slice(key);
        keys[start..].make_ascii_lowercase();
    } else {
        // Bytes that are not UTF-8 stay as they are.
        key.to_lowercase_into(keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape {
            line_end: b'\n',
            separator: b"\t".to_vec(),
            field: None,
            header: false,
            print_field: false,
            csv: false,
            trim: false,
            lower: false,
            hex: false,
        }
    }

    fn key(shape: &Shape, record: &[u8]) -> Result<Vec<u8>, Lack> {
        let number = shape.field_in(None, "").unwrap();
        let mut keys = Vec::new();
        shape.key(record, number, &mut keys, &mut Vec::new(), &mut Vec::new()).map(|()| keys)
    }

    #[test]
    fn fields_are_found_by_number() {
        let third = Shape { field: Some(Field::Number(2)), ..shape() };
        assert_eq!(key(&third, b"a\tb\tc"), Ok(b"c".to_vec()));
        assert_eq!(key(&third, b"a\tb\t"), Ok(b"".to_vec()));
        assert_eq!(key(&third, b"a\tb"), Err(Lack::Field));
        let first = Shape { field: Some(Field::Number(0)), ..shape() };
        assert_eq!(key(&first, b""), Ok(b"".to_vec()));
        assert_eq!(key(&first, b"a\tb"), Ok(b"a".to_vec()));
        let second = Shape { separator: b"::".to_vec(), field: Some(Field::Number(1)), ..shape() };
        assert_eq!(key(&second, b"a::b:c::d"), Ok(b"b:c".to_vec()));
    }

    #[test]
    fn fields_are_found_by_name_in_each_header() {
        let mail =
            Shape { csv: true, separator: b",".to_vec(), field: Some(Field::Name("mail".into())), ..shape() };
        assert_eq!(mail.field_in(Some(b"id,mail"), "x").unwrap(), 1);
        assert_eq!(mail.field_in(Some(b"\"mail\",id\r"), "x").unwrap(), 0);
        let error = mail.field_in(Some(b"id,name\r"), "x.csv").unwrap_err().to_string();
        assert_eq!(error, "x.csv has no field \"mail\": its fields are id, name");
    }

    #[test]
    fn keys_are_trimmed_lowered_and_decoded_in_this_order() {
        let trim = Shape { trim: true, ..shape() };
        assert_eq!(key(&trim, b" a b \t\r"), Ok(b"a b".to_vec()));
        let lower = Shape { lower: true, ..shape() };
        assert_eq!(key(&lower, "Łódź".as_bytes()), Ok("łódź".as_bytes().to_vec()));
        assert_eq!(key(&lower, b"A\xffB"), Ok(b"a\xffb".to_vec()), "what is not UTF-8 stays");
        let hex = Shape { trim: true, hex: true, ..shape() };
        assert_eq!(key(&hex, b" 0aFF\r"), Ok(vec![0x0a, 0xff]));
        assert_eq!(key(&hex, b"0a0"), Err(Lack::Hex));
        assert_eq!(key(&hex, b"zz"), Err(Lack::Hex));
    }
}
