//! `umbel net scan`: which signatures occur, and where.

use super::signatures;
use crate::commands::found;
use crate::facts::Rows;
use crate::input::{check_not_stdout, is_stdin, may_wait, name, open_bytes, resolve};
use crate::output::{self, Out};
use crate::progress::size;
use anyhow::{Context, Result, bail};
use std::io::{Cursor, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel_net::capture::{Packet, Reader, is_capture};
use umbel_net::signatures::{Finding, Scanner, Search};

/// Find many signatures at once, in the payloads of captures or in files of any kind.
///
/// Every occurrence of every signature is a line of columns with tabs between them. In a file: the signature, and the byte at which it
/// begins, from 0. In a capture: the signature, the number of the packet, from 1, the byte of its payload, source and destination. The
/// payload of each packet is searched by itself. Where there are several inputs, the name of the input comes first. A signature
/// that cannot be printed is written in hexadecimal, after `hex:`.
///
/// Filters make it fast however many signatures there are, and everything that they let pass is compared with the
/// signatures: what is printed is what an exact search finds. Exit code 0 if something was found, 1 if nothing was.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel net scan --rules signatures.txt capture.pcap
  umbel net scan --rules digits.txt --rules-hex *.bin
  tcpdump -w - | umbel net scan --rules signatures.txt -")]
pub struct Args {
    /// A file with a signature in each line, of 1 to 65535 bytes
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,

    /// The signatures are written in hexadecimal, and are printed so
    #[arg(long)]
    rules_hex: bool,

    /// Print only how many occurrences there are
    #[arg(short, long, conflicts_with = "quiet")]
    count: bool,

    /// Print nothing, and stop at the first occurrence
    #[arg(short, long)]
    quiet: bool,

    /// Say on standard error what the filters were asked, and how much memory they take
    #[arg(long)]
    stats: bool,

    /// Captures (pcap, pcapng) and other files; `-` is standard input. What is compressed with gzip or zstd is recognised
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<PathBuf>,
}

/// How much of a file is read at once.
const PIECE: usize = 256 << 10;

pub fn run(args: &Args) -> Result<ExitCode> {
    if is_stdin(&args.rules) && args.inputs.iter().any(|input| is_stdin(input)) {
        bail!("the signatures and what is searched for them cannot both come from standard input");
    }
    let inputs = resolve(&args.inputs)?;
    if !args.count && !args.quiet {
        check_not_stdout(&inputs)?;
    }
    let scanner = signatures::read(&args.rules, args.rules_hex)?;
    let eager = inputs.iter().any(|input| may_wait(input));
    let mut scan = Scan { args, scanner: &scanner, out: Out::new(eager)?, lines: Vec::new() };
    let mut search = scanner.search();
    for input in &inputs {
        if let ControlFlow::Break(()) = scan.input(&mut search, input)? {
            break;
        }
    }
    scan.finish(&search)
}

struct Scan<'a> {
    args: &'a Args,
    scanner: &'a Scanner,
    out: Out,
    lines: Vec<u8>,
}

impl Scan<'_> {
    fn input(&mut self, search: &mut Search, path: &Path) -> Result<ControlFlow<()>> {
        let mut rest = open_bytes(path)?;
        let mut start = Vec::new();
        rest.by_ref().take(4).read_to_end(&mut start).with_context(|| cannot_read(path))?;
        let capture = is_capture(&start);
        let bytes = Cursor::new(start).chain(rest);
        if capture { self.capture(search, path, bytes) } else { self.file(search, path, bytes) }
    }

    fn file(&mut self, search: &mut Search, path: &Path, mut bytes: impl Read) -> Result<ControlFlow<()>> {
        let mut piece = vec![0; PIECE];
        loop {
            let read = match bytes.read(&mut piece) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                read => read.with_context(|| cannot_read(path))?,
            };
            let mut found = |finding| self.found(path, None, finding);
            let flow = match read {
                0 => search.finish(&mut found),
                read => search.feed(&piece[..read], &mut found),
            };
            self.show()?;
            if flow.is_break() || read == 0 {
                return Ok(flow);
            }
        }
    }

    fn capture(
        &mut self,
        search: &mut Search,
        path: &Path,
        bytes: impl Read + Send,
    ) -> Result<ControlFlow<()>> {
        let mut reader = Reader::named(bytes, name(path))?;
        let mut findings = Vec::new();
        while let Some(packet) = reader.next()? {
            findings.clear();
            let flow = search.whole(packet.payload, |finding| {
                findings.push(finding);
                if self.args.quiet { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            if findings.is_empty() {
                continue;
            }
            let ends = ends(&packet);
            let number = reader.counts().frames;
            for finding in &findings {
                let _ = self.found(path, Some((number, &ends)), *finding);
            }
            self.show()?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        let file = name(path);
        if let Some(end) = reader.end()
            && !reader.is_whole()
        {
            output::warn(format_args!("{file} is {end}"));
        }
        for (reason, frames) in reader.counts().skipped.iter().filter(|(_, frames)| *frames > 0) {
            output::warn(format_args!("{file}: {frames} frames have no packet to search: {reason}"));
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Notes a line for something that was found, in a packet or in the whole input.
    fn found(&mut self, path: &Path, packet: Option<(u64, &str)>, finding: Finding) -> ControlFlow<()> {
        if self.args.quiet {
            return ControlFlow::Break(());
        }
        if self.args.count {
            return ControlFlow::Continue(());
        }
        if self.args.inputs.len() > 1 {
            self.lines.extend_from_slice(name(path).as_bytes());
            self.lines.push(b'\t');
        }
        let signature = self.scanner.signature(finding.signature).unwrap_or_default();
        signatures::print(signature, self.args.rules_hex, &mut self.lines);
        // Memory can be written to.
        let _ = match packet {
            Some((number, ends)) => writeln!(self.lines, "\t{number}\t{}\t{ends}", finding.offset),
            None => writeln!(self.lines, "\t{}", finding.offset),
        };
        ControlFlow::Continue(())
    }

    /// Prints the lines that were noted.
    fn show(&mut self) -> Result<()> {
        if !self.lines.is_empty() {
            self.out.write(&self.lines, false)?;
            self.lines.clear();
        }
        Ok(())
    }

    fn finish(mut self, search: &Search) -> Result<ExitCode> {
        let stats = search.stats();
        if self.args.count {
            self.out.write(format!("{}\n", stats.confirmed).as_bytes(), false)?;
        }
        self.out.finish()?;
        if self.args.stats {
            let memory = self.scanner.memory();
            let mut rows = Rows::default();
            rows.add("signatures", self.scanner.len());
            rows.add("lengths", self.scanner.lengths().count());
            rows.add("gates", size(memory.gates));
            rows.add("filters", size(memory.filters));
            rows.add("exact table", size(memory.exact));
            rows.add("bytes searched", stats.bytes);
            rows.add("passed a first gate", stats.passed);
            rows.add("asked of filters", stats.probes);
            rows.add("passed a filter", stats.candidates);
            rows.add("found", stats.confirmed);
            output::say(rows.to_string().trim_end());
        }
        Ok(found(stats.confirmed > 0))
    }
}

fn cannot_read(path: &Path) -> String {
    format!("cannot read {}", name(path))
}

/// Source and destination, with their ports if there are any.
fn ends(packet: &Packet) -> String {
    match packet.ports {
        Some((from, to)) => {
            let [source, destination] =
                [(packet.source, from), (packet.destination, to)].map(std::net::SocketAddr::from);
            format!("{source}\t{destination}")
        }
        None => format!("{}\t{}", packet.source, packet.destination),
    }
}
