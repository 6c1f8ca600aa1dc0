//! Recognises web addresses, file names and paths, which are not words of a language.

/// Returns whether a new piece of text begins after this character.
pub(crate) fn starts_piece(after: char) -> bool {
    after.is_whitespace() || matches!(after, '(' | '[' | '<' | '"' | '\'' | '`' | '{')
}

/// Returns the length of the address, file name or path that begins here. `piece` is whether a new
/// piece of text begins here, such as after a space.
///
/// Looks at no more bytes than a name can have, so that a line of any length is read only once.
pub(crate) fn name_length(text: &str, piece: bool) -> Option<usize> {
    const MAX_NAME_BYTES: usize = 64;
    let bytes = text.as_bytes();
    let first = *bytes.first()?;
    let to_end = || {
        let end = |c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | ')' | ']' | '}' | '`');
        Some(text.find(end).unwrap_or(text.len()))
    };
    if piece && matches!(first, b'/' | b'~' | b'.') {
        let second = bytes.get(1).copied().unwrap_or(b' ');
        let path = second.is_ascii_alphanumeric() || second == b'/' || first == b'.' && second == b'.';
        return if path { to_end() } else { None };
    }
    if !first.is_ascii_alphanumeric() {
        return None;
    }
    let name = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-._%".contains(byte);
    let length = bytes.iter().take(MAX_NAME_BYTES).take_while(|byte| name(byte)).count();
    let (named, after) = (&bytes[..length], &bytes[length..]);
    let host = |after: &[u8]| after.first().is_some_and(u8::is_ascii_alphanumeric);
    let letter = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    // A dot directly before a lower-case letter or a digit does not end a sentence.
    let dotted = named.windows(2).any(|pair| pair[0] == b'.' && letter(&pair[1]));
    let addressed = after.starts_with(b"://")
        || after.starts_with(b"@") && host(&after[1..])
        || named.eq_ignore_ascii_case(b"mailto") && after.starts_with(b":");
    if addressed {
        return to_end();
    }
    let reaches = length < MAX_NAME_BYTES && !text[length..].starts_with(|c: char| c.is_alphanumeric());
    (dotted && reaches).then_some(length)
}
