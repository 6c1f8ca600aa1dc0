//! Values as texts, which [`ValueType::value`](super::ValueType::value) reads again.
//!
//! A text does not depend on the bytes in which a column stores its values: a timestamp has as many
//! decimals as it needs in any unit, and an integer the same digits in any width.

use super::{Clock, Decimal, DecimalStorage, Integer, Unit, ValueType};
use half::f16;
use std::io::Write;

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const SECONDS_PER_DAY: i128 = 86400;

/// The Julian day of January 1, 1970.
const JULIAN_DAY_OF_1970: i64 = 2_440_588;

impl ValueType {
    /// Appends the text of a value, or returns `None` if values of this type have no text, or this
    /// is not one: truth values, intervals and nested types.
    ///
    /// Whole numbers and decimals have their digits, days and times are those of ISO 8601, UUIDs have
    /// hyphens, and text and bytes are as they are. Floating-point numbers have as few digits as tell
    /// them from others.
    ///
    /// ```
    /// use umbel_parquet::values::ValueType;
    ///
    /// let mut text = Vec::new();
    /// ValueType::Date.write_text(&19782_i32.to_le_bytes(), &mut text);
    /// assert_eq!(text, b"2024-02-29");
    /// assert_eq!(ValueType::Date.value(&text)?.bytes(), 19782_i32.to_le_bytes());
    /// # Ok::<(), umbel_parquet::Error>(())
    /// ```
    pub fn write_text(&self, value: &[u8], text: &mut Vec<u8>) -> Option<()> {
        match self {
            ValueType::Text | ValueType::Bytes | ValueType::FixedBytes(_) => text.extend_from_slice(value),
            ValueType::Boolean | ValueType::Other(_) => return None,
            ValueType::Integer(integer) => integer.write(value, text)?,
            ValueType::Decimal(decimal) => decimal.write(value, text),
            ValueType::Float16 => float(f16::from_le_bytes(value.try_into().ok()?).to_f32(), text),
            ValueType::Float32 => float(f32::from_le_bytes(value.try_into().ok()?), text),
            ValueType::Float64 => float(f64::from_le_bytes(value.try_into().ok()?), text),
            ValueType::Date => date(i32::from_le_bytes(value.try_into().ok()?).into(), text),
            ValueType::Time(clock) => {
                let number = signed(value)?;
                time(number * clock.nanos(), text);
                if clock.utc {
                    text.push(b'Z');
                }
            }
            ValueType::Timestamp(clock) => timestamp(signed(value)? * clock.nanos(), clock.utc, text),
            ValueType::Timestamp96 => {
                let (nanos, day) = value.split_first_chunk()?;
                let day = i64::from(i32::from_le_bytes(day.try_into().ok()?)) - JULIAN_DAY_OF_1970;
                let nanos = i128::from(i64::from_le_bytes(*nanos));
                timestamp(i128::from(day) * SECONDS_PER_DAY * NANOS_PER_SECOND + nanos, false, text);
            }
            ValueType::Uuid => {
                for (at, byte) in <&[u8; 16]>::try_from(value).ok()?.iter().enumerate() {
                    if [4, 6, 8, 10].contains(&at) {
                        text.push(b'-');
                    }
                    put(text, format_args!("{byte:02x}"));
                }
            }
        }
        Some(())
    }
}

/// Appends to memory, which cannot fail.
fn put(text: &mut Vec<u8>, what: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(what);
}

fn float(number: impl std::fmt::Debug, text: &mut Vec<u8>) {
    put(text, format_args!("{number:?}"));
}

/// Returns a number of 4 or 8 bytes.
fn signed(value: &[u8]) -> Option<i128> {
    match value.len() {
        4 => Some(i32::from_le_bytes(value.try_into().ok()?).into()),
        8 => Some(i64::from_le_bytes(value.try_into().ok()?).into()),
        _ => None,
    }
}

impl Integer {
    fn write(self, value: &[u8], text: &mut Vec<u8>) -> Option<()> {
        let number = signed(value)?;
        // Numbers beyond the sign bit of an unsigned type are stored as the same bits.
        let bits = 8 * value.len() as u32;
        let number = if self.signed { number } else { number.rem_euclid(1 << bits) };
        put(text, format_args!("{number}"));
        Some(())
    }
}

impl Decimal {
    fn write(self, value: &[u8], text: &mut Vec<u8>) {
        let mut bytes = value.to_vec();
        if matches!(self.storage, DecimalStorage::Int32 | DecimalStorage::Int64) {
            bytes.reverse();
        }
        let negative = bytes.first().is_some_and(|first| *first >= 0x80);
        if negative {
            let mut carry = true;
            for byte in bytes.iter_mut().rev() {
                (*byte, carry) = (!*byte).overflowing_add(carry.into());
            }
            text.push(b'-');
        }
        let digits = digits(&bytes);
        let scale = self.scale as usize;
        let digits = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        text.extend_from_slice(whole.as_bytes());
        if scale > 0 {
            put(text, format_args!(".{fraction}"));
        }
    }
}

/// Returns the digits of a number whose highest byte comes first.
fn digits(bytes: &[u8]) -> String {
    let start = bytes.iter().take_while(|byte| **byte == 0).count();
    let mut bytes = bytes[start..].to_vec();
    if bytes.len() <= 16 {
        return bytes.iter().fold(0_u128, |number, byte| number << 8 | u128::from(*byte)).to_string();
    }
    // Divide by ten, and keep the remainders.
    let mut digits = Vec::new();
    while bytes.iter().any(|byte| *byte > 0) {
        let mut rest = 0;
        for byte in &mut bytes {
            let number = rest << 8 | u32::from(*byte);
            (*byte, rest) = ((number / 10) as u8, number % 10);
        }
        digits.push(b'0' + rest as u8);
    }
    digits.reverse();
    String::from_utf8_lossy(&digits).into_owned()
}

impl Clock {
    /// Returns the nanoseconds of a unit.
    fn nanos(self) -> i128 {
        match self.unit {
            Unit::Millis => 1_000_000,
            Unit::Micros => 1000,
            Unit::Nanos => 1,
        }
    }
}

fn timestamp(nanos: i128, utc: bool, text: &mut Vec<u8>) {
    let nanos_per_day = SECONDS_PER_DAY * NANOS_PER_SECOND;
    date(nanos.div_euclid(nanos_per_day) as i64, text);
    text.push(b'T');
    time(nanos.rem_euclid(nanos_per_day), text);
    if utc {
        text.push(b'Z');
    }
}

/// Appends a time of day, with as many decimals as it needs.
fn time(nanos: i128, text: &mut Vec<u8>) {
    let (seconds, nanos) = (nanos.div_euclid(NANOS_PER_SECOND), nanos.rem_euclid(NANOS_PER_SECOND));
    put(text, format_args!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60));
    if nanos > 0 {
        let fraction = format!("{nanos:09}");
        put(text, format_args!(".{}", fraction.trim_end_matches('0')));
    }
}

/// Appends the day that is this many days after January 1, 1970. Years beyond 9999 and before 0 have
/// a sign.
///
/// # References
///
/// - H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", 2013.
fn date(days: i64, text: &mut Vec<u8>) {
    const DAYS_PER_ERA: i64 = 146_097;
    // Years that begin in March, so that the day that only some years have is the last one.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
    let year = (day - day / 1460 + day / 36524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + 400 * era + i64::from(month <= 2);
    match year {
        0..=9999 => put(text, format_args!("{year:04}-{month:02}-{day:02}")),
        _ => put(text, format_args!("{year:+05}-{month:02}-{day:02}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(value_type: &ValueType, value: &[u8]) -> String {
        let mut text = Vec::new();
        value_type.write_text(value, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn clocks() -> impl Strategy<Value = Clock> {
        let units = prop_oneof![Just(Unit::Millis), Just(Unit::Micros), Just(Unit::Nanos)];
        (units, any::<bool>()).prop_map(|(unit, utc)| Clock { unit, utc })
    }

    proptest! {
        /// What is printed is read as the same bytes.
        #[test]
        fn texts_are_read_as_their_values(number: i64, small: i32, bits: [u8; 16], clock in clocks(), scale in 0u32..=9, float: f64) {
            let four = small.to_le_bytes().to_vec();
            let eight = number.to_le_bytes().to_vec();
            let integer = |bits, signed| ValueType::Integer(Integer { bits, signed });
            let decimal = |precision, scale, storage| ValueType::Decimal(Decimal { precision, scale, storage });
            let mut cases = vec![
                (integer(32, true), four.clone()),
                (integer(32, false), four.clone()),
                (integer(64, true), eight.clone()),
                (integer(64, false), eight.clone()),
                (decimal(10, scale, DecimalStorage::Int32), four.clone()),
                (decimal(19, scale, DecimalStorage::Int64), eight.clone()),
                (decimal(39, 4 * scale, DecimalStorage::Fixed(16)), bits.to_vec()),
                (ValueType::Uuid, bits.to_vec()),
                (ValueType::Float64, float.to_le_bytes().to_vec()),
                (ValueType::Date, (small / 100).to_le_bytes().to_vec()),
                (ValueType::Text, text(&ValueType::Date, &four).into_bytes()),
            ];
            if clock.unit != Unit::Millis {
                cases.push((ValueType::Timestamp(clock), (number / 1000).to_le_bytes().to_vec()));
                let day = (86_400 * i128::from(NANOS_PER_SECOND as i64) / clock.nanos()) as i64;
                cases.push((ValueType::Time(clock), number.rem_euclid(day).to_le_bytes().to_vec()));
            }
            for (value_type, value) in cases {
                let text = text(&value_type, &value);
                let read = value_type.value(text.as_bytes()).unwrap();
                let is_read = read.encodings().any(|bytes| bytes == value);
                prop_assert!(is_read, "{} of {}: {:?} is not {:?}", text, value_type, read, value);
            }
        }
    }

    #[test]
    fn values_have_one_text_whatever_their_bytes() {
        let decimal = |storage| ValueType::Decimal(Decimal { precision: 9, scale: 2, storage });
        assert_eq!(text(&decimal(DecimalStorage::Int32), &(-1234_i32).to_le_bytes()), "-12.34");
        assert_eq!(text(&decimal(DecimalStorage::Shortest), &[0xfb, 0x2e]), "-12.34");
        assert_eq!(text(&decimal(DecimalStorage::Fixed(5)), &[0, 0, 0, 0, 5]), "0.05");
        let wide =
            ValueType::Decimal(Decimal { precision: 76, scale: 0, storage: DecimalStorage::Fixed(32) });
        let mut bytes = [0; 32];
        bytes[15] = 1;
        assert_eq!(
            text(&wide, &bytes),
            (1_u128 << 127).checked_mul(1).map(|_| "340282366920938463463374607431768211456").unwrap()
        );
        let clock = |unit, utc| ValueType::Timestamp(Clock { unit, utc });
        assert_eq!(text(&clock(Unit::Millis, false), &1500_i64.to_le_bytes()), "1970-01-01T00:00:01.5");
        assert_eq!(text(&clock(Unit::Micros, true), &(-1_i64).to_le_bytes()), "1969-12-31T23:59:59.999999Z");
        assert_eq!(text(&ValueType::Date, &11016_i32.to_le_bytes()), "2000-02-29");
        assert_eq!(text(&ValueType::Date, &(-719_529_i32).to_le_bytes()), "-0001-12-31");
        assert_eq!(text(&ValueType::Date, &2_932_897_i32.to_le_bytes()), "+10000-01-01");
        assert_eq!(text(&ValueType::Float64, &0.1_f64.to_le_bytes()), "0.1");
        assert_eq!(text(&ValueType::Float32, &1e30_f32.to_le_bytes()), "1e30");
        let unsigned = ValueType::Integer(Integer { bits: 8, signed: false });
        assert_eq!(text(&unsigned, &200_i32.to_le_bytes()), "200");
        assert_eq!(ValueType::Date.write_text(b"no", &mut Vec::new()), None);
        assert_eq!(ValueType::Boolean.write_text(&[1], &mut Vec::new()), None);
    }
}
