//! Captures in: every packet, and on standard error what could not be read.

use crate::input::{self, name, total_len};
use crate::report::Rows;
use crate::terminal::Progress;
use crate::terminal::output::warn;
use anyhow::Result;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use umbel_net::capture::streams::StreamCounts;
use umbel_net::capture::{Counts, End, Packet, Reader, Skip};

/// Gives every packet of a capture to `take`, until it wants no more, and warns of what is missing.
pub fn each_packet(path: &Path, take: impl FnMut(&Packet<'_>) -> Result<ControlFlow<()>>) -> Result<Counts> {
    each_packet_of(path, input::open_raw(path)?, take)
}

/// The same, where the bytes of the capture come from elsewhere.
pub fn each_packet_of(
    path: &Path,
    input: impl Read + Send,
    mut take: impl FnMut(&Packet<'_>) -> Result<ControlFlow<()>>,
) -> Result<Counts> {
    let read = Arc::new(AtomicU64::new(0));
    let progress = Progress::of_bytes(Arc::clone(&read), total_len(&[path.to_owned()]));
    let mut reader = Reader::named(Counted { input, read }, name(path))?;
    while let Some(packet) = reader.next()?
        && take(&packet)?.is_continue()
    {}
    progress.finish();
    warn_of(path, &reader);
    Ok(*reader.counts())
}

/// An input that counts what is read from it.
struct Counted<R> {
    input: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.read.fetch_add(count as u64, Relaxed);
        Ok(count)
    }
}

/// Says how a capture ended if that was not at its end, and which frames were skipped although they should have been packets.
pub fn warn_of(path: &Path, reader: &Reader<'_>) {
    let name = name(path);
    if let Some(end) = reader.end().filter(|end| *end != End::Whole) {
        warn(format_args!("{name} is {end}; the packets before it were read"));
    }
    let Counts { frames, headless, skipped, .. } = reader.counts();
    let strange = |(skip, _): &(Skip, u64)| *skip != Skip::NotIp;
    let reasons: Vec<String> =
        skipped.iter().filter(strange).map(|(skip, count)| format!("{count} {skip}")).collect();
    if !reasons.is_empty() {
        warn(format_args!("{name}: of {frames} frames, these were skipped: {}", reasons.join(", ")));
    }
    if *headless > 0 {
        warn(format_args!(
            "{name}: {headless} packets have no whole transport header, and are taken without ports or payload"
        ));
    }
}

/// What was met, in rows: packets, and what is strange about them.
pub fn add_rows(rows: &mut Rows, all: &[Counts]) {
    let sum = |of: fn(&Counts) -> u64| all.iter().map(of).sum::<u64>();
    let (packets, not_ip) = (sum(|counts| counts.packets), sum(|counts| counts.skipped.of(Skip::NotIp)));
    let others =
        if not_ip > 0 { format!(", and {not_ip} frames that are no IP packets") } else { String::new() };
    rows.add("packets", format!("{packets}{others}"));
    let strange = sum(|counts| counts.skipped.total()) - not_ip;
    if strange > 0 {
        rows.add("skipped", format!("{strange} frames that could not be read"));
    }
    let backwards = sum(|counts| counts.backwards);
    if backwards > 0 {
        rows.add("clock", format!("{backwards} packets are older than the one before them"));
    }
}

/// Says how much of the streams of a capture is missing, since nothing is found across it.
pub fn warn_of_gaps(path: &Path, counts: &StreamCounts) {
    let StreamCounts { gaps, missing, .. } = counts;
    if *gaps > 0 {
        let name = name(path);
        warn(format_args!("{name}: {missing} bytes are missing from TCP streams, in {gaps} places"));
    }
}
