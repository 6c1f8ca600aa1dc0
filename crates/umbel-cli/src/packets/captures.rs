//! Captures read packet by packet, with warnings for parts that could not be read.

use crate::input::{self, CountedReader, is_stdin, name, total_len};
use crate::report::Rows;
use crate::system::signals;
use crate::terminal::Progress;
use crate::terminal::output::warn;
use anyhow::{Context, Result, bail};
use std::io::Read;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use umbel::Digest;
use umbel_net::capture::streams::StreamCounts;
use umbel_net::capture::{Counts, End, Packet, Reader, Skip, Timestamp};
use umbel_net::traceback::spie::Invariant;

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

/// Calls `handle` for every packet of several captures, until SIGTERM or SIGINT. Standard input has
/// to be the only one.
pub fn each_packet_until_termination(
    captures: &[PathBuf],
    mut handle: impl FnMut(&Packet<'_>) -> Result<()>,
) -> Result<Vec<Counts>> {
    let watch = "cannot watch for signals";
    if let [capture] = captures
        && is_stdin(capture)
    {
        // A blocking read cannot look at a flag, so the signal ends the input instead.
        let input = signals::stdin_until_termination().context(watch)?;
        let handle = |packet: &Packet<'_>| handle(packet).map(ControlFlow::Continue);
        return Ok(vec![each_packet_of(capture, input, handle)?]);
    }
    if captures.iter().any(|capture| is_stdin(capture)) {
        bail!("standard input has to be the only capture");
    }
    let terminated = signals::termination_flag().context(watch)?;
    let mut counts = Vec::new();
    for capture in captures.iter().take_while(|_| !terminated.load(Relaxed)) {
        counts.push(each_packet(capture, |packet| {
            handle(packet)?;
            Ok(if terminated.load(Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?);
    }
    if terminated.load(Relaxed) {
        warn("stopped; the packets before were recorded");
    }
    Ok(counts)
}

/// A packet of a capture that is searched for elsewhere.
pub struct OnePacket {
    /// The number of its frame, from 1.
    pub number: u64,
    pub time: Timestamp,
    pub source: IpAddr,
    pub destination: IpAddr,
    /// The digest of its invariant part.
    pub digest: Digest,
}

/// Returns the packet in the frame with this number, or the first packet of a capture.
pub fn one_packet(path: &Path, number: Option<u64>) -> Result<OnePacket> {
    let mut found = None;
    let counts = each_packet(path, |packet| {
        let Packet { number: at, time, source, destination, .. } = *packet;
        if number.is_some_and(|number| at < number) {
            return Ok(ControlFlow::Continue(()));
        }
        if number.is_none_or(|number| at == number) {
            let digest = Invariant::from_packet(packet.ip)?.digest();
            found = Some(OnePacket { number: at, time, source, destination, digest });
        }
        Ok(ControlFlow::Break(()))
    })?;
    let name = name(path);
    match (found, number) {
        (Some(packet), _) => Ok(packet),
        (None, None) => bail!("{name} contains no IP packet"),
        (None, Some(number)) if counts.frames < number => {
            bail!("{name} has no frame {number}: the last one is {}", counts.frames)
        }
        (None, Some(number)) => bail!("frame {number} of {name} is not an IP packet"),
    }
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
