//! Formatting and parsing of times as in RFC 3339.

use crate::{Error, Result};
use umbel::Timestamp;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Formats a time as in RFC 3339, in UTC and with nine decimals.
///
/// ```
/// use umbel_net::rfc3339;
/// assert_eq!(rfc3339::format(umbel::Timestamp::from_secs(1_700_000_000)), "2023-11-14T22:13:20.000000000Z");
/// ```
pub fn format(time: Timestamp) -> String {
    let (seconds, nanos) = (time.nanos() / NANOS_PER_SECOND, time.nanos() % NANOS_PER_SECOND);
    let (days, of_day) = (seconds / 86400, seconds % 86400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
}

/// Parses a time as in RFC 3339, or a number of seconds since 1970.
///
/// Any number of decimals is accepted, the UTC offset may be omitted, and a space may replace the
/// `T`. A date alone is the start of that day.
///
/// ```
/// use umbel::Timestamp;
/// use umbel_net::rfc3339;
/// let time = rfc3339::parse("2023-11-14T22:13:20.5Z")?;
/// assert_eq!(time, rfc3339::parse("2023-11-15 00:13:20.5+02:00")?);
/// assert_eq!(time, rfc3339::parse("1700000000.5")?);
/// assert_eq!(rfc3339::parse("1970-01-02")?, Timestamp::from_secs(86400));
/// for wrong in ["yesterday", "2023-11-14T22:13:20Z01:00", "1.1234567890 and so on", "1."] {
///     assert!(rfc3339::parse(wrong).is_err());
/// }
/// # Ok::<(), umbel_net::Error>(())
/// ```
///
/// # Errors
///
/// Fails if the text is neither a time nor a number of seconds, or lies outside the range of
/// [`Timestamp`].
pub fn parse(text: &str) -> Result<Timestamp> {
    let needs = "a time such as 2023-11-14T22:13:20Z, or seconds since 1970";
    read(text).ok_or_else(|| Error::parameter("time", text, needs))
}

fn read(text: &str) -> Option<Timestamp> {
    if text.find('-').is_none_or(|at| at == 0) {
        let (seconds, nanos) = decimal(text)?;
        return seconds.checked_mul(NANOS_PER_SECOND)?.checked_add(nanos).map(Timestamp::from_nanos);
    }
    let (day, rest) = text.split_at_checked(10)?;
    let mut parts = day.splitn(3, '-').map(digits);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let days = (1..=31).contains(&day).then(|| days(year, month)).flatten()?.checked_add(day - 1)?;
    // Reject dates such as April 31.
    if date(days) != (year, month, day) {
        return None;
    }
    let Some(rest) = rest.strip_prefix(['T', 't', ' ']) else {
        return rest.is_empty().then(|| Timestamp::from_secs(days * 86400));
    };
    let (clock, zone) = rest.split_at(rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len()));
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (digits(parts.next()?)?, digits(parts.next()?)?);
    let (second, nanos) = parts.next().map_or(Some((0, 0)), decimal)?;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let local = (days * 86400 + hour * 3600 + minute * 60 + second)
        .checked_mul(NANOS_PER_SECOND)?
        .checked_add(nanos)?;
    if zone.is_empty() || zone.eq_ignore_ascii_case("z") {
        return Some(Timestamp::from_nanos(local));
    }
    let (hours, minutes) = zone.strip_prefix(['+', '-'])?.split_once(':')?;
    let (hours, minutes) = (digits(hours)?, digits(minutes)?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    let distance = (hours * 3600 + minutes * 60) * NANOS_PER_SECOND;
    // East of Greenwich the clocks are ahead.
    if zone.starts_with('+') { local.checked_sub(distance) } else { local.checked_add(distance) }
        .map(Timestamp::from_nanos)
}

/// Parses a number that consists only of digits.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Parses seconds with decimals into seconds and nanoseconds.
fn decimal(text: &str) -> Option<(u64, u64)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    // Digits after the ninth are below a nanosecond.
    let is_number = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let nanos = digits(&format!("{fraction:0<9.9}")).filter(|_| is_number)?;
    Some((digits(whole)?, nanos))
}

/// Returns the number of days from January 1, 1970 to the first day of a month; see [`date`].
fn days(year: u64, month: u64) -> Option<u64> {
    if year < 1970 || !(1..=12).contains(&month) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    Some(365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 - 719_468)
}

/// Returns the year, month and day that is this many days after January 1, 1970. Years are counted
/// from March, so that the leap day is the last day of a year; 400 years have 146 097 days.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let of_month = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, of_month)
}
