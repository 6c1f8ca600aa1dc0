//! The plain bits of a filter, for formats defined elsewhere and for filters that mirror another.

use super::{Literature, Scheme};
use crate::Result;
use crate::counting::Flip;
use crate::file::FormatError;
use crate::memory::bits;
use crate::structure::check_tail;

impl Literature {
    /// Creates a filter from its bits: bit `i` of the filter is bit `i % 8` of byte `i / 8`.
    ///
    /// ```
    /// use umbel::literature::{Family, Literature, Scheme};
    ///
    /// let scheme = Scheme::new(Family::Murmur3, 3, 20)?;
    /// let mut filter = Literature::new(scheme)?;
    /// filter.insert("apple");
    /// assert_eq!(Literature::from_bits(scheme, &filter.to_bits())?, filter);
    ///
    /// // Three bytes hold 24 bits, of which the last four are not bits of the filter.
    /// assert!(Literature::from_bits(scheme, &[0, 0, 0x10]).is_err());
    /// # Ok::<(), umbel::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Format`](crate::Error::Format) if there are not exactly as many bytes as m bits
    /// need, or if a bit beyond m is set; [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the
    /// system has no memory for the filter.
    pub fn from_bits(scheme: Scheme, bytes: &[u8]) -> Result<Literature> {
        let (expected, found) = (scheme.m().div_ceil(8), bytes.len() as u64);
        if found != expected {
            return Err(FormatError::invalid(format!("{} bits in {found} bytes", scheme.m())).into());
        }
        let mut filter = Literature { inserted: None, ..Literature::new(scheme)? };
        for (word, chunk) in filter.words.words_mut().iter_mut().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..chunk.len()].copy_from_slice(chunk);
            *word = u64::from_le_bytes(whole);
        }
        check_tail(&filter.words, scheme.m())?;
        Ok(filter)
    }

    /// Returns the bits, in as many bytes as they need: bit `i` of the filter is bit `i % 8` of
    /// byte `i / 8`, and the bits that remain are zero.
    pub fn to_bits(&self) -> Vec<u8> {
        let len = self.scheme.m().div_ceil(8) as usize;
        self.words.to_le_bytes()[..len].to_vec()
    }

    /// Returns whether a bit is set; `false` beyond the end.
    #[inline]
    pub fn bit(&self, index: u64) -> bool {
        index < self.scheme.m() && bits::is_set(self.words.words(), index)
    }

    /// Sets or clears one bit, and returns whether it had the other value. A bit beyond the end is
    /// ignored.
    ///
    /// A filter that starts with the bits of a [counting filter](crate::Counting) stays in step
    /// with it by applying the flips that the counting filter reports.
    pub fn apply(&mut self, flip: Flip) -> bool {
        if flip.index >= self.scheme.m() || self.bit(flip.index) == flip.set {
            return false;
        }
        let words = self.words.words_mut();
        if flip.set {
            bits::set(words, flip.index);
        } else {
            bits::clear(words, flip.index);
        }
        self.inserted = None;
        true
    }
}

/// Two filters are equal if they have the same scheme and the same bits, whatever they were
/// planned for and however they were filled.
impl PartialEq for Literature {
    fn eq(&self, other: &Literature) -> bool {
        self.scheme == other.scheme && self.words.words() == other.words.words()
    }
}

impl Eq for Literature {}
