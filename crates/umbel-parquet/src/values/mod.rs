//! The values of a column: its type, and texts as the bytes that its filters hash.
//!
//! A filter hashes the plain encoding of a value: integers, dates and times in 4 or 8 bytes with the
//! lowest first, floats as IEEE 754 has them, and strings, decimals and UUIDs as their bytes without
//! a length. So the same text has other bytes in a column of another type, and [`ValueType::value`]
//! needs the type.
//!
//! # References
//!
//! - Parquet Bloom filters, <https://github.com/apache/parquet-format/blob/master/BloomFilter.md>.
//! - Parquet logical types, <https://github.com/apache/parquet-format/blob/master/LogicalTypes.md>.

mod names;
mod number;
mod text;
mod time;
mod uuid;

use crate::error::{Error, Result};
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::schema::types::ColumnDescriptor;
use std::fmt;
use umbel::foreign::sbbf;

/// The type of the values of a column: how a text is read, and in which bytes it is stored.
///
/// ```
/// use umbel_parquet::values::{Integer, ValueType};
///
/// let column = ValueType::Integer(Integer { bits: 16, signed: true });
/// assert_eq!(column.value(b"-2")?.bytes(), [0xfe, 0xff, 0xff, 0xff]);
/// let error = column.value(b"40000").unwrap_err();
/// assert_eq!(error.to_string(), "\"40000\" is not a value of int16: it needs a whole number from -32768 to 32767");
/// # Ok::<(), umbel_parquet::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ValueType {
    /// A truth value. Columns of these have no filters.
    Boolean,
    /// A whole number.
    Integer(Integer),
    /// A number with a fixed count of decimals.
    Decimal(Decimal),
    /// A floating-point number of 16 bits.
    Float16,
    /// A floating-point number of 32 bits.
    Float32,
    /// A floating-point number of 64 bits.
    Float64,
    /// A day.
    Date,
    /// A time of day.
    Time(Clock),
    /// A day and a time of day.
    Timestamp(Clock),
    /// A timestamp in the 96 bits of older writers: nanoseconds of a day and a Julian day.
    Timestamp96,
    /// Text in UTF-8.
    Text,
    /// Bytes.
    Bytes,
    /// This number of bytes.
    FixedBytes(usize),
    /// A UUID.
    Uuid,
    /// A type whose values have no text, by its name.
    Other(String),
}

/// The range of whole numbers. Numbers of up to 32 bits are stored in 4 bytes, others in 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Integer {
    /// The number of bits: 8, 16, 32 or 64.
    pub bits: u8,
    /// Whether there are negative numbers.
    pub signed: bool,
}

/// Numbers with a fixed count of decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// The maximum number of digits.
    pub precision: u32,
    /// The number of decimals.
    pub scale: u32,
    /// The bytes in which a number is stored.
    pub storage: DecimalStorage,
}

/// The bytes of a decimal, without its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecimalStorage {
    /// 4 bytes, the lowest first.
    Int32,
    /// 8 bytes, the lowest first.
    Int64,
    /// This number of bytes, the highest first.
    Fixed(usize),
    /// As few bytes as the number needs, the highest first.
    Shortest,
}

/// The unit of times, and whether they are in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Clock {
    /// The smallest difference between two times.
    pub unit: Unit,
    /// Whether times are instants in UTC, rather than what a clock on a wall shows.
    pub utc: bool,
}

/// The unit of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Unit {
    Millis,
    Micros,
    Nanos,
}

impl Unit {
    /// Returns the number of decimals of a second in this unit.
    pub fn decimals(self) -> u32 {
        match self {
            Unit::Millis => 3,
            Unit::Micros => 6,
            Unit::Nanos => 9,
        }
    }
}

/// A value as it is stored in a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    bytes: Vec<u8>,
    /// The other encoding of an equal value: zero is equal to the negative zero.
    other: Option<Vec<u8>>,
}

impl Value {
    fn new(bytes: impl Into<Vec<u8>>) -> Value {
        Value { bytes: bytes.into(), other: None }
    }

    /// Returns the bytes that a filter hashes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the encodings of values that are equal to this one: for a zero with a sign, two.
    pub fn encodings(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&self.bytes[..]).chain(self.other.as_deref())
    }

    /// Returns the hash of the value, and for a zero with a sign that of the other zero.
    pub fn hashes(&self) -> (u64, Option<u64>) {
        (sbbf::hash(&self.bytes), self.other.as_deref().map(sbbf::hash))
    }
}

impl ValueType {
    /// Returns the type of a column.
    pub(crate) fn of_column(column: &ColumnDescriptor) -> ValueType {
        let physical = column.physical_type();
        if let Some(logical) = column.logical_type_ref() {
            return match logical {
                LogicalType::String | LogicalType::Enum | LogicalType::Json => ValueType::Text,
                LogicalType::Decimal(_) => decimal(column),
                LogicalType::Date => ValueType::Date,
                LogicalType::Time(time) => ValueType::Time(clock(time.unit, time.is_adjusted_to_u_t_c)),
                LogicalType::Timestamp(time) => {
                    ValueType::Timestamp(clock(time.unit, time.is_adjusted_to_u_t_c))
                }
                LogicalType::Integer(int) => integer(int.bit_width.unsigned_abs(), int.is_signed),
                LogicalType::Uuid => ValueType::Uuid,
                LogicalType::Float16 => ValueType::Float16,
                LogicalType::Bson => ValueType::Bytes,
                LogicalType::_Unknown { .. } => plain(column),
                other => ValueType::Other(format!("{other:?}").to_lowercase()),
            };
        }
        match column.converted_type() {
            ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON => ValueType::Text,
            ConvertedType::DECIMAL => decimal(column),
            ConvertedType::DATE => ValueType::Date,
            ConvertedType::TIME_MILLIS => ValueType::Time(clock(TimeUnit::MILLIS, true)),
            ConvertedType::TIME_MICROS => ValueType::Time(clock(TimeUnit::MICROS, true)),
            ConvertedType::TIMESTAMP_MILLIS => ValueType::Timestamp(clock(TimeUnit::MILLIS, true)),
            ConvertedType::TIMESTAMP_MICROS => ValueType::Timestamp(clock(TimeUnit::MICROS, true)),
            ConvertedType::INT_8 => integer(8, true),
            ConvertedType::INT_16 => integer(16, true),
            ConvertedType::INT_32 => integer(32, true),
            ConvertedType::INT_64 => integer(64, true),
            ConvertedType::UINT_8 => integer(8, false),
            ConvertedType::UINT_16 => integer(16, false),
            ConvertedType::UINT_32 => integer(32, false),
            ConvertedType::UINT_64 => integer(64, false),
            ConvertedType::INTERVAL => ValueType::Other("interval".to_string()),
            _ if physical == Type::INT96 => ValueType::Timestamp96,
            _ => plain(column),
        }
    }

    /// Returns the value that a text stands for.
    ///
    /// # Errors
    ///
    /// Fails if no value of this type is equal to the text, such as `1.5` for a whole number, or
    /// 2024-02-30 for a day; and for types whose values have no text.
    pub fn value(&self, text: &[u8]) -> Result<Value> {
        self.read(text).map_err(|needs| {
            let text: String = String::from_utf8_lossy(text).chars().take(100).collect();
            Error::NotAValue { text, needs: format!("is not a value of {self}: it needs {needs}") }
        })
    }

    /// Reads a value. The error completes "it needs".
    fn read(&self, bytes: &[u8]) -> Result<Value, String> {
        let text = str::from_utf8(bytes).map_err(|_| "text in UTF-8");
        Ok(match self {
            ValueType::Boolean => {
                return Err("a column of another type, since truth values have no filters".into());
            }
            ValueType::Other(_) => {
                return Err("a column of another type, since its values have no text".into());
            }
            ValueType::Bytes => Value::new(bytes),
            ValueType::FixedBytes(length) if bytes.len() == *length => Value::new(bytes),
            ValueType::FixedBytes(length) => return Err(format!("{length} bytes")),
            ValueType::Text => Value::new(text?),
            ValueType::Integer(integer) => Value::new(integer.read(text?)?),
            ValueType::Decimal(decimal) => Value::new(decimal.read(text?)?),
            ValueType::Float16 => number::float16(text?)?,
            ValueType::Float32 => number::float32(text?)?,
            ValueType::Float64 => number::float64(text?)?,
            ValueType::Date => Value::new(time::date(text?)?),
            ValueType::Time(clock) => Value::new(time::time(text?, *clock)?),
            ValueType::Timestamp(clock) => Value::new(time::timestamp(text?, *clock)?),
            ValueType::Timestamp96 => Value::new(time::timestamp96(text?)?),
            ValueType::Uuid => Value::new(uuid::read(text?)?),
        })
    }
}

/// Prints a type in the words of its users: `int16`, `decimal(9, 2)`, `timestamp in milliseconds`.
impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueType::Boolean => f.write_str("boolean"),
            ValueType::Integer(Integer { bits, signed: true }) => write!(f, "int{bits}"),
            ValueType::Integer(Integer { bits, signed: false }) => write!(f, "uint{bits}"),
            ValueType::Decimal(Decimal { precision, scale, .. }) => {
                write!(f, "decimal({precision}, {scale})")
            }
            ValueType::Float16 => f.write_str("float16"),
            ValueType::Float32 => f.write_str("float"),
            ValueType::Float64 => f.write_str("double"),
            ValueType::Date => f.write_str("date"),
            ValueType::Time(clock) => write!(f, "time{clock}"),
            ValueType::Timestamp(clock) => write!(f, "timestamp{clock}"),
            ValueType::Timestamp96 => f.write_str("timestamp in nanoseconds"),
            ValueType::Text => f.write_str("string"),
            ValueType::Bytes => f.write_str("binary"),
            ValueType::FixedBytes(length) => write!(f, "binary({length})"),
            ValueType::Uuid => f.write_str("UUID"),
            ValueType::Other(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.unit {
            Unit::Millis => " in milliseconds",
            Unit::Micros => " in microseconds",
            Unit::Nanos => " in nanoseconds",
        })?;
        f.write_str(if self.utc { " of UTC" } else { "" })
    }
}

/// Returns the type of a column without an annotation.
fn plain(column: &ColumnDescriptor) -> ValueType {
    match column.physical_type() {
        Type::BOOLEAN => ValueType::Boolean,
        Type::INT32 => integer(32, true),
        Type::INT64 => integer(64, true),
        Type::INT96 => ValueType::Timestamp96,
        Type::FLOAT => ValueType::Float32,
        Type::DOUBLE => ValueType::Float64,
        Type::BYTE_ARRAY => ValueType::Bytes,
        Type::FIXED_LEN_BYTE_ARRAY => ValueType::FixedBytes(length(column)),
    }
}

fn integer(bits: u8, signed: bool) -> ValueType {
    ValueType::Integer(Integer { bits, signed })
}

fn clock(unit: TimeUnit, utc: bool) -> Clock {
    let unit = match unit {
        TimeUnit::MILLIS => Unit::Millis,
        TimeUnit::MICROS => Unit::Micros,
        TimeUnit::NANOS => Unit::Nanos,
    };
    Clock { unit, utc }
}

fn decimal(column: &ColumnDescriptor) -> ValueType {
    let storage = match column.physical_type() {
        Type::INT32 => DecimalStorage::Int32,
        Type::INT64 => DecimalStorage::Int64,
        Type::FIXED_LEN_BYTE_ARRAY => DecimalStorage::Fixed(length(column)),
        Type::BYTE_ARRAY => DecimalStorage::Shortest,
        _ => return plain(column),
    };
    let digits = |number: i32| u32::try_from(number).unwrap_or(0);
    let (precision, scale) = (digits(column.type_precision()), digits(column.type_scale()));
    ValueType::Decimal(Decimal { precision, scale, storage })
}

/// Returns the number of bytes of a value of fixed length.
fn length(column: &ColumnDescriptor) -> usize {
    usize::try_from(column.type_length()).unwrap_or(0)
}
