//! The key of a record: one of its fields or all of it, trimmed, in lower case, decoded.

use super::csv;
use anyhow::{Result, bail};
use bstr::ByteSlice;
use memchr::memmem;
use umbel::foreign::Funnel;
use umbel::internals::hex;
use umbel_text::lines::MAX_LINE_BYTES;

/// How lines are split into records and fields, and which part of a record is the key.
pub struct KeySpec {
    pub line_end: u8,
    pub separator: Vec<u8>,
    pub field: Option<Field>,
    pub header: bool,
    pub print_field: bool,
    pub csv: bool,
    /// The column of Parquet files whose values are the keys. They come as CSV records of one field.
    pub parquet: Option<String>,
    pub trim: bool,
    pub lower: bool,
    pub hex: bool,
    /// The form that every key must have, if the filter of another program needs one.
    pub funnel: Option<Funnel>,
    /// The length of the longest record in bytes, without its end.
    pub max_line: usize,
}

/// The field that is the key.
#[derive(Clone, Debug)]
pub enum Field {
    /// Its index, from 0.
    Number(usize),
    /// Its name in the header of each file.
    Name(String),
}

/// Why a record has no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoKey {
    MissingField,
    NotHex,
    /// The funnel takes no such key.
    Unfit,
}

impl KeySpec {
    /// Returns the spec of keys that are whole lines.
    pub fn whole_line() -> KeySpec {
        KeySpec {
            line_end: b'\n',
            separator: b"\t".to_vec(),
            field: None,
            header: false,
            print_field: false,
            csv: false,
            parquet: None,
            trim: false,
            lower: false,
            hex: false,
            funnel: None,
            max_line: MAX_LINE_BYTES,
        }
    }

    /// Returns whether the key is the whole record, byte for byte.
    pub fn is_plain(&self) -> bool {
        self.field.is_none() && !self.trim && !self.lower && !self.hex && self.funnel.is_none()
    }

    /// Returns the index of the key's field in a file with this header.
    pub fn field_index(&self, header: Option<&[u8]>, file: &str) -> Result<usize> {
        let (name, header) = match (&self.field, header) {
            (None, _) => return Ok(0),
            (Some(Field::Number(number)), _) => return Ok(*number),
            (Some(Field::Name(name)), Some(header)) => (name, header),
            // An empty file has no header, and no lines in which to look for the field.
            (Some(Field::Name(_)), None) => return Ok(0),
        };
        let mut names = Vec::new();
        let mut found = Vec::new();
        for number in 0.. {
            let Some(field) = self.nth_field(header, number, &mut found) else { break };
            if field.trim() == name.as_bytes() {
                return Ok(number);
            }
            names.push(field.trim().to_str_lossy().into_owned());
        }
        bail!("{file} has no field \"{name}\": its fields are {}", names.join(", "))
    }

    /// Returns the field with this index, if the record has one; `unquoted` is a buffer for quoted
    /// fields.
    fn nth_field<'a>(&self, record: &'a [u8], number: usize, unquoted: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        if self.csv {
            return csv::field(record, self.separator[0], number, unquoted);
        }
        if let &[separator] = &self.separator[..] {
            return nth_between(record, memchr::memchr_iter(separator, record), 1, number);
        }
        nth_between(record, memmem::find_iter(record, &self.separator), self.separator.len(), number)
    }

    /// Appends the key of a record to `keys`, and with `--print-field` the unchanged field to
    /// `printed`.
    pub fn append_key(
        &self,
        record: &[u8],
        number: usize,
        keys: &mut Vec<u8>,
        printed: &mut Vec<u8>,
        unquoted: &mut Vec<u8>,
    ) -> Result<(), NoKey> {
        let mut key = match self.field {
            None => record,
            Some(_) => self.nth_field(record, number, unquoted).ok_or(NoKey::MissingField)?,
        };
        let field = key;
        if self.trim {
            key = key.trim_ascii();
        }
        let start = keys.len();
        if self.hex {
            hex::decode(key, keys).ok_or(NoKey::NotHex)?;
        } else if self.lower {
            lower(key, keys);
        } else {
            keys.extend_from_slice(key);
        }
        if self.funnel.is_some_and(|funnel| !funnel.accepts(&keys[start..])) {
            keys.truncate(start);
            return Err(NoKey::Unfit);
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

    fn key(key_spec: &KeySpec, record: &[u8]) -> Result<Vec<u8>, NoKey> {
        let number = key_spec.field_index(None, "").unwrap();
        let mut keys = Vec::new();
        key_spec.append_key(record, number, &mut keys, &mut Vec::new(), &mut Vec::new()).map(|()| keys)
    }

    #[test]
    fn fields_are_found_by_number() {
        let third = KeySpec { field: Some(Field::Number(2)), ..KeySpec::whole_line() };
        assert_eq!(key(&third, b"a\tb\tc"), Ok(b"c".to_vec()));
        assert_eq!(key(&third, b"a\tb\t"), Ok(b"".to_vec()));
        assert_eq!(key(&third, b"a\tb"), Err(NoKey::MissingField));
        let first = KeySpec { field: Some(Field::Number(0)), ..KeySpec::whole_line() };
        assert_eq!(key(&first, b""), Ok(b"".to_vec()));
        assert_eq!(key(&first, b"a\tb"), Ok(b"a".to_vec()));
        let second =
            KeySpec { separator: b"::".to_vec(), field: Some(Field::Number(1)), ..KeySpec::whole_line() };
        assert_eq!(key(&second, b"a::b:c::d"), Ok(b"b:c".to_vec()));
    }

    #[test]
    fn fields_are_found_by_name_in_each_header() {
        let mail = KeySpec {
            csv: true,
            separator: b",".to_vec(),
            field: Some(Field::Name("mail".into())),
            ..KeySpec::whole_line()
        };
        assert_eq!(mail.field_index(Some(b"id,mail"), "x").unwrap(), 1);
        assert_eq!(mail.field_index(Some(b"\"mail\",id\r"), "x").unwrap(), 0);
        let error = mail.field_index(Some(b"id,name\r"), "x.csv").unwrap_err().to_string();
        assert_eq!(error, "x.csv has no field \"mail\": its fields are id, name");
    }

    #[test]
    fn keys_are_trimmed_lowered_and_decoded_in_this_order() {
        let trim = KeySpec { trim: true, ..KeySpec::whole_line() };
        assert_eq!(key(&trim, b" a b \t\r"), Ok(b"a b".to_vec()));
        let lower = KeySpec { lower: true, ..KeySpec::whole_line() };
        assert_eq!(key(&lower, "Łódź".as_bytes()), Ok("łódź".as_bytes().to_vec()));
        assert_eq!(key(&lower, b"A\xffB"), Ok(b"a\xffb".to_vec()), "what is not UTF-8 stays");
        let hex = KeySpec { trim: true, hex: true, ..KeySpec::whole_line() };
        assert_eq!(key(&hex, b" 0aFF\r"), Ok(vec![0x0a, 0xff]));
        assert_eq!(key(&hex, b"0a0"), Err(NoKey::NotHex));
        assert_eq!(key(&hex, b"zz"), Err(NoKey::NotHex));
    }

    #[test]
    fn a_record_that_a_funnel_does_not_take_leaves_no_key_behind() {
        let long = KeySpec { funnel: Some(Funnel::Long), trim: true, ..KeySpec::whole_line() };
        assert_eq!(key(&long, b" -5\r"), Ok(b"-5".to_vec()));
        let mut keys = b"7".to_vec();
        for text in ["", "x", "9223372036854775808", "1.0"] {
            let found = long.append_key(text.as_bytes(), 0, &mut keys, &mut Vec::new(), &mut Vec::new());
            assert_eq!((found, &keys[..]), (Err(NoKey::Unfit), &b"7"[..]), "{text:?}");
        }
    }
}
