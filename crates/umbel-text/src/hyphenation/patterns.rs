//! Liang's patterns, which say where words may be broken.
//!
//! A pattern is a piece of a word with digits between its letters, such as `hy3ph`; a dot stands for
//! the end of the word. Every pattern that occurs in a word puts its digits between the letters
//! there, and the largest digit of a place counts. An odd one allows a break, an even one forbids
//! it:
//!
//! ```text
//!     . h y p h e n a t i o n .
//!       h y3p h
//!             h e2n
//!             h e n a4
//!             h e n5a t
//!                1n a
//!                 n2a t
//!                    1t i o
//!                       2i o
//!                         o2n
//!       h y3p h e2n5a4t2i o2n        hy-phen-ation
//! ```

use std::ops::Range;

/// The patterns of a language.
#[derive(Debug)]
pub(super) struct Patterns {
    /// The letters of all patterns, one after the other.
    letters: Vec<u8>,
    /// The digits of all patterns, one after the other, each with its offset in the letters of its
    /// pattern.
    digits: Vec<(u8, u8)>,
    /// The patterns in the order of their letters.
    sorted: Vec<Pattern>,
}

/// The parts of `letters` and `digits` that belong to a pattern.
#[derive(Debug)]
struct Pattern {
    letters: Range<u32>,
    digits: Range<u32>,
}

impl Patterns {
    /// Parses patterns, one per line. Lines that start with `%` are comments.
    pub fn parse(text: &str) -> Patterns {
        let mut patterns = Patterns { letters: Vec::new(), digits: Vec::new(), sorted: Vec::new() };
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('%')) {
            let starts = [patterns.letters.len(), patterns.digits.len()];
            for byte in line.bytes() {
                match byte {
                    b'0'..=b'9' => {
                        let offset = (patterns.letters.len() - starts[0]) as u8;
                        patterns.digits.push((offset, byte - b'0'));
                    }
                    _ => patterns.letters.push(byte),
                }
            }
            patterns.sorted.push(Pattern {
                letters: starts[0] as u32..patterns.letters.len() as u32,
                digits: starts[1] as u32..patterns.digits.len() as u32,
            });
        }
        let Patterns { letters, sorted, .. } = &mut patterns;
        // The lists in this crate are in order already, which makes this one pass.
        sorted.sort_by(|a, b| bytes(letters, &a.letters).cmp(bytes(letters, &b.letters)));
        patterns
    }

    /// Returns the largest digit before each byte of a word in lower case, from the patterns of at
    /// most `max_letters` letters. The end of the word counts as a letter.
    pub fn digits(&self, word: &str, max_letters: usize) -> Vec<u8> {
        let marked = [b".", word.as_bytes(), b"."].concat();
        let mut largest = vec![0; marked.len() + 1];
        for start in 0..marked.len() {
            // The patterns that begin with the bytes so far are neighbours. Each further byte
            // narrows them down.
            let (mut range, mut letters) = (0..self.sorted.len(), 0);
            for (depth, byte) in marked[start..].iter().enumerate() {
                letters += usize::from(byte & 0xc0 != 0x80);
                if letters > max_letters {
                    break;
                }
                range = self.narrow(range, depth, *byte);
                // A pattern of exactly these bytes comes before the longer ones.
                let Some(first) = self.sorted[range.clone()].first() else { break };
                if first.letters.len() == depth + 1 {
                    let own = &self.digits[first.digits.start as usize..first.digits.end as usize];
                    for (offset, digit) in own {
                        let place = &mut largest[start + usize::from(*offset)];
                        *place = (*place).max(*digit);
                    }
                }
            }
        }
        // Leave out the place before the first dot and those around the last one.
        largest[1..=word.len()].to_vec()
    }

    /// Returns the patterns among these that have a byte at an offset.
    fn narrow(&self, range: Range<usize>, offset: usize, byte: u8) -> Range<usize> {
        let patterns = &self.sorted[range.clone()];
        let at = |pattern: &Pattern| bytes(&self.letters, &pattern.letters).get(offset).copied();
        let first = patterns.partition_point(|pattern| at(pattern) < Some(byte));
        let count = patterns[first..].partition_point(|pattern| at(pattern) == Some(byte));
        range.start + first..range.start + first + count
    }
}

fn bytes<'a>(all: &'a [u8], range: &Range<u32>) -> &'a [u8] {
    &all[range.start as usize..range.end as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tries every pattern at every place.
    fn naive(text: &str, word: &str) -> Vec<u8> {
        let marked = format!(".{word}.");
        let mut largest = vec![0u8; marked.len() + 1];
        for pattern in text.lines().filter(|line| !line.starts_with('%')) {
            let letters: String = pattern.chars().filter(|c| !c.is_ascii_digit()).collect();
            for (start, _) in
                marked.char_indices().filter(|(start, _)| marked[*start..].starts_with(&letters))
            {
                let mut offset = start;
                for c in pattern.chars() {
                    match c.to_digit(10) {
                        Some(digit) => largest[offset] = largest[offset].max(digit as u8),
                        None => offset += c.len_utf8(),
                    }
                }
            }
        }
        largest[1..=word.len()].to_vec()
    }

    #[test]
    fn the_search_finds_the_same_patterns_as_trying_all() {
        let lists = [
            (
                include_str!("data/en.patterns"),
                "hyphenation computer associate aaa zzzz x programs supercalifragilistic",
            ),
            (
                include_str!("data/de.patterns"),
                "silbentrennung verbindungen größe überübermäßig straßenbahnhaltestelle éa",
            ),
        ];
        for (text, words) in lists {
            let patterns = Patterns::parse(text);
            for word in words.split(' ') {
                assert_eq!(patterns.digits(word, usize::MAX), naive(text, word), "{word}");
            }
        }
    }

    #[test]
    fn the_example_of_the_literature_comes_out() {
        let patterns = Patterns::parse("hy3ph\nhe2n\nhena4\nhen5at\n1na\nn2at\n1tio\n2io\no2n");
        assert_eq!(patterns.digits("hyphenation", 9), [0, 0, 3, 0, 0, 2, 5, 4, 2, 0, 2]);
        assert_eq!(patterns.digits("hyphenation", 3), [0, 0, 0, 0, 0, 2, 2, 1, 2, 0, 2], "short ones only");
    }
}
