//! Days, times of day and timestamps, as ISO 8601 writes them.
//!
//! A text stands for one value or for none: a time with more decimals than the unit of the column
//! has is equal to no value there, and a day alone is not a timestamp.

use super::{Clock, Unit};
use chrono::NaiveDate;

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86400;

/// The Julian day of January 1, 1970.
const JULIAN_DAY_OF_1970: i64 = 2_440_588;

/// Reads a day as a number of days since 1970.
pub fn date(text: &str) -> Result<Vec<u8>, String> {
    let days = days(text).ok_or("a day such as 2024-02-29")?;
    Ok((days as i32).to_le_bytes().to_vec())
}

/// Reads a time of day.
pub fn time(text: &str, clock: Clock) -> Result<Vec<u8>, String> {
    let local = if clock.utc { text.strip_suffix(['Z', 'z']).unwrap_or(text) } else { text };
    let (seconds, nanos) = of_day(local).ok_or("a time such as 23:59:59.5")?;
    let number = in_unit(i128::from(seconds) * NANOS_PER_SECOND + i128::from(nanos), clock.unit)?;
    Ok(match clock.unit {
        Unit::Millis => (number as i32).to_le_bytes().to_vec(),
        Unit::Micros | Unit::Nanos => (number as i64).to_le_bytes().to_vec(),
    })
}

/// Reads a timestamp. In a column of instants, a text without a zone is in UTC; in a column of local
/// times, a zone has no meaning.
pub fn timestamp(text: &str, clock: Clock) -> Result<Vec<u8>, String> {
    let Instant { days, seconds, nanos, has_zone } = instant(text)?;
    if has_zone && !clock.utc {
        return Err("a time without a zone, since the column has local times".to_string());
    }
    let seconds = i128::from(days) * i128::from(SECONDS_PER_DAY) + i128::from(seconds);
    let number = in_unit(seconds * NANOS_PER_SECOND + i128::from(nanos), clock.unit)?;
    let number = i64::try_from(number).map_err(|_| "a time that its 64 bits can hold, from 1678 to 2261")?;
    Ok(number.to_le_bytes().to_vec())
}

/// Reads a timestamp as the nanoseconds of a day in 8 bytes, and the Julian day in 4.
pub fn timestamp96(text: &str) -> Result<Vec<u8>, String> {
    let Instant { days, seconds, nanos, .. } = instant(text)?;
    let nanos = seconds * NANOS_PER_SECOND as i64 + i64::from(nanos);
    let day = (days + JULIAN_DAY_OF_1970) as i32;
    Ok([&nanos.to_le_bytes()[..], &day.to_le_bytes()].concat())
}

/// A point in time: days since 1970, and seconds and nanoseconds of that day.
struct Instant {
    days: i64,
    seconds: i64,
    nanos: u32,
    has_zone: bool,
}

/// Reads a day and a time of day, perhaps with a zone.
fn instant(text: &str) -> Result<Instant, String> {
    const NEEDS: &str = "a day and a time such as 2024-02-29T23:59:59.5";
    let (day, clock) = text.split_once(['T', 't', ' ']).ok_or(NEEDS)?;
    let (clock, offset) = zone(clock).ok_or(NEEDS)?;
    let (seconds, nanos) = of_day(clock).ok_or(NEEDS)?;
    // East of Greenwich the clocks are ahead.
    let seconds = seconds - offset.unwrap_or(0);
    let days = days(day).ok_or(NEEDS)? + seconds.div_euclid(SECONDS_PER_DAY);
    Ok(Instant { days, seconds: seconds.rem_euclid(SECONDS_PER_DAY), nanos, has_zone: offset.is_some() })
}

/// Splits a zone off a time of day, and returns it in seconds: `Z`, +02:00, -0530 or +02.
fn zone(text: &str) -> Option<(&str, Option<i64>)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock, Some(0)));
    }
    let Some(at) = text.find(['+', '-']) else { return Some((text, None)) };
    let (clock, zone) = text.split_at(at);
    let digits = zone[1..].replacen(':', "", usize::from(zone.len() == 6 && zone.as_bytes()[3] == b':'));
    let (hours, minutes) = match digits.len() {
        2 => (number(&digits)?, 0),
        4 => (number(digits.get(..2)?)?, number(digits.get(2..)?)?),
        _ => return None,
    };
    let seconds = (hours < 24 && minutes < 60).then_some(3600 * hours + 60 * minutes)?;
    Some((clock, Some(if zone.starts_with('-') { -seconds } else { seconds })))
}

/// Reads a day, and returns the days since 1970. Years beyond 9999 and before 0 have a sign.
fn days(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['+', '-']);
    let mut parts = unsigned.unwrap_or(text).splitn(3, '-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let year_digits = if unsigned.is_some() { 4..=6 } else { 4..=4 };
    if !year_digits.contains(&year.len()) || month.len() != 2 || day.len() != 2 {
        return None;
    }
    let year = number(year)? * if text.starts_with('-') { -1 } else { 1 };
    let date = NaiveDate::from_ymd_opt(year.try_into().ok()?, number(month)? as u32, number(day)? as u32)?;
    Some(date.signed_duration_since(NaiveDate::default()).num_days())
}

/// Reads a time of day: its seconds and nanoseconds. Decimals beyond the ninth are refused.
fn of_day(text: &str) -> Option<(i64, u32)> {
    let (clock, fraction) =
        text.split_once(['.', ',']).map_or((text, None), |(clock, rest)| (clock, Some(rest)));
    let parts: Vec<&str> = clock.split(':').collect();
    let with_seconds = parts.len() == 3;
    if !(with_seconds || parts.len() == 2 && fraction.is_none()) || parts.iter().any(|part| part.len() != 2) {
        return None;
    }
    let part = |at: usize| parts.get(at).map_or(Some(0), |part| number(part));
    let (hours, minutes, seconds) = (part(0)?, part(1)?, part(2)?);
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let nanos = match fraction {
        None => 0,
        Some("") => return None,
        Some(fraction) => {
            // Zeros at the end do not change the time.
            let needed = fraction.trim_end_matches('0');
            let is_number = needed.len() <= 9 && fraction.bytes().all(|byte| byte.is_ascii_digit());
            number(&format!("{needed:0<9}")).filter(|_| is_number)? as u32
        }
    };
    Some((3600 * hours + 60 * minutes + seconds, nanos))
}

/// Returns nanoseconds as a number of units, if they are a whole number of them.
fn in_unit(nanos: i128, unit: Unit) -> Result<i128, String> {
    let nanos_per_unit = 10_i128.pow(9 - unit.decimals());
    match nanos % nanos_per_unit {
        0 => Ok(nanos / nanos_per_unit),
        _ => Err(format!("a time of at most {} decimals", unit.decimals())),
    }
}

/// Parses a number that consists only of digits.
fn number(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
