//! The code book of a map whose values are not integers: it assigns a number to each distinct
//! value.

use crate::file::FormatError;
use crate::memory::{LINE_WORDS, Mover, Words};
use crate::structure::{BOOK, Parts, check_tail};
use crate::{Error, Result};
use std::borrow::Cow;

/// A list of distinct byte strings, the values of a map, numbered from 0.
///
/// ```
/// use umbel::bloomier::CodeBook;
/// let book = CodeBook::new(&["red", "green", "blue"])?;
/// assert_eq!(book.get(1).as_deref(), Some(&b"green"[..]));
/// assert_eq!(book.get(3), None);
/// # Ok::<(), umbel::Error>(())
/// ```
#[derive(Debug)]
pub struct CodeBook {
    /// The end of each value, in bytes from the end of this list; then the values, one after the
    /// other.
    words: Words,
    len: u64,
}

/// The largest number of values. With more, integers as values would make a smaller map.
const MAX_VALUES: u64 = 1 << 32;

impl CodeBook {
    /// Creates a book from these values; the first has number 0.
    ///
    /// # Errors
    ///
    /// Returns an error if there are no values or more than 2^32, or if a value occurs twice.
    pub fn new<V: AsRef<[u8]>>(values: &[V]) -> Result<CodeBook> {
        let len = values.len() as u64;
        check_len(len)?;
        let mut sorted: Vec<&[u8]> = values.iter().map(AsRef::as_ref).collect();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let name = String::from_utf8_lossy(twice[0]).into_owned();
            return Err(Error::parameter("values", name, "each value once"));
        }
        let bytes: usize = sorted.iter().map(|value| value.len()).sum();
        let mut words = Words::zeroed(lines(len, bytes as u64))?;
        let (ends, text) = words.words_mut().split_at_mut(values.len());
        let mut at = 0;
        for (end, value) in ends.iter_mut().zip(values) {
            for byte in value.as_ref() {
                text[at / 8] |= u64::from(*byte) << (at % 8 * 8);
                at += 1;
            }
            *end = at as u64;
        }
        Ok(CodeBook { words, len })
    }

    /// Returns the number of values.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Always returns `false`, since a book has at least one value.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the value with this number.
    pub fn get(&self, number: u64) -> Option<Cow<'_, [u8]>> {
        if number >= self.len {
            return None;
        }
        let (ends, text) = self.words.words().split_at(self.len as usize);
        let start = if number == 0 { 0 } else { ends[number as usize - 1] };
        let range = usize::try_from(start).ok()?..usize::try_from(ends[number as usize]).ok()?;
        if cfg!(target_endian = "little") {
            return self.words.as_bytes()[8 * ends.len()..].get(range).map(Cow::Borrowed);
        }
        (range.end <= 8 * text.len())
            .then(|| range.map(|at| (text[at / 8] >> (at % 8 * 8)) as u8).collect::<Vec<u8>>().into())
    }

    /// Iterates over all values in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = Cow<'_, [u8]>> {
        (0..self.len).filter_map(|number| self.get(number))
    }

    pub(crate) fn words(&self) -> &Words {
        &self.words
    }

    /// Moves the memory; see [`Mover`].
    pub(crate) fn relocate(&mut self, mover: &mut dyn Mover) {
        self.words.relocate(mover);
    }

    pub(crate) fn try_clone(&self) -> Result<CodeBook> {
        Ok(CodeBook { words: self.words.try_clone()?, len: self.len })
    }

    /// Restores a book of `len` values from a file; `None` if `len` is 0.
    pub(crate) fn restore(parts: &mut Parts, len: u64) -> Result<Option<CodeBook>> {
        if len == 0 {
            return Ok(None);
        }
        check_len(len)?;
        let words = parts.section_of_any_size(BOOK)?;
        if words.words().len() as u64 >= len {
            return Ok(Some(CodeBook { words, len }));
        }
        Err(FormatError::invalid(format!("it claims {len} values in a section that has no room for them"))
            .into())
    }

    pub(crate) fn check_contents(&self) -> Result<(), FormatError> {
        let (ends, text) = self.words.words().split_at(self.len as usize);
        let last = ends.last().copied().unwrap_or_default();
        if !ends.is_sorted() || last > 8 * text.len() as u64 {
            return Err(FormatError::invalid("the values of its code book overlap, or end beyond it"));
        }
        if self.words.lines().len() as u64 > lines(self.len, last) {
            return Err(FormatError::invalid("its code book is larger than its values"));
        }
        check_tail(&self.words, 64 * self.len + 8 * last)?;
        let twice = || Err(FormatError::invalid("a value is in its code book twice"));
        // At most one value is empty. So nearly every end is another number, and the memory below is
        // half of what the ends take in the file.
        let empty = ends.windows(2).filter(|pair| pair[0] == pair[1]).count() + usize::from(ends[0] == 0);
        if empty > 1 {
            return twice();
        }
        // Numbers below 2^32.
        let mut sorted: Vec<u32> = (0..self.len).map(|number| number as u32).collect();
        let value = |number: &u32| self.get((*number).into());
        sorted.sort_unstable_by(|a, b| value(a).cmp(&value(b)));
        if sorted.windows(2).any(|pair| value(&pair[0]) == value(&pair[1])) {
            return twice();
        }
        Ok(())
    }
}

/// The number of cache lines that `len` values of `bytes` bytes in total take.
fn lines(len: u64, bytes: u64) -> u64 {
    (len + bytes.div_ceil(8)).div_ceil(LINE_WORDS as u64)
}

fn check_len(len: u64) -> Result<()> {
    if len == 0 || len > MAX_VALUES {
        return Err(Error::parameter("values", len, "at least one value, and at most 2^32"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_all_lengths_come_back() {
        let values: Vec<Vec<u8>> = (0..=255u8).map(|i| vec![i; usize::from(i) * 3 % 41]).skip(1).collect();
        let book = CodeBook::new(&values[..40]).unwrap();
        assert!(book.iter().eq(values[..40].iter().map(|value| Cow::Borrowed(&value[..]))));
        assert_eq!(book.get(40), None);
        book.check_contents().unwrap();
        let empty = CodeBook::new(&[""]).unwrap();
        assert_eq!(empty.get(0).as_deref(), Some(&b""[..]));
    }

    #[test]
    fn duplicate_values_are_named_and_empty_books_are_refused() {
        let error = CodeBook::new(&["red", "blue", "red"]).unwrap_err();
        assert!(error.to_string().contains("red"), "{error}");
        assert!(CodeBook::new::<&str>(&[]).is_err());
    }

    #[test]
    fn invalid_contents_are_detected_and_never_panic() {
        let mut book = CodeBook::new(&["red", "green", "blue"]).unwrap();
        // The first end behind the others, the second before the first, the third far away, and a
        // letter behind the last name.
        for (word, value) in [(0, u64::MAX), (1, 0), (2, 1 << 40), (7, 1)] {
            let before = book.words.words()[word];
            book.words.words_mut()[word] = value;
            assert!(book.check_contents().is_err(), "{word}");
            (0..4).for_each(|number| drop(book.get(number)));
            book.words.words_mut()[word] = before;
        }
        // Two empty names are found without memory for a list of names.
        let words = Words::zeroed(8).unwrap();
        let mut empty = CodeBook { words, len: 60 };
        assert!(empty.check_contents().unwrap_err().to_string().contains("twice"));
        empty.words.words_mut()[1..60].fill(1);
        assert!(empty.check_contents().unwrap_err().to_string().contains("twice"));
        // Two different names become the same.
        let mut book = CodeBook::new(&["a", "b"]).unwrap();
        book.words.words_mut()[2] = u64::from(u16::from_le_bytes(*b"aa"));
        assert!(book.check_contents().unwrap_err().to_string().contains("twice"));
    }
}
