//! Whole numbers, decimals and floating-point numbers.

use super::{Decimal, DecimalStorage, Integer, Value};
use half::f16;
use std::str::FromStr;

impl Integer {
    /// Returns the smallest and the largest number.
    fn range(self) -> (i128, i128) {
        match self.signed {
            true => (-1 << (self.bits - 1), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        }
    }

    /// Reads a whole number.
    pub(super) fn read(self, text: &str) -> Result<Vec<u8>, String> {
        let (least, most) = self.range();
        let number = text.parse().ok().filter(|number: &i128| (least..=most).contains(number));
        let number = number.ok_or_else(|| format!("a whole number from {least} to {most}"))?;
        // Numbers beyond the sign bit of an unsigned type are stored as the same bits.
        Ok(match self.bits {
            64 => (number as i64).to_le_bytes().to_vec(),
            _ => (number as i32).to_le_bytes().to_vec(),
        })
    }
}

impl Decimal {
    /// Reads a decimal such as -12.34.
    pub(super) fn read(self, text: &str) -> Result<Vec<u8>, String> {
        self.digits(text).and_then(|(digits, negative)| self.store(&digits, negative)).ok_or_else(|| {
            let (digits, decimals) = (self.precision, self.scale);
            format!("a number such as -12.34, of at most {digits} digits, {decimals} of them after the point")
        })
    }

    /// Returns the digits of a number without its point, and whether it is negative. Zeros beyond
    /// the decimals of the column do not change it.
    fn digits(self, text: &str) -> Option<(Vec<u8>, bool)> {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        let scale = self.scale as usize;
        if fraction.len() > scale || whole.len() + scale > (self.precision as usize).max(scale) {
            return None;
        }
        let zeros = std::iter::repeat_n(0, scale - fraction.len());
        let digits = whole.bytes().chain(fraction.bytes()).map(|digit| digit - b'0').chain(zeros);
        Some((digits.collect(), text.starts_with('-')))
    }

    /// Returns a number as it is stored, if it fits.
    fn store(self, digits: &[u8], negative: bool) -> Option<Vec<u8>> {
        // The two's complement with the highest byte first, and a byte for the sign. A digit takes
        // less than half a byte.
        let mut bytes = vec![0_u8; digits.len() / 2 + 2];
        for digit in digits {
            let mut carry = u32::from(*digit);
            for byte in bytes.iter_mut().rev() {
                carry += 10 * u32::from(*byte);
                *byte = carry as u8;
                carry >>= 8;
            }
        }
        if negative {
            let mut carry = true;
            for byte in bytes.iter_mut().rev() {
                (*byte, carry) = (!*byte).overflowing_add(carry.into());
            }
        }
        // Drop the bytes that only repeat the sign.
        let sign = if bytes[0] >= 0x80 { 0xff } else { 0 };
        let start = (0..bytes.len() - 1).take_while(|at| bytes[*at] == sign && (bytes[at + 1] ^ sign) < 0x80);
        let shortest = bytes.split_off(start.count());
        let extended = |length: usize| {
            let missing = length.checked_sub(shortest.len())?;
            Some([vec![sign; missing], shortest.clone()].concat())
        };
        match self.storage {
            DecimalStorage::Shortest => Some(shortest),
            DecimalStorage::Fixed(length) => extended(length),
            DecimalStorage::Int32 => extended(4).map(reversed),
            DecimalStorage::Int64 => extended(8).map(reversed),
        }
    }
}

fn reversed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.reverse();
    bytes
}

/// Reads a floating-point number of 16 bits: the nearest one, as a program does.
pub fn float16(text: &str) -> Result<Value, String> {
    let number = f16::from_f64(parse(text, |number: &f64| number.is_nan())?);
    float(text, number.to_le_bytes(), number.is_infinite())
}

/// Reads a floating-point number of 32 bits: the nearest one, as a program does.
pub fn float32(text: &str) -> Result<Value, String> {
    let number = parse(text, |number: &f32| number.is_nan())?;
    float(text, number.to_le_bytes(), number.is_infinite())
}

/// Reads a floating-point number of 64 bits: the nearest one, as a program does.
pub fn float64(text: &str) -> Result<Value, String> {
    let number = parse(text, |number: &f64| number.is_nan())?;
    float(text, number.to_le_bytes(), number.is_infinite())
}

/// Parses a number. NaN is refused: it has many encodings, of which a filter knows those that were
/// stored.
fn parse<T: FromStr>(text: &str, is_nan: impl Fn(&T) -> bool) -> Result<T, String> {
    text.parse()
        .ok()
        .filter(|number| !is_nan(number))
        .ok_or_else(|| "a number such as -1.5, 2e-7 or inf".to_string())
}

/// Returns the value of a number. The two zeros are equal, but stored as different bytes.
fn float<const N: usize>(text: &str, bytes: [u8; N], is_infinite: bool) -> Result<Value, String> {
    if is_infinite && text.bytes().any(|byte| byte.is_ascii_digit()) {
        return Err("a number that is not beyond its range".to_string());
    }
    let mut zeros = [0; N];
    let positive = zeros.to_vec();
    zeros[N - 1] = 0x80;
    Ok(match bytes.to_vec() {
        bytes if bytes == positive || bytes == zeros => {
            Value { bytes: positive, other: Some(zeros.to_vec()) }
        }
        bytes => Value::new(bytes),
    })
}
