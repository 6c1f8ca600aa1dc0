//! `umbel net scan`: which signatures occur, and where.

use super::signatures;
use crate::commands::found;
use crate::facts::Rows;
use crate::input::{check_not_stdout, is_stdin, may_wait, name, open_bytes, resolve};
use crate::output::{self, Out};
use crate::progress::size;
use anyhow::{Context, Result, bail};
use std::fmt;
use std::io::{Cursor, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
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
        if let Flow::Break(result) = scan.input(&mut search, input)? {
            result?;
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

/// A packet, for those who are told what was found in it.
struct Sender {
    number: u64,
    source: IpAddr,
    destination: IpAddr,
    ports: Option<(u16, u16)>,
}

/// A search ends early because one finding is enough, or because it cannot be printed.
type Flow = ControlFlow<Result<()>>;

impl Scan<'_> {
    fn input(&mut self, search: &mut Search, path: &Path) -> Result<Flow> {
        let mut rest = open_bytes(path)?;
        let mut start = Vec::new();
        rest.by_ref().take(4).read_to_end(&mut start).with_context(|| cannot_read(path))?;
        let capture = is_capture(&start);
        let bytes = Cursor::new(start).chain(rest);
        if capture { self.capture(search, path, bytes) } else { self.file(search, path, bytes) }
    }

    fn file(&mut self, search: &mut Search, path: &Path, mut bytes: impl Read) -> Result<Flow> {
        let mut piece = vec![0; PIECE];
        loop {
            let read = match bytes.read(&mut piece) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
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

    fn capture(&mut self, search: &mut Search, path: &Path, bytes: impl Read + Send) -> Result<Flow> {
        let mut reader = Reader::named(bytes, name(path))?;
        let mut payload = Vec::new();
        while let Some(packet) = reader.next()? {
            // A copy, since the reader tells the packet's number only when the packet is given back.
            payload.clear();
            payload.extend_from_slice(packet.payload);
            let Packet { source, destination, ports, .. } = packet;
            let sender = Sender { number: reader.counts().frames, source, destination, ports };
            let flow = search.whole(&payload, |finding| self.found(path, Some(&sender), finding));
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
            output::warn(format_args!("{file}: frames without a packet to search, {reason}: {frames}"));
        }
        Ok(Flow::Continue(()))
    }

    /// Notes a line for something that was found, in a packet or in a whole file.
    fn found(&mut self, path: &Path, sender: Option<&Sender>, finding: Finding) -> Flow {
        if self.args.quiet {
            return Flow::Break(Ok(()));
        }
        if self.args.count {
            return Flow::Continue(());
        }
        let lines = &mut self.lines;
        if self.args.inputs.len() > 1 {
            lines.extend_from_slice(name(path).as_bytes());
            lines.push(b'\t');
        }
        let signature = self.scanner.signature(finding.signature).unwrap_or_default();
        signatures::print(signature, self.args.rules_hex, lines);
        // Memory can be written to.
        let _ = match sender {
            Some(sender) => writeln!(lines, "\t{}\t{}\t{sender}", sender.number, finding.offset),
            None => writeln!(lines, "\t{}", finding.offset),
        };
        // In little data there may be much to find.
        match self.lines.len() > PIECE {
            true => self.show().map_or_else(|error| Flow::Break(Err(error)), Flow::Continue),
            false => Flow::Continue(()),
        }
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

impl fmt::Display for Sender {
    /// Source and destination, with their ports if there are any.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ports {
            Some((from, to)) => {
                write!(f, "{}\t{}", SocketAddr::new(self.source, from), SocketAddr::new(self.destination, to))
            }
            None => write!(f, "{}\t{}", self.source, self.destination),
        }
    }
}
