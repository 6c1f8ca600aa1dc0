//! Decompression of pages, within the length that their headers give.

use flate2::bufread::MultiGzDecoder;
use parquet::basic::Compression;
use std::io::{self, Read};

/// The length of a decompressed page that is always allowed.
const FREE_BYTES: usize = 64 << 20;

/// The maximum length of a larger page for each compressed byte: the ratio of gzip. Snappy and LZ4 do
/// not reach it, and of the others only a page that repeats a few bytes without end.
const MAX_RATIO: usize = 1032;

/// Decompresses a page of exactly `length` bytes. Returns `None` if the compression is unknown.
///
/// # Errors
///
/// Fails if the bytes are damaged, or have another length.
pub fn decompress(codec: Compression, bytes: &[u8], length: usize) -> io::Result<Option<Vec<u8>>> {
    if length > FREE_BYTES.max(bytes.len().saturating_mul(MAX_RATIO)) {
        return Err(invalid("it would be more than a thousand times as long without its compression"));
    }
    let page = match codec {
        Compression::UNCOMPRESSED => bytes.to_vec(),
        Compression::SNAPPY => {
            // Its own header must agree before memory is taken.
            if snap::raw::decompress_len(bytes).map_err(invalid)? != length {
                return Err(invalid("it has another length than its header says"));
            }
            snap::raw::Decoder::new().decompress_vec(bytes).map_err(invalid)?
        }
        Compression::GZIP(_) => read(MultiGzDecoder::new(bytes), length)?,
        Compression::ZSTD(_) => read(zstd::Decoder::with_buffer(bytes)?, length)?,
        Compression::BROTLI(_) => read(brotli_decompressor::Decompressor::new(bytes, 4096), length)?,
        Compression::LZ4_RAW => lz4(bytes, length)?,
        Compression::LZ4 => match hadoop_lz4(bytes, length) {
            Some(page) => page,
            // Some writers used this name for frames, and some for bare blocks.
            None if bytes.starts_with(&LZ4_FRAME) => read(lz4_flex::frame::FrameDecoder::new(bytes), length)?,
            None => lz4(bytes, length)?,
        },
        _ => return Ok(None),
    };
    match page.len() == length {
        true => Ok(Some(page)),
        false => Err(invalid("it has another length than its header says")),
    }
}

/// The first bytes of a frame of LZ4.
const LZ4_FRAME: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Reads at most one byte more than expected, so that memory follows what was really there.
fn read(reader: impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    reader.take(length as u64 + 1).read_to_end(&mut page)?;
    Ok(page)
}

fn lz4(bytes: &[u8], length: usize) -> io::Result<Vec<u8>> {
    // A block of LZ4 is at most 255 times as long without its compression.
    if length > bytes.len().saturating_mul(255) {
        return Err(invalid("it is too short for its length"));
    }
    lz4_flex::block::decompress(bytes, length).map_err(invalid)
}

/// Decompresses the blocks of Hadoop: before each its two lengths, with the highest byte first.
fn hadoop_lz4(mut bytes: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut page = Vec::new();
    let number = |bytes: &mut &[u8]| {
        let (number, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        usize::try_from(u32::from_be_bytes(*number)).ok()
    };
    while !bytes.is_empty() {
        let (plain, packed) = (number(&mut bytes)?, number(&mut bytes)?);
        let (block, rest) = bytes.split_at_checked(packed)?;
        if plain > length - page.len() {
            return None;
        }
        page.extend(lz4(block, plain).ok().filter(|block| block.len() == plain)?);
        bytes = rest;
    }
    Some(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn pages() -> Vec<(Compression, Vec<u8>)> {
        let text = b"one two three ".repeat(100);
        let block = lz4_flex::block::compress(&text);
        let be = |number: usize| (number as u32).to_be_bytes();
        let hadoop = [&be(text.len())[..], &be(block.len()), &block].concat();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).unwrap();
        vec![
            (Compression::UNCOMPRESSED, text.clone()),
            (Compression::SNAPPY, snap::raw::Encoder::new().compress_vec(&text).unwrap()),
            (Compression::GZIP(Default::default()), gzip.finish().unwrap()),
            (Compression::ZSTD(Default::default()), zstd::encode_all(&text[..], 1).unwrap()),
            (Compression::LZ4_RAW, block.clone()),
            (Compression::LZ4, hadoop),
            (Compression::LZ4, block),
        ]
    }

    #[test]
    fn pages_are_decompressed_to_their_length_only() {
        let text = b"one two three ".repeat(100);
        for (codec, page) in pages() {
            assert_eq!(decompress(codec, &page, text.len()).unwrap().unwrap(), text, "{codec:?}");
            for length in [0, 1, text.len() - 1, text.len() + 1, 1 << 30, usize::MAX] {
                assert!(decompress(codec, &page, length).is_err(), "{codec:?} to {length} bytes");
            }
        }
    }

    #[test]
    fn damaged_pages_are_refused_or_have_their_length() {
        for (codec, page) in pages() {
            for cut in 0..page.len() {
                assert!(decompress(codec, &page[..cut], 1400).is_err(), "{codec:?} cut at {cut}");
            }
            for bit in 0..8 * page.len() {
                let mut bad = page.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                if let Ok(Some(page)) = decompress(codec, &bad, 1400) {
                    assert_eq!(page.len(), 1400);
                }
            }
        }
    }
}
