//! Bytes written as `%41` in an address (RFC 3986, section 2.1).

use anyhow::{Result, bail};
use umbel::internals::hex;

/// Checks that each % is followed by two hexadecimal digits.
///
/// # Errors
/// Names the first % that is not.
pub fn check(text: &str) -> Result<()> {
    for (at, (place, _)) in text.char_indices().enumerate().filter(|(_, (_, c))| *c == '%') {
        if escaped(&text.as_bytes()[place..]).is_none() {
            bail!(
                "the % at character {} of the address is not followed by two hexadecimal digits: a % itself is written %25",
                at + 1
            );
        }
    }
    Ok(())
}

/// Decodes a part of a text that [`check`] has accepted.
pub fn decode(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some(&first) = rest.first() {
        let (byte, length) = escaped(rest).map_or((first, 1), |byte| (byte, 3));
        bytes.push(byte);
        rest = &rest[length..];
    }
    bytes
}

/// Returns the first byte of a text if it is escaped.
fn escaped(text: &[u8]) -> Option<u8> {
    let digits = text.strip_prefix(b"%")?.get(..2)?;
    let mut byte = Vec::new();
    hex::decode(digits, &mut byte)?;
    byte.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_can_be_escaped_and_invalid_escapes_are_found() {
        for byte in 0..=255 {
            assert_eq!(decode(&format!("a%{byte:02x}b%{byte:02X}")), [b'a', byte, b'b', byte]);
        }
        assert_eq!(decode("ä+~{}"), "ä+~{}".as_bytes());
        for (wrong, at) in
            [("%", 1), ("ä%", 2), ("%41%4", 4), ("a%g0", 2), ("%+1", 1), ("%%41", 1), ("x%ä", 2)]
        {
            let error = check(wrong).unwrap_err().to_string();
            assert!(error.contains(&format!("character {at} ")), "{wrong}: {error}");
        }
        check("%41%fF%25").unwrap();
    }
}
