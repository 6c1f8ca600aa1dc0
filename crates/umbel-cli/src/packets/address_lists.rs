//! Files with an address in each line.

use crate::input::{LineLimit, Records, open_whole_lines};
use crate::pipeline;
use crate::terminal::output::{Out, warn};
use anyhow::Result;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use umbel_net::blocklist::Blocklist;
use umbel_net::blocklist::protocol::{Entry, entry};
use umbel_net::network::Prefix;

/// Lines that were not understood.
#[derive(Default)]
struct UnreadLines {
    lines: u64,
    first: Option<String>,
}

impl UnreadLines {
    fn add(&mut self, other: UnreadLines) {
        self.lines += other.lines;
        self.first = self.first.take().or(other.first);
    }

    /// Warns of skipped lines.
    fn report(self) {
        if let Some(first) = self.first {
            warn(format_args!("lines that were skipped: {}; of the first, {first}", self.lines));
        }
    }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Parses the lines of a block.
fn parse_lines<'a, T>(
    records: &'a Records,
    parse: impl Fn(&'a [u8]) -> umbel_net::Result<Option<T>>,
) -> (Vec<T>, UnreadLines) {
    let (mut all, mut unread) = (Vec::new(), UnreadLines::default());
    for line in (0..records.key_count()).map(|i| records.record(i).1) {
        match parse(line) {
            Ok(found) => all.extend(found),
            Err(error) => unread.add(UnreadLines { lines: 1, first: Some(format!("{error:#}")) }),
        }
    }
    (all, unread)
}

/// Parses the lines of files, in order.
fn read_all<T: Send>(
    files: &[PathBuf],
    max_line: LineLimit,
    parse: impl Fn(&[u8]) -> umbel_net::Result<Option<T>> + Sync,
) -> Result<Vec<T>> {
    let (mut all, mut unread) = (Vec::new(), UnreadLines::default());
    // An empty list of files would be standard input.
    if !files.is_empty() {
        pipeline::run(
            open_whole_lines(files, max_line)?,
            threads(),
            |_, records| Ok(parse_lines(records, &parse)),
            |(more, lost), _| {
                all.extend(more);
                unread.add(lost);
                Ok(ControlFlow::Continue(()))
            },
        )?;
    }
    unread.report();
    Ok(all)
}

/// Reads the entries of lists.
pub fn read_lists(files: &[PathBuf], max_line: LineLimit) -> Result<Vec<Entry>> {
    let entries = read_all(files, max_line, entry)?;
    let cleared = entries.iter().filter(|entry| entry.cleared).count();
    if cleared > 0 {
        warn(format_args!("prefixes with bits behind their length, which were cleared: {cleared}"));
    }
    Ok(entries)
}

/// Reads the addresses in files.
pub fn read_addresses(files: &[PathBuf], max_line: LineLimit) -> Result<Vec<IpAddr>> {
    read_all(files, max_line, address)
}

/// Returns the address at the start of a line, such as a line of a log.
fn address(line: &[u8]) -> umbel_net::Result<Option<IpAddr>> {
    let word = line.trim_ascii().split(u8::is_ascii_whitespace).next().unwrap_or_default();
    if word.is_empty() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(word);
    let prefix: Prefix = text.parse()?;
    let wrong = || umbel::Error::parameter("address", &text, "a single address");
    Ok(Some(prefix.as_host().ok_or_else(wrong)?))
}

/// Prints the lines whose addresses are blocked; returns their number.
pub fn print_blocked(list: &Blocklist, files: &[PathBuf], max_line: LineLimit) -> Result<u64> {
    let mut out = Out::new(false)?;
    let (mut count, mut unread) = (0, UnreadLines::default());
    pipeline::run(
        open_whole_lines(files, max_line)?.printing()?,
        threads(),
        |_, records| {
            let (found, unread) =
                parse_lines(records, |line| Ok(address(line)?.map(|address| (address, line))));
            let (addresses, lines): (Vec<IpAddr>, Vec<&[u8]>) = found.into_iter().unzip();
            let verdicts = list.check_all(&addresses);
            let blocked = lines.iter().zip(verdicts).filter(|(_, verdict)| verdict.is_blocked());
            let lines: Vec<&[u8]> = blocked.map(|(line, _)| *line).collect();
            let text: Vec<u8> = lines.iter().flat_map(|line| [line, &b"\n"[..]]).flatten().copied().collect();
            Ok((text, lines.len() as u64, unread))
        },
        |(text, blocked, lost), info| {
            count += blocked;
            unread.add(lost);
            out.write(&text, info.caught_up)?;
            Ok(ControlFlow::Continue(()))
        },
    )?;
    out.finish()?;
    unread.report();
    Ok(count)
}
