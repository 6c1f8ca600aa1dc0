//! Captures written: for tests, for generated traffic, and for packets that are to be looked at with other programs.

use super::{Link, NANOS_PER_SECOND, Timestamp};
use std::io::{self, Write};

/// Writes packets as a pcap file, with nanoseconds.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
}

impl<W: Write> Writer<W> {
    /// Writes the head of a file whose frames begin as the link type says. The writer should be buffered.
    pub fn new(mut out: W, link: Link) -> io::Result<Writer<W>> {
        out.write_all(&0xa1b2_3c4d_u32.to_le_bytes())?;
        // Version 2.4, time zone and accuracy as always.
        out.write_all(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0])?;
        out.write_all(&262_144_u32.to_le_bytes())?;
        out.write_all(&u32::from(link.0).to_le_bytes())?;
        Ok(Writer { out })
    }

    /// Writes a frame.
    pub fn write(&mut self, time: Timestamp, frame: &[u8]) -> io::Result<()> {
        let too_long = |_| io::Error::new(io::ErrorKind::InvalidInput, "a frame of more than 4 GiB");
        self.write_cut(time, frame, u32::try_from(frame.len()).map_err(too_long)?)
    }

    /// Writes what was captured of a frame that was longer on the wire.
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

    /// What was written to.
    pub fn into_inner(self) -> W {
        self.out
    }
}
