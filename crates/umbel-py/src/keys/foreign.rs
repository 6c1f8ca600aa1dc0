//! Keys as the bytes that filters of other libraries hash.
//!
//! Such a library hashes text, bytes and integers each in its own way, which its files do not name:
//! the *funnel*. Objects and columns of Python have a type, so only some keys need one.

use super::column::{CHUNK, Column, Values, Work};
use super::items::for_each_object;
use super::object::{described, integer_of, string_of};
use super::source::is_plain_container;
use crate::errors::{Exception, bad_parameter, raise};
use pyo3::prelude::*;
use umbel::foreign::{Format, Funnel};
use umbel::{Arena, Error, Result};

/// What the keys of a filter of another library are.
#[derive(Clone, Copy)]
pub struct ForeignKeys {
    pub format: Format,
    /// The funnel; `None` if the type of each key determines it.
    pub funnel: Option<Funnel>,
}

/// The type of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum KeyType {
    /// Text or bytes.
    String,
    Integer,
}

/// How the bytes of a key are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Strings as they are.
    Plain,
    /// Text in UTF-16.
    Utf16,
    /// Integers of 64 bits.
    Long,
    /// Integers of 32 bits.
    Int,
    /// Integers of 32 bits, as if they had 64.
    WidenedInt,
}

impl ForeignKeys {
    /// # Errors
    ///
    /// If the format has no such keys.
    pub fn new(format: Format, funnel: Option<Funnel>) -> PyResult<ForeignKeys> {
        if funnel.is_some() {
            Funnel::for_format(format, funnel).map_err(raise)?;
        }
        Ok(ForeignKeys { format, funnel })
    }

    /// Returns the funnel of the filter itself, to which the bytes of a key are passed instead of a line.
    pub fn of_bytes(self) -> Funnel {
        match self.funnel {
            // The difference is the empty key, which DataSketches inserts as bytes but not as text.
            None | Some(Funnel::Utf8) => Funnel::Utf8,
            Some(_) => Funnel::Bytes,
        }
    }

    /// Returns how the bytes of the keys in a column are made.
    ///
    /// # Errors
    ///
    /// As [`encoding`](ForeignKeys::encoding).
    pub fn encoding_of(self, column: &Column) -> PyResult<Encoding> {
        let of = column.key_type();
        self.encoding(of, || {
            format!("a column of {}", if of == KeyType::Integer { "integers" } else { "strings" })
        })
    }

    /// Returns how the bytes of keys of a type are made.
    ///
    /// # Errors
    ///
    /// If the filter has no keys of this type, or the funnel is needed to know.
    fn encoding(self, of: KeyType, described: impl Fn() -> String) -> PyResult<Encoding> {
        let is_wide = !matches!(self.format, Format::Guava | Format::Sbbf);
        match (of, self.funnel) {
            (KeyType::String, None | Some(Funnel::Utf8 | Funnel::Bytes)) => Ok(Encoding::Plain),
            (KeyType::String, Some(Funnel::Unencoded)) => Ok(Encoding::Utf16),
            (KeyType::Integer, Some(Funnel::Long)) => Ok(Encoding::Long),
            (KeyType::Integer, Some(Funnel::Int)) if is_wide => Ok(Encoding::WidenedInt),
            (KeyType::Integer, Some(Funnel::Int)) => Ok(Encoding::Int),
            (KeyType::Integer, None) if matches!(self.format, Format::Dcso | Format::RedisBloom) => {
                Err(Exception::KeyType.with(format!(
                    "{} is not a key of the format {}, whose keys are text and bytes: pass str(item)",
                    described(),
                    self.format
                )))
            }
            // One type of integers in Java is 64 bits wide here.
            (KeyType::Integer, None) if is_wide => Ok(Encoding::Long),
            (KeyType::Integer, None) => Err(bad_parameter(
                "funnel",
                "None",
                "\"long\" or \"int\", as the format hashes integers of 64 and of 32 bits differently",
            )),
            (of, Some(funnel)) => {
                let needs = if of == KeyType::String { "integers" } else { "str or bytes" };
                Err(Exception::KeyType.with(format!(
                    "{} is not a key of this filter: with funnel={:?}, its keys are {needs}",
                    described(),
                    funnel.name()
                )))
            }
        }
    }

    /// Appends the bytes of an object.
    pub fn push(self, object: &Bound<'_, PyAny>, to: &mut Vec<u8>) -> PyResult<()> {
        let encoding = |of| self.encoding(of, || described(object));
        let pushed = if let Some(string) = string_of(object)? {
            let encoding = encoding(KeyType::String)?;
            string.with(|string| encoding.push_string(string, to))
        } else if let Some(integer) = integer_of(object)? {
            encoding(KeyType::Integer)?.push_integer(integer, to)
        } else {
            return Err(Exception::KeyType.with(format!(
                "{} is not a key of a filter of another library, whose keys are str, bytes and int",
                described(object)
            )));
        };
        pushed.map_err(raise)
    }

    /// Passes the keys of an iterable to `work` in chunks, which are in order.
    ///
    /// # Errors
    ///
    /// If an object is not a key, the iteration fails, or `work` does. All keys before have been passed on.
    pub fn for_each_chunk(
        self,
        objects: &Bound<'_, PyAny>,
        work: &mut dyn FnMut(&KeyBuffer) -> PyResult<()>,
    ) -> PyResult<()> {
        // Python code that yields objects may look at what has become of those before.
        let size = if is_plain_container(objects) { CHUNK } else { 1 };
        let mut keys = KeyBuffer::default();
        let mut pass_on = |keys: &mut KeyBuffer| {
            let passed = if keys.is_empty() { Ok(()) } else { work(keys) };
            keys.clear();
            passed
        };
        let pushed = for_each_object(objects, |object| {
            keys.push_with(|bytes| self.push(object, bytes))?;
            if keys.len() >= size { pass_on(&mut keys) } else { Ok(()) }
        });
        pass_on(&mut keys).and(pushed)
    }
}

impl Encoding {
    fn push_string(self, string: &[u8], to: &mut Vec<u8>) -> Result<()> {
        if self == Encoding::Utf16 {
            let text = std::str::from_utf8(string)
                .map_err(|_| Error::parameter("key", "bytes that are not UTF-8", "text"))?;
            to.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        } else {
            to.extend_from_slice(string);
        }
        Ok(())
    }

    /// Appends the bytes of an integer with or without a sign.
    fn push_integer(self, integer: i128, to: &mut Vec<u8>) -> Result<()> {
        let (bits, max) = match self {
            Encoding::Int => (32, u32::MAX.into()),
            Encoding::WidenedInt => (32, i32::MAX.into()),
            _ => (64, u64::MAX.into()),
        };
        if integer < -(1 << (bits - 1)) || integer > max {
            let needs = format!("an integer of {bits} bits for this funnel");
            return Err(Error::parameter("key", integer, needs));
        }
        let bytes = integer.to_le_bytes();
        to.extend_from_slice(&bytes[..if self == Encoding::Int { 4 } else { 8 }]);
        Ok(())
    }
}

/// The bytes of keys, one after the other.
pub struct KeyBuffer {
    bytes: Vec<u8>,
    offsets: Vec<u64>,
}

impl Default for KeyBuffer {
    fn default() -> KeyBuffer {
        KeyBuffer { bytes: Vec::new(), offsets: vec![0] }
    }
}

impl KeyBuffer {
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.offsets.truncate(1);
    }

    /// Appends a key, unless `push` fails.
    fn push_with<E>(&mut self, push: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let start = self.bytes.len();
        let pushed = push(&mut self.bytes);
        match pushed {
            Ok(()) => self.offsets.push(self.bytes.len() as u64),
            Err(_) => self.bytes.truncate(start),
        }
        pushed
    }

    /// Returns the keys as a batch.
    pub fn keys(&self) -> Result<Arena<'_, u64>> {
        Arena::new(&self.bytes, &self.offsets)
    }
}

impl Column {
    /// Returns the type of the keys.
    pub fn key_type(&self) -> KeyType {
        match self {
            Column::Numbers(_) => KeyType::Integer,
            Column::Arrow { values, .. } => match values {
                Values::Integers(_) | Values::Booleans(_) => KeyType::Integer,
                Values::Dictionary(values, _) => values.key_type(),
                _ => KeyType::String,
            },
        }
    }

    /// Passes the rows to `work` in batches, as the bytes that a filter of another library hashes. A
    /// row without a key is left out, or is an arbitrary key.
    pub fn for_each_foreign_batch(
        &self,
        encoding: Encoding,
        leave_out: bool,
        work: &mut impl Work,
    ) -> Result<()> {
        let nulls = self.nulls().filter(|nulls| nulls.null_count() > 0);
        let keeps_rows = nulls.is_none() || !leave_out;
        let whole = if encoding == Encoding::Plain && keeps_rows { self.run_text(work) } else { None };
        if let Some(done) = whole {
            return done;
        }
        if let (Encoding::Long, Column::Numbers(numbers)) = (encoding, self) {
            return work.run(numbers);
        }
        let is_integer = self.key_type() == KeyType::Integer;
        let mut keys = KeyBuffer::default();
        for row in 0..self.len() {
            let is_key = nulls.is_none_or(|nulls| nulls.is_valid(row));
            if is_key {
                self.with_bytes(row, &mut |key| {
                    keys.push_with(|bytes| match <[u8; 8]>::try_from(key) {
                        Ok(key) if is_integer => encoding.push_integer(i64::from_le_bytes(key).into(), bytes),
                        _ => encoding.push_string(key, bytes),
                    })
                })?;
            } else if !leave_out {
                keys.push_with(|_| Ok::<(), Error>(()))?;
            }
            if keys.len() == CHUNK || row + 1 == self.len() {
                work.run(&keys.keys()?)?;
                keys.clear();
            }
        }
        Ok(())
    }
}
