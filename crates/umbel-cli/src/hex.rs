//! Hexadecimal digits.

/// Decodes pairs of hexadecimal digits and appends the bytes. Returns `None`, and appends nothing, for any other text.
pub fn decode(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let (pairs, rest) = text.as_chunks::<2>();
    let start = out.len();
    for [high, low] in pairs {
        let (Some(high), Some(low)) = (digit(*high), digit(*low)) else {
            out.truncate(start);
            return None;
        };
        out.push(high << 4 | low);
    }
    if rest.is_empty() {
        return Some(());
    }
    out.truncate(start);
    None
}

/// Encodes bytes as pairs of hexadecimal digits.
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
