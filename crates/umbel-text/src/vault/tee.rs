//! Reads contents for their words and copies them at the same time.

use super::document::Sealer;
use std::io::{self, Read, Write};

/// A destination for contents that are read for their words.
pub(super) trait Sink {
    fn push(&mut self, bytes: &[u8]) -> io::Result<()>;
}

impl<W: Write> Sink for Sealer<'_, W> {
    fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        Sealer::push(self, bytes)
    }
}

/// A sink that discards everything.
pub(super) struct Discard;

impl Sink for Discard {
    fn push(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

/// The side on which a [`Tee`] failed.
pub(super) enum Failed {
    Reading(io::Error),
    Writing(io::Error),
}

/// A reader that copies everything to a sink. It records the first error, even if a decoder reading
/// from it reports another.
pub(super) struct Tee<R, T> {
    pub from: R,
    pub to: T,
    pub failed: Option<Failed>,
}

impl<R: Read, T: Sink> Read for Tee<R, T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let stopped = || io::Error::other("it cannot be read on");
        if self.failed.is_some() {
            return Err(stopped());
        }
        let read = match self.from.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(error) => {
                self.failed = Some(Failed::Reading(error));
                return Err(stopped());
            }
            Ok(read) => read,
        };
        if let Err(error) = self.to.push(&buffer[..read]) {
            self.failed = Some(Failed::Writing(error));
            return Err(stopped());
        }
        Ok(read)
    }
}
