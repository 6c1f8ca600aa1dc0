//! The bytes of a foreign file: from memory, from an open file, from a mapping, or unpacked from
//! gzip. A length in a file is checked against the bytes that are left before memory is taken.

use super::bits::{Bits, Order};
use crate::file::FormatError;
use crate::{Error, Result};
use flate2::bufread::MultiGzDecoder;
#[cfg(feature = "mmap")]
use memmap2::Mmap;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;
#[cfg(feature = "mmap")]
use std::sync::Arc;

/// The most bytes that one byte of gzip can stand for: a run of 258 bytes takes at least two bits.
const MAX_GZIP_RATIO: u64 = 1032;

/// The bytes that are left to read.
pub(super) struct Source<'a> {
    input: Input<'a>,
    /// The number of bytes read so far.
    taken: u64,
    /// The number of bytes that are left; for gzip, the most that can be.
    left: u64,
}

enum Input<'a> {
    Plain(Box<dyn Read + 'a>),
    Packed(Box<dyn Read + 'a>),
    #[cfg(feature = "mmap")]
    Mapped(Arc<Mmap>),
}

impl<'a> Source<'a> {
    /// Reads `len` bytes.
    pub fn plain(from: impl Read + 'a, len: u64) -> Source<'a> {
        Source { input: Input::Plain(Box::new(from)), taken: 0, left: len }
    }

    /// Reads what `len` bytes of gzip unpack to.
    pub fn packed(from: impl Read + 'a, len: u64) -> Source<'a> {
        let input = Input::Packed(Box::new(MultiGzDecoder::new(BufReader::new(from))));
        Source { input, taken: 0, left: len.saturating_mul(MAX_GZIP_RATIO) }
    }

    /// Uses a mapped file, whose bytes are not gzip.
    #[cfg(feature = "mmap")]
    pub fn mapped(map: Arc<Mmap>) -> Source<'a> {
        Source { left: map.len() as u64, input: Input::Mapped(map), taken: 0 }
    }

    /// Fails unless this many bytes are left.
    pub fn expect(&self, len: u64) -> Result<()> {
        let (expected, found) = (self.taken.saturating_add(len), self.taken + self.left);
        if len <= self.left {
            return Ok(());
        }
        match self.input {
            Input::Packed(_) => Err(FormatError::invalid(format!(
                "its header asks for {expected} bytes, more than gzip can pack into a file of this length"
            ))
            .into()),
            _ => Err(FormatError::Length { expected, found }.into()),
        }
    }

    /// Fills a buffer.
    pub fn read(&mut self, to: &mut [u8]) -> Result<()> {
        self.expect(to.len() as u64)?;
        let mut filled = 0;
        while filled < to.len() {
            let rest = &mut to[filled..];
            let read = match &mut self.input {
                Input::Plain(from) => from.read(rest).map_err(failed),
                Input::Packed(from) => from.read(rest).map_err(unpacking_failed),
                #[cfg(feature = "mmap")]
                Input::Mapped(map) => {
                    let start = self.taken as usize + filled;
                    rest.copy_from_slice(&map[start..start + rest.len()]);
                    Ok(rest.len())
                }
            };
            match read {
                Ok(0) => {
                    let [expected, found] = [to.len(), filled].map(|len| self.taken + len as u64);
                    return Err(FormatError::Length { expected, found }.into());
                }
                Ok(read) => filled += read,
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.taken += filled as u64;
        self.left -= filled as u64;
        Ok(())
    }

    /// Reads `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    /// Returns the next bytes without taking them, at most `N`.
    pub fn peek<const N: usize>(&mut self) -> Result<Vec<u8>> {
        let mut start = vec![0; self.left.min(N as u64) as usize];
        let (taken, left) = (self.taken, self.left);
        self.read(&mut start)?;
        (self.taken, self.left) = (taken, left);
        match &mut self.input {
            Input::Plain(from) | Input::Packed(from) => {
                let rest = std::mem::replace(from, Box::new(io::empty()));
                *from = Box::new(Cursor::new(start.clone()).chain(rest));
            }
            #[cfg(feature = "mmap")]
            Input::Mapped(_) => {}
        }
        Ok(start)
    }

    /// Returns the number of bytes that are left.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Returns whether all bytes were read. For gzip, this verifies the checksum.
    pub fn is_at_end(&mut self) -> Result<bool> {
        if let Input::Packed(from) = &mut self.input {
            return match from.read(&mut [0]) {
                Ok(read) => Ok(read == 0),
                Err(error) => Err(unpacking_failed(error)),
            };
        }
        Ok(self.left == 0)
    }

    /// Reads the bit set, `len` bytes long.
    pub fn bits(&mut self, len: u64, order: Order) -> Result<Bits> {
        self.expect(len)?;
        let bytes = usize::try_from(len).map_err(|_| Error::OutOfMemory { bytes: len })?;
        #[cfg(feature = "mmap")]
        if let Input::Mapped(map) = &self.input {
            let bits = Bits::mapped(Arc::clone(map), self.taken as usize, bytes, order);
            self.taken += len;
            self.left -= len;
            return Ok(bits);
        }
        let mut bits = Bits::zero(bytes, order);
        self.read(bits.bytes_mut()?)?;
        Ok(bits)
    }

    /// Reads the rest, which is user data: at most `max_plain` bytes, or `max` if they are unpacked
    /// from gzip.
    pub fn rest(&mut self, max_plain: u64, max: u64) -> Result<Vec<u8>> {
        let mut rest = Vec::new();
        if !matches!(self.input, Input::Packed(_)) && self.left > max_plain {
            let what = format!("it has {} bytes of user data, and at most {max_plain} make sense", self.left);
            return Err(FormatError::invalid(what).into());
        }
        match &mut self.input {
            Input::Plain(from) => {
                from.take(self.left).read_to_end(&mut rest).map_err(failed)?;
            }
            Input::Packed(from) => {
                from.take(max.saturating_add(1)).read_to_end(&mut rest).map_err(unpacking_failed)?;
                if rest.len() as u64 > max {
                    let what = format!("after its bits, more than {max} bytes are packed into it");
                    return Err(FormatError::invalid(what).into());
                }
            }
            #[cfg(feature = "mmap")]
            Input::Mapped(map) => rest.extend_from_slice(&map[self.taken as usize..]),
        }
        self.taken += rest.len() as u64;
        self.left = 0;
        Ok(rest)
    }

    /// Fails if bytes are left.
    pub fn finish(mut self) -> Result<()> {
        if self.is_at_end()? {
            return Ok(());
        }
        match self.input {
            Input::Packed(_) => {
                Err(FormatError::invalid("something was packed into it after its bits").into())
            }
            _ => Err(FormatError::Length { expected: self.taken, found: self.taken + self.left }.into()),
        }
    }
}

/// Returns whether bytes start as gzip does.
pub(super) fn is_gzip(start: &[u8]) -> bool {
    start.starts_with(&[0x1f, 0x8b])
}

/// Unpacks as many bytes as are there, to fill `to`; returns their number.
pub(super) fn unpack_start(packed: &[u8], to: &mut [u8]) -> usize {
    let (mut from, mut filled) = (MultiGzDecoder::new(packed), 0);
    while let Ok(read) = from.read(&mut to[filled..]) {
        if read == 0 {
            break;
        }
        filled += read;
    }
    filled
}

fn failed(source: io::Error) -> Error {
    Error::io(Path::new(""), "read", source)
}

fn unpacking_failed(source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::UnexpectedEof => {
            FormatError::invalid("its gzip data ends too early: copy it again").into()
        }
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            FormatError::invalid(format!("its gzip data is damaged ({source}): copy it again")).into()
        }
        _ => failed(source),
    }
}
