//! The bytes of a file without a file, for sending filters in pieces or storing them elsewhere.

use super::encode::Encoder;
use super::{Options, Storable};
use crate::Result;
use std::cell::OnceCell;

/// The bytes of the file that [`save`](super::save) would write, with random access.
///
/// ```
/// use umbel::{Blocked, Bloom, file};
/// let mut filter = Bloom::<Blocked>::with_capacity(1000, 0.01)?;
/// filter.insert("apple");
/// let image = file::Image::new(&filter, &file::Options::default())?;
/// let mut bytes = vec![0; image.len() as usize];
/// for (i, piece) in bytes.chunks_mut(100).enumerate() {
///     image.read(100 * i as u64, piece);
/// }
/// assert_eq!(bytes, file::to_bytes(&filter, &file::Options::default())?);
/// # Ok::<(), umbel::Error>(())
/// ```
///
/// The header contains the checksums of everything after it, so the first read of the header reads
/// the whole filter once. Reading the rest costs no more than copying it.
pub struct Image<'a> {
    encoder: Encoder<'a>,
    header: OnceCell<Vec<u8>>,
}

impl<'a> Image<'a> {
    /// Creates the image of a filter.
    ///
    /// # Errors
    ///
    /// If an option does not suit the filter.
    pub fn new(filter: &'a (impl Storable + ?Sized), options: &Options) -> Result<Image<'a>> {
        Ok(Image { encoder: Encoder::for_filter(filter, options)?, header: OnceCell::new() })
    }

    /// Returns the number of bytes.
    #[expect(clippy::len_without_is_empty, reason = "no file is empty")]
    pub fn len(&self) -> u64 {
        self.encoder.file_len()
    }

    /// Fills `to` with the bytes from `offset` on. Beyond the end there are none: the rest of `to`
    /// is left unchanged.
    pub fn read(&self, offset: u64, to: &mut [u8]) {
        let mut fill = |start: u64, bytes: &[u8]| {
            let from = offset.max(start);
            let until = (offset + to.len() as u64).min(start + bytes.len() as u64);
            if from < until {
                let source = &bytes[(from - start) as usize..(until - start) as usize];
                to[(from - offset) as usize..(until - offset) as usize].copy_from_slice(source);
            }
        };
        let mut start = self.encoder.header_len();
        if offset < start {
            fill(0, self.header.get_or_init(|| self.encoder.header()));
        }
        for words in self.encoder.sections() {
            fill(start, &words.to_le_bytes());
            start += words.as_bytes().len() as u64;
        }
    }
}
