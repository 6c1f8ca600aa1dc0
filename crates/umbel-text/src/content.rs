//! Recognises the format of a file by its first bytes, and decompresses its contents.
//!
//! ```
//! use std::io::Read;
//! use umbel_text::content::{self, Format};
//!
//! // A zstd frame that contains only these five bytes.
//! let packed = b"\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00hello";
//! let mut text = String::new();
//! let (format, mut reader) = content::decompressed(&packed[..])?;
//! reader.read_to_string(&mut text)?;
//! assert_eq!((format, &text[..]), (Some(Format::Zstd), "hello"));
//! # Ok::<(), std::io::Error>(())
//! ```

use std::io::{self, BufReader, Cursor, Read};

/// The format of a file that is not plain text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A filter file of this project.
    Filter,
    /// Compressed with gzip.
    Gzip,
    /// Compressed with zstd.
    Zstd,
    /// Compressed by another program, which must decompress it.
    Foreign(&'static str),
}

/// The first bytes of each format.
const FORMATS: [(Format, &[u8]); 7] = [
    (Format::Filter, &umbel::file::MAGIC),
    (Format::Gzip, &[0x1f, 0x8b, 0x08]),
    (Format::Zstd, &[0x28, 0xb5, 0x2f, 0xfd]),
    // Files from parallel zstd start with a skippable frame.
    (Format::Zstd, &[0x50, 0x2a, 0x4d, 0x18]),
    (Format::Foreign("xz"), &[0xfd, b'7', b'z', b'X', b'Z', 0]),
    (Format::Foreign("lz4"), &[0x04, 0x22, 0x4d, 0x18]),
    (Format::Foreign("bzip2"), b"BZh91AY&SY"),
];

/// The logarithm of the largest window of a zstd frame, for which memory is allocated: 128 MiB, as
/// for `zstd` without `--memory`. All levels and `--long` stay below it.
const MAX_WINDOW_LOG: u32 = 27;

/// Returns the format of a file with these first bytes.
pub fn format(start: &[u8]) -> Option<Format> {
    FORMATS.iter().find(|(_, magic)| start.starts_with(magic)).map(|(format, _)| *format)
}

/// Reads just enough bytes to recognise the format, so that a slow pipe is not read further.
///
/// # Errors
///
/// Returns the error of the reader.
pub fn start_of(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    let undecided =
        |start: &[u8]| FORMATS.iter().any(|(_, magic)| start.len() < magic.len() && magic.starts_with(start));
    while undecided(&start) {
        let mut byte = [0];
        match reader.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => start.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(start)
}

/// A reader that reads again when a signal interrupts a read. A gzip decoder would take that for an
/// error at the start of a file, and for the end of the file from then on.
struct Uninterrupted<R>(R);

impl<R: Read> Read for Uninterrupted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

/// Returns a reader of the decompressed contents. Contents in any other format are passed through.
///
/// # Errors
///
/// Fails if the zstd decoder cannot be created.
pub fn decoded<'a>(
    format: Option<Format>,
    whole: impl Read + Send + 'a,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    let whole = Uninterrupted(whole);
    Ok(match format {
        Some(Format::Gzip) => {
            Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(1 << 16, whole)))
        }
        Some(Format::Zstd) => {
            let mut decoder = zstd::Decoder::new(whole)?;
            decoder.window_log_max(MAX_WINDOW_LOG)?;
            Box::new(decoder)
        }
        Some(Format::Filter | Format::Foreign(_)) | None => Box::new(whole),
    })
}

/// Recognises the format of a reader and returns it with a reader of the decompressed contents.
///
/// # Errors
///
/// Fails if the reader fails or the zstd decoder cannot be created.
pub fn decompressed<'a>(
    mut reader: impl Read + Send + 'a,
) -> io::Result<(Option<Format>, Box<dyn Read + Send + 'a>)> {
    let start = start_of(&mut reader)?;
    let format = format(&start);
    Ok((format, decoded(format, Cursor::new(start).chain(reader))?))
}
