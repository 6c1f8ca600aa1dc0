//! Captures read packet by packet, with warnings for parts that could not be read.

use crate::input::{self, CountedReader, name, total_len};
use crate::report::Rows;
use crate::terminal::Progress;
use crate::terminal::output::warn;
use anyhow::Result;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use umbel_net::capture::streams::StreamCounts;
use umbel_net::capture::{Counts, End, Packet, Reader, Skip};

/// Calls `handle` for every packet of a capture until it breaks, and warns of packets that could
/// not be read.
pub fn each_packet(
    path: &Path,
    handle: impl FnMut(&Packet<'_>) -> Result<ControlFlow<()>>,
) -> Result<Counts> {
    each_packet_of(path, input::open_raw(path)?, handle)
}

/// Does the same as [`each_packet`] for a capture whose bytes come from `input`.
pub fn each_packet_of(
    path: &Path,
    input: impl Read + Send,
    mut handle: impl FnMut(&Packet<'_>) -> Result<ControlFlow<()>>,
) -> Result<Counts> {
    let read = Arc::new(AtomicU64::new(0));
    let progress = Progress::of_bytes(Arc::clone(&read), total_len(&[path.to_owned()]));
    let mut reader = Reader::named(CountedReader::new(input, read), name(path))?;
    while let Some(packet) = reader.next()?
        && handle(&packet)?.is_continue()
    {}
    progress.finish();
    warn_of_losses(path, &reader);
    Ok(*reader.counts())
}

/// Warns if the capture ends early, and of frames that were skipped although they should be
/// packets.
pub fn warn_of_losses(path: &Path, reader: &Reader<'_>) {
    let name = name(path);
    if let Some(end) = reader.end().filter(|end| *end != End::Whole) {
        warn(format_args!("{name} is {end}; the packets before it were read"));
    }
    let Counts { frames, headless, skipped, .. } = reader.counts();
    let unexpected = |(skip, _): &(Skip, u64)| *skip != Skip::NotIp;
    let reasons: Vec<String> =
        skipped.iter().filter(unexpected).map(|(skip, count)| format!("{count} {skip}")).collect();
    if !reasons.is_empty() {
        warn(format_args!("{name}: of {frames} frames, these were skipped: {}", reasons.join(", ")));
    }
    if *headless > 0 {
        warn(format_args!(
            "{name}: {headless} packets have no whole transport header, and are taken without ports or payload"
        ));
    }
}

/// Adds rows for the number of packets and for irregularities.
pub fn add_rows(rows: &mut Rows, all: &[Counts]) {
    let sum = |of: fn(&Counts) -> u64| all.iter().map(of).sum::<u64>();
    let (packets, not_ip) = (sum(|counts| counts.packets), sum(|counts| counts.skipped.count(Skip::NotIp)));
    let others =
        if not_ip > 0 { format!(", and {not_ip} frames without an IP packet") } else { String::new() };
    rows.add("packets", format!("{packets}{others}"));
    let unexpected = sum(|counts| counts.skipped.total()) - not_ip;
    if unexpected > 0 {
        rows.add("skipped", format!("{unexpected} frames that could not be read"));
    }
    let backwards = sum(|counts| counts.backwards);
    if backwards > 0 {
        rows.add("clock", format!("{backwards} packets are older than the one before them"));
    }
}

/// Warns of bytes that are missing from TCP streams, since nothing is found across a gap.
pub fn warn_of_gaps(path: &Path, counts: &StreamCounts) {
    let StreamCounts { gaps, missing, .. } = counts;
    if *gaps > 0 {
        let name = name(path);
        warn(format_args!("{name}: {missing} bytes are missing from TCP streams, in {gaps} places"));
    }
}
