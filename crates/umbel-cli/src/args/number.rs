//! Numbers as people write them: `1e6`, `10M`, `1%`, `1/1000`, `64MiB`.
//!
//! Counts and sizes are computed in whole numbers, so that `1.5M` is exactly 1 500 000 and `1.5`
//! alone is refused.

use std::ops::Range;
use std::time::Duration;
use umbel::aging::Window;

/// Parses a count: `1000`, `1_000`, `1e6`, `10M`, `1.5k`, `64Ki`.
pub fn count(text: &str) -> Result<u64, String> {
    parse(text, Unit::None).map(|(value, _)| value)
}

/// Parses a number of bytes: `64MiB`, `64M` and `64MB` (a million each), `4096`.
pub fn bytes(text: &str) -> Result<u64, String> {
    parse(text, Unit::Bytes).map(|(value, _)| value)
}

/// Parses the length of a line in bytes, from 1 to 2 GiB: positions in lines are 32-bit numbers.
pub fn line_bytes(text: &str) -> Result<usize, String> {
    match bytes(text)? {
        length @ 1..=0x8000_0000 => Ok(length as usize),
        _ => Err("from 1 to 2GiB".to_string()),
    }
}

/// Parses a number of bits, `1e6`, or of bytes with a unit, `64MiB`.
pub fn bits(text: &str) -> Result<u64, String> {
    match parse(text, Unit::Bytes)? {
        (value, Unit::None) => Ok(value),
        (value, Unit::Bytes) => value.checked_mul(8).ok_or_else(|| too_large(text)),
    }
}

/// Parses a rate: `0.01`, `1%`, `1/1000`, `1e-6`.
pub fn rate(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    let value = if let Some(percent) = text.strip_suffix('%') {
        number(percent).map(|value| value / 100.0)
    } else if let Some((of, all)) = text.split_once('/') {
        number(of).zip(number(all)).map(|(of, all)| of / all)
    } else {
        number(text)
    };
    let value = value.ok_or("not a rate: write it as 0.01, 1%, 1/100 or 1e-2")?;
    if value > 0.0 && value < 1.0 {
        return Ok(value);
    }
    let hint =
        if value > 1.0 && value < 100.0 { format!("; {value}% is {}", value / 100.0) } else { String::new() };
    Err(format!("a rate lies between 0 and 1{hint}"))
}

/// Parses the window of an aging filter: keys, `1e6`, `10M`; or a time, `500ms`, `30s`, `10m`,
/// `2h`, `7d`.
pub fn window(text: &str) -> Result<Window, String> {
    const UNITS: [(&str, f64); 5] = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];
    let wrong =
        || "not a window: write it as 1e6 or 10M keys, or as a time, 500ms, 30s, 10m, 2h or 7d".to_string();
    let nothing = || "in a window of nothing, nothing is remembered: write it as 1e6 or 10m".to_string();
    for (unit, seconds) in UNITS {
        // Only a number before the unit makes a time.
        let Some(number) = text.strip_suffix(unit).and_then(|number| number.parse::<f64>().ok()) else {
            continue;
        };
        return match Duration::try_from_secs_f64(number * seconds) {
            Ok(Duration::ZERO) => Err(nothing()),
            time => time.map(Window::Time).map_err(|_| wrong()),
        };
    }
    match count(text) {
        Ok(0) => Err(nothing()),
        keys => keys.map(Window::Keys).map_err(|_| wrong()),
    }
}

/// Parses a time: `500ms`, `30s`, `10m`, `2h`, `7d`; without a unit, seconds.
pub fn time(text: &str) -> Result<Duration, String> {
    match window(text) {
        Ok(Window::Time(time)) => Ok(time),
        Ok(Window::Keys(seconds)) => Ok(Duration::from_secs(seconds)),
        _ => Err("not a time above 0: write it as 500ms, 30s, 10m, 2h or 7d".to_string()),
    }
}

/// Parses a time to wait: `30s`, `10m`, or `0` for not at all.
pub fn wait(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { time(text) }
}

/// Parses one of the increments of a list.
pub fn increment(text: &str) -> Result<u32, String> {
    let wrong =
        "not an increment: write a list of whole numbers with commas between them, such as 8,12,14,15";
    text.trim().parse().map_err(|_| wrong.to_string())
}

/// Parses a range of numbers, `0-15`, or a single one, `7`.
pub fn range(text: &str) -> Result<Range<usize>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.parse().ok().filter(|number: &usize| *number < usize::MAX);
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..last + 1),
        _ => Err("not a range of numbers: write it as 0-15, or as 7".to_string()),
    }
}

/// Parses a number of threads, from 1 to 1024.
pub fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=1024) => Ok(threads),
        _ => Err("from 1 to 1024".to_string()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    None,
    Bytes,
}

/// Parses a number and its unit, which must be `unit` if there is one.
fn parse(text: &str, unit: Unit) -> Result<(u64, Unit), String> {
    let wrong = || {
        let examples = if unit == Unit::Bytes { "4096, 64MiB or 1.5G" } else { "1000, 1e6, 10M or 1.5k" };
        let problem = match text.strip_prefix('-') {
            Some(rest) if rest.starts_with(|first: char| first.is_ascii_digit()) => "a number below 0",
            _ => "not a number",
        };
        format!("{problem}: write it as {examples}")
    };
    let (text, found) = match text.strip_suffix('B') {
        Some(rest) if unit == Unit::Bytes => (rest, Unit::Bytes),
        _ => (text, Unit::None),
    };
    let (text, binary) = text.strip_suffix('i').map_or((text, false), |rest| (rest, true));
    let thousands = match text.chars().last() {
        Some('k' | 'K') => 1,
        Some('M' | 'm') => 2,
        Some('G' | 'g') => 3,
        Some('T' | 't') => 4,
        Some('P' | 'p') => 5,
        _ => 0,
    };
    if binary && thousands == 0 {
        return Err(wrong());
    }
    let digits = if thousands > 0 { &text[..text.len() - 1] } else { text };
    let scale = if binary { 1024u128 } else { 1000 }.pow(thousands);
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| wrong())?),
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut value = 0u128;
    let mut any = false;
    for digit in whole.chars().chain(fraction.chars()).filter(|c| *c != '_') {
        let digit = digit.to_digit(10).ok_or_else(wrong)?;
        any = true;
        value = value
            .checked_mul(10)
            .and_then(|value| value.checked_add(digit.into()))
            .ok_or_else(|| too_large(text))?;
    }
    if !any {
        return Err(wrong());
    }
    let exponent = exponent.saturating_sub(fraction.chars().filter(|c| *c != '_').count() as i32);
    let power = 10u128.checked_pow(exponent.unsigned_abs()).filter(|_| exponent.unsigned_abs() < 38);
    let value = value.checked_mul(scale).ok_or_else(|| too_large(text))?;
    let value = match (power, exponent >= 0) {
        _ if value == 0 => 0,
        (Some(power), true) => value.checked_mul(power).ok_or_else(|| too_large(text))?,
        (Some(power), false) if value.is_multiple_of(power) => value / power,
        (None, true) => return Err(too_large(text)),
        _ => return Err("not a whole number".to_string()),
    };
    u64::try_from(value).map(|value| (value, found)).map_err(|_| too_large(text))
}

fn too_large(text: &str) -> String {
    format!("{text} is too large: the most is {}", u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_exact_in_every_form() {
        for (text, value) in [
            ("0", 0),
            ("58110", 58_110),
            ("1e6", 1_000_000),
            ("1E6", 1_000_000),
            ("1.5e3", 1500),
            ("10M", 10_000_000),
            ("1.5M", 1_500_000),
            ("2k", 2000),
            ("2K", 2000),
            ("3Gi", 3 << 30),
            ("1_000_000", 1_000_000),
            ("0.1k", 100),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(count(text), Ok(value), "{text}");
        }
        for text in ["", "M", "-1", "1.5", "1e-3", "x", "1e6e", "1 000", "10MB", "1e", ".", "i", "5i", "+3"] {
            assert!(count(text).is_err(), "{text}");
        }
        assert!(count("-5").unwrap_err().starts_with("a number below 0"));
        for text in ["18446744073709551616", "1e20", "1e999999999", "99999P", "1e40k"] {
            assert!(count(text).unwrap_err().contains("too large"), "{text}");
        }
    }

    #[test]
    fn sizes_are_bits_or_bytes() {
        assert_eq!(bytes("64MiB"), Ok(64 << 20));
        assert_eq!(bytes("64MB"), Ok(64_000_000));
        assert_eq!(bytes("64M"), Ok(64_000_000));
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("512B"), Ok(512));
        assert_eq!(bits("1e6"), Ok(1_000_000));
        assert_eq!(bits("1MiB"), Ok(8 << 20));
        assert_eq!(bits("1Mi"), Ok(1 << 20));
        assert!(bits("18446744073709551615B").is_err() && bytes("64 MiB").is_err());
    }

    #[test]
    fn windows_are_keys_or_times() {
        let time = |millis| Ok(Window::Time(Duration::from_millis(millis)));
        assert_eq!(window("10m"), time(600_000));
        assert_eq!(window("1.5h"), time(5_400_000));
        assert_eq!(
            (window("250ms"), window("30s"), window("7d")),
            (time(250), time(30_000), time(604_800_000))
        );
        assert_eq!(window("1e6"), Ok(Window::Keys(1_000_000)));
        assert_eq!((window("10M"), window("500")), (Ok(Window::Keys(10_000_000)), Ok(Window::Keys(500))));
        for text in ["", "m", "-5s", "infs", "nanm", "10x", "1e300d"] {
            assert!(window(text).unwrap_err().contains("not a window"), "{text}");
        }
        for text in ["0", "0s", "0d"] {
            assert!(window(text).unwrap_err().contains("a window of nothing"), "{text}");
        }
    }

    #[test]
    fn ranges_include_both_ends() {
        assert_eq!((range("0-15"), range("7"), range("3-3")), (Ok(0..16), Ok(7..8), Ok(3..4)));
        for text in ["", "-", "5-", "-5", "5-4", "1-2-3", "a", "0-18446744073709551615"] {
            assert!(range(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_shares_in_every_form() {
        for (text, value) in
            [("0.01", 0.01), ("1%", 0.01), ("1/1000", 0.001), ("1e-6", 1e-6), ("0.5%", 0.005)]
        {
            assert!((rate(text).unwrap() / value - 1.0).abs() < 1e-12, "{text}");
        }
        for text in ["0", "1", "100%", "-0.1", "nan", "inf", "1/0", "", "%", "one", "5"] {
            assert!(rate(text).is_err(), "{text}");
        }
        assert!(rate("2").unwrap_err().contains("2% is 0.02"));
    }
}
