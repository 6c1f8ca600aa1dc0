//! Encodes bytes as pairs of hexadecimal digits, and decodes them.

/// Returns bytes as pairs of digits, in lower case.
pub fn encode(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Parses pairs of digits, in either case, and appends the bytes. For any other text, returns
/// `None` and appends nothing.
pub fn decode(digits: &[u8], bytes: &mut Vec<u8>) -> Option<()> {
    let start = bytes.len();
    for pair in digits.chunks(2) {
        let Some(byte) = decode_byte(pair) else {
            bytes.truncate(start);
            return None;
        };
        bytes.push(byte);
    }
    Some(())
}

/// Parses exactly `N` pairs of digits, in either case.
pub fn decode_array<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if digits.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = decode_byte(pair)?;
    }
    Some(bytes)
}

fn decode_byte(pair: &[u8]) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let [high, low] = *pair else { return None };
    Some(digit(high)? << 4 | digit(low)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_trip_and_other_text_is_refused() {
        let bytes: Vec<u8> = (0..=255).collect();
        let digits = encode(&bytes);
        assert_eq!((&digits[..6], digits.len()), ("000102", 512));
        let mut decoded = vec![7];
        assert_eq!(decode(digits.to_uppercase().as_bytes(), &mut decoded), Some(()));
        assert_eq!((decoded[0], &decoded[1..]), (7, &bytes[..]));
        assert_eq!(decode_array::<256>(digits.as_bytes()).as_ref().map(|bytes| &bytes[..]), Some(&bytes[..]));
        for wrong in [&b"0"[..], b"000", b"0g", b"00+1", b" 0", b"\xff\xff"] {
            assert_eq!(decode(wrong, &mut decoded), None, "{wrong:?}");
            assert_eq!(decode_array::<1>(wrong), None, "{wrong:?}");
        }
        assert_eq!((decoded.len(), decode_array::<1>(b"0000"), decode_array(b"")), (257, None, Some([])));
    }
}
