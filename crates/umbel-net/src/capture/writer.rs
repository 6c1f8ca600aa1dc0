//! Writing of captures: for tests, for generated traffic, and for inspecting packets with other
//! programs.

use super::{Link, NANOS_PER_SECOND, Timestamp};
use std::io::{self, Write};

/// A writer of pcap files with nanosecond timestamps.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
}

impl<W: Write> Writer<W> {
    /// Writes the header of a file with this link type. The writer should be buffered.
    ///
    /// # Errors
    ///
    /// Fails if writing fails.
    pub fn new(mut out: W, link: Link) -> io::Result<Writer<W>> {
        out.write_all(&0xa1b2_3c4d_u32.to_le_bytes())?;
        // Version 2.4; time zone and accuracy are always 0.
        out.write_all(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0])?;
        out.write_all(&262_144_u32.to_le_bytes())?;
        out.write_all(&u32::from(link.0).to_le_bytes())?;
        Ok(Writer { out })
    }

    /// Writes a frame.
    ///
    /// # Errors
    ///
    /// Fails if writing fails, or if the time or the length does not fit in a pcap file.
    pub fn write(&mut self, time: Timestamp, frame: &[u8]) -> io::Result<()> {
        let too_long = |_| io::Error::new(io::ErrorKind::InvalidInput, "a frame of more than 4 GiB");
        self.write_cut(time, frame, u32::try_from(frame.len()).map_err(too_long)?)
    }

    /// Writes the captured part of a frame that was longer on the wire.
    ///
    /// # Errors
    ///
    /// Fails if writing fails, or if the time or a length does not fit in a pcap file.
    pub fn write_cut(&mut self, time: Timestamp, captured: &[u8], length: u32) -> io::Result<()> {
        let unfit =
            |_| io::Error::new(io::ErrorKind::InvalidInput, "a pcap file cannot hold this time or length");
        let seconds = u32::try_from(time.nanos() / NANOS_PER_SECOND).map_err(unfit)?;
        let nanos = u32::try_from(time.nanos() % NANOS_PER_SECOND).map_err(unfit)?;
        let caught = u32::try_from(captured.len()).map_err(unfit)?;
        for field in [seconds, nanos, caught, length] {
            self.out.write_all(&field.to_le_bytes())?;
        }
        self.out.write_all(captured)
    }

    /// Returns the underlying writer.
    pub fn into_inner(self) -> W {
        self.out
    }
}
