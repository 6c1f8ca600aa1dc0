//! What is in a file: told by its first bytes, and decompressed where it is compressed.
//!
//! ```
//! use std::io::Read;
//! use umbel_text::content::{self, Format};
//!
//! // A frame of zstd with nothing but these five bytes.
//! let packed = b"\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00hello";
//! let mut text = String::new();
//! let (format, mut reader) = content::decompressed(&packed[..])?;
//! reader.read_to_string(&mut text)?;
//! assert_eq!((format, &text[..]), (Some(Format::Zstd), "hello"));
//! # Ok::<(), std::io::Error>(())
//! ```

use std::io::{self, BufReader, Cursor, Read};

/// What a file is, if it is not taken for text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A filter of ours.
    Filter,
    /// Compressed, and understood here.
    Gzip,
    /// Compressed, and understood here.
    Zstd,
    /// Compressed by a program that has to decompress it too.
    Foreign(&'static str),
}

/// How such files start.
const FORMATS: [(Format, &[u8]); 7] = [
    (Format::Filter, &umbel::file::MAGIC),
    (Format::Gzip, &[0x1f, 0x8b, 0x08]),
    (Format::Zstd, &[0x28, 0xb5, 0x2f, 0xfd]),
    // What parallel zstd starts with: a frame to be skipped.
    (Format::Zstd, &[0x50, 0x2a, 0x4d, 0x18]),
    (Format::Foreign("xz"), &[0xfd, b'7', b'z', b'X', b'Z', 0]),
    (Format::Foreign("lz4"), &[0x04, 0x22, 0x4d, 0x18]),
    (Format::Foreign("bzip2"), b"BZh91AY&SY"),
];

/// What something is that starts so.
pub fn format(start: &[u8]) -> Option<Format> {
    FORMATS.iter().find(|(_, magic)| start.starts_with(magic)).map(|(format, _)| *format)
}

/// As many bytes as it takes to tell what this is: of a slow pipe no more than that.
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

/// What comes out when it is decompressed, if it is compressed in a way that is understood here.
pub fn decoded<'a>(
    format: Option<Format>,
    whole: impl Read + Send + 'a,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    Ok(match format {
        Some(Format::Gzip) => {
            Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(1 << 16, whole)))
        }
        Some(Format::Zstd) => Box::new(zstd::Decoder::new(whole)?),
        Some(Format::Filter | Format::Foreign(_)) | None => Box::new(whole),
    })
}

/// What this is, and what comes out of it: decompressed if that is understood here, else as it is.
pub fn decompressed<'a>(
    mut reader: impl Read + Send + 'a,
) -> io::Result<(Option<Format>, Box<dyn Read + Send + 'a>)> {
    let start = start_of(&mut reader)?;
    let format = format(&start);
    Ok((format, decoded(format, Cursor::new(start).chain(reader))?))
}
