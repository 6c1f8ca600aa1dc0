//! Text of others, which a terminal may show.

/// Returns whether a character could control a terminal, end a line, or reorder the text around it.
///
/// ```
/// use umbel::internals::text::is_control;
/// assert!(['\u{1b}', '\n', '\u{9b}', '\u{202e}', '\u{2066}', '\u{2028}'].into_iter().all(is_control));
/// assert!(!"Grün 世界 🦀".contains(is_control));
/// ```
pub fn is_control(c: char) -> bool {
    // Separators of lines and paragraphs; embeddings, overrides and isolates of directions.
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
