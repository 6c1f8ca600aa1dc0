//! Text, numbers, rates and sizes as people read them.

use bstr::ByteSlice;
use indicatif::HumanBytes;
use std::borrow::Cow;
use umbel::internals::text::is_control;
use umbel_text::near_names::near_names;

/// Returns foreign text in a form that is safe to print and not too long: [`escaped`] and
/// [`truncated`].
pub fn printable(text: impl AsRef<[u8]>) -> String {
    escaped(truncated(text.as_ref()))
}

/// Returns foreign text unchanged if it is printable UTF-8 in one line, and quoted with escapes
/// otherwise.
pub fn escaped(text: impl AsRef<[u8]>) -> String {
    let text = text.as_ref();
    match text.to_str() {
        Ok(text) if !text.contains(is_control) => text.to_owned(),
        _ => format!("{:?}", text.as_bstr()),
    }
}

/// Returns a word as an argument of a POSIX shell: unchanged if no character has a meaning there, and
/// in quotes otherwise.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "%+,-./:=@_".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns as much of a text as fits into a message.
pub fn truncated(text: &[u8]) -> Cow<'_, [u8]> {
    const MAX_BYTES: usize = 300;
    if text.len() <= MAX_BYTES {
        return text.into();
    }
    // Do not cut a character in half.
    let end = (MAX_BYTES - 3..=MAX_BYTES).rev().find(|end| text[*end] & 0xc0 != 0x80).unwrap_or(MAX_BYTES);
    [&text[..end], "…".as_bytes()].concat().into()
}

/// Formats a rate: `1 %`, `0.0402 %`, `1.2e-7`.
pub fn percent(rate: f64) -> String {
    if rate != 0.0 && rate < 1e-5 {
        let text = format!("{rate:.3e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'));
    }
    // Four significant digits, without trailing zeros.
    let digits = (3 - (100.0 * rate).max(1e-9).log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{:.digits$}", 100.0 * rate);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}

/// Returns a number and its noun, such as `1 epoch` or `2 epochs`.
pub fn count(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns the end of an error with the names that resemble a wanted one, or else the
/// first names.
pub fn other_names(wanted: &str, names: &[&str]) -> String {
    const MAX_NAMES: usize = 5;
    let near = near_names(wanted, names.iter().copied(), MAX_NAMES);
    if !near.is_empty() {
        return format!("similar names: {}", near.join(", "));
    }
    let more = if names.len() > MAX_NAMES { ", ..." } else { "" };
    let first: Vec<&str> = names.iter().copied().take(MAX_NAMES).collect();
    format!("there are {}{more}", first.join(", "))
}

/// Formats a size: `1.25 MiB`.
pub fn size(bytes: u64) -> String {
    HumanBytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_read_quoted_words_as_they_were() {
        for (word, quoted) in [
            ("apple", "apple"),
            ("2001:db8::1/64", "2001:db8::1/64"),
            ("", "''"),
            ("two words", "'two words'"),
            ("$(reboot)", "'$(reboot)'"),
            ("it's", r"'it'\''s'"),
            ("~root", "'~root'"),
            ("a;b\n", "'a;b\n'"),
        ] {
            assert_eq!(shell_word(word), quoted);
        }
    }

    #[test]
    fn rates_have_four_significant_digits() {
        for (rate, text) in [
            (0.01, "1 %"),
            (0.0402212, "4.022 %"),
            (0.000_402_2, "0.04022 %"),
            (0.5, "50 %"),
            (1.0, "100 %"),
            (0.0, "0 %"),
            (1.25e-7, "1.25e-7"),
            (1e-6, "1e-6"),
        ] {
            assert_eq!(percent(rate), text);
        }
    }
}
