//! `umbel net scan`: finds signatures in captures and files.

use crate::args::headings;
use crate::input::{check_not_stdout, is_stdin, may_wait, name, open_bytes, resolve};
use crate::packets::{captures, signatures};
use crate::report::{Rows, size};
use crate::terminal::exit::found;
use crate::terminal::output::{self, Out};
use anyhow::{Context, Result, bail};
use std::fmt;
use std::io::{Cursor, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use umbel_net::capture::streams::{Limits, StreamCounts};
use umbel_net::capture::{Packet, Reader, is_capture};
use umbel_net::signatures::{Finding, Scanner, Search, StreamFinding, StreamSearch};

/// Find many signatures at once, in the payloads of captures or in any files.
///
/// Each occurrence of a signature is printed as a line with tabs. In a file: the signature, and the
/// byte at which it begins, from 0. In a capture: the signature, the number of the packet, from 1,
/// the byte of its payload, source and destination; the payload of each packet is searched
/// separately. With several inputs, the name of the input comes first. A signature that cannot be
/// printed is written in hexadecimal after `hex:`.
///
/// --streams reassembles TCP first, each direction of a connection separately, so that a signature
/// is found however it was split into packets. The packet is then the one with the signature's last
/// byte, the byte is its position in the stream, and a column with `stream` and its number, from 1,
/// follows. A signature is reported once all data before it has arrived; none is found across bytes
/// that are missing in the capture. Where segments overlap, the bytes that arrived first count. A
/// segment that repeats bytes is also searched separately, as are packets of other protocols,
/// without that column.
///
/// Filters make the search fast for any number of signatures, and all their matches are verified,
/// so the result is exact. The exit code is 0 if a signature was found, 1 if none was.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel net scan --rules signatures.txt capture.pcap
  umbel net scan --rules signatures.txt --streams capture.pcap
  umbel net scan --rules magic.hex --rules-hex plans.pdf
  tcpdump -w - | umbel net scan --rules signatures.txt -")]
pub struct Args {
    /// Captures (pcap, pcapng) and other files; `-` means standard input. Files compressed with
    /// gzip or zstd are decompressed
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<PathBuf>,

    /// File with one signature per line, of 1 to 65535 bytes
    #[arg(long, value_name = "FILE", help_heading = headings::SEARCH)]
    rules: PathBuf,

    /// Read and print signatures in hexadecimal
    #[arg(long, help_heading = headings::SEARCH)]
    rules_hex: bool,

    /// Search the TCP streams of captures instead of each segment separately
    #[arg(long, help_heading = headings::SEARCH)]
    streams: bool,

    /// Print only the number of occurrences
    #[arg(short, long, conflicts_with = "quiet", help_heading = headings::OUTPUT)]
    count: bool,

    /// Print nothing, and stop at the first occurrence
    #[arg(short, long, help_heading = headings::OUTPUT)]
    quiet: bool,

    /// Report on standard error the number of queries to the filters and their memory
    #[arg(long, help_heading = headings::OUTPUT)]
    stats: bool,
}

/// The number of bytes of a file that are read at once.
const READ_BYTES: usize = 256 << 10;

pub fn run(args: &Args) -> Result<ExitCode> {
    if is_stdin(&args.rules) && args.inputs.iter().any(|input| is_stdin(input)) {
        bail!("the signatures and the input cannot both come from standard input");
    }
    let inputs = resolve(&args.inputs)?;
    if !args.count && !args.quiet {
        check_not_stdout(&inputs)?;
    }
    let scanner = signatures::read(&args.rules, args.rules_hex)?;
    let eager = inputs.iter().any(|input| may_wait(input));
    let (lines, stream_counts) = Default::default();
    let mut scan = Scan { args, scanner: &scanner, out: Out::new(eager)?, lines, stream_counts };
    let mut search = scanner.search();
    for input in &inputs {
        if let Flow::Break(result) = scan.search_input(&mut search, input)? {
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
    /// The counts of all streams.
    stream_counts: StreamCounts,
}

/// The packet or stream in which a signature was found.
struct PacketPlace {
    packet: u64,
    source: IpAddr,
    destination: IpAddr,
    ports: Option<(u16, u16)>,
    stream: Option<u64>,
}

/// A search breaks if one finding is enough, or with an error if a finding cannot be printed.
type Flow = ControlFlow<Result<()>>;

impl Scan<'_> {
    fn search_input(&mut self, search: &mut Search, path: &Path) -> Result<Flow> {
        let mut rest = open_bytes(path)?;
        let mut start = Vec::new();
        rest.by_ref().take(4).read_to_end(&mut start).with_context(|| cannot_read(path))?;
        let capture = is_capture(&start);
        let bytes = Cursor::new(start).chain(rest);
        if capture { self.search_capture(search, path, bytes) } else { self.search_file(search, path, bytes) }
    }

    fn search_file(&mut self, search: &mut Search, path: &Path, mut bytes: impl Read) -> Result<Flow> {
        let mut piece = vec![0; READ_BYTES];
        loop {
            let read = match bytes.read(&mut piece) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.with_context(|| cannot_read(path))?,
            };
            let mut found = |finding| self.add_line(path, None, finding);
            let flow = match read {
                0 => search.finish(&mut found),
                read => search.feed(&piece[..read], &mut found),
            };
            self.flush_lines()?;
            if flow.is_break() || read == 0 {
                return Ok(flow);
            }
        }
    }

    fn search_capture(&mut self, search: &mut Search, path: &Path, bytes: impl Read + Send) -> Result<Flow> {
        let mut reader = Reader::named(bytes, name(path))?;
        let flow = match self.args.streams {
            true => self.search_streams(search, path, &mut reader)?,
            false => self.search_packets(search, path, &mut reader)?,
        };
        if flow.is_continue() {
            captures::warn_of_losses(path, &reader);
        }
        Ok(flow)
    }

    fn search_packets(&mut self, search: &mut Search, path: &Path, reader: &mut Reader) -> Result<Flow> {
        while let Some(packet) = reader.next()? {
            let place = PacketPlace::from_packet(&packet);
            let flow = search.whole(packet.payload, |finding| self.add_line(path, Some(&place), finding));
            self.flush_lines()?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(Flow::Continue(()))
    }

    fn search_streams(&mut self, search: &mut Search, path: &Path, reader: &mut Reader) -> Result<Flow> {
        let mut streams = StreamSearch::new(search, Limits::default());
        while let Some(packet) = reader.next()? {
            let of_packet = PacketPlace::from_packet(&packet);
            let flow = streams.push(&packet, |found| {
                let of_stream = PacketPlace::from_stream(&found);
                self.add_line(path, Some(of_stream.as_ref().unwrap_or(&of_packet)), found.finding)
            });
            self.flush_lines()?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        let flow = streams
            .finish(|found| self.add_line(path, PacketPlace::from_stream(&found).as_ref(), found.finding));
        self.flush_lines()?;
        let counts = streams.counts();
        captures::warn_of_gaps(path, counts);
        self.stream_counts.streams += counts.streams;
        self.stream_counts.evicted += counts.evicted;
        self.stream_counts.repeated += counts.repeated;
        self.stream_counts.missing += counts.missing;
        Ok(flow)
    }

    /// Adds a line for a finding, with its place if the input is a capture.
    fn add_line(&mut self, path: &Path, place: Option<&PacketPlace>, finding: Finding) -> Flow {
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
        // Writing to memory cannot fail.
        let _ = match place {
            Some(place) => writeln!(lines, "\t{}\t{}\t{place}", place.packet, finding.offset),
            None => writeln!(lines, "\t{}", finding.offset),
        };
        // A small input may have many findings.
        match self.lines.len() > READ_BYTES {
            true => self.flush_lines().map_or_else(|error| Flow::Break(Err(error)), Flow::Continue),
            false => Flow::Continue(()),
        }
    }

    /// Prints the lines that were added.
    fn flush_lines(&mut self) -> Result<()> {
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
            if self.args.streams {
                rows.add("streams", self.stream_counts.streams);
                rows.add("streams cut short to make room", self.stream_counts.evicted);
                rows.add("bytes missing", self.stream_counts.missing);
                rows.add("bytes repeated", self.stream_counts.repeated);
            }
            output::message(rows.to_string().trim_end());
        }
        Ok(found(stats.confirmed > 0))
    }
}

fn cannot_read(path: &Path) -> String {
    format!("cannot read {}", name(path))
}

impl PacketPlace {
    fn from_packet(packet: &Packet) -> PacketPlace {
        let Packet { number, source, destination, ports, .. } = *packet;
        PacketPlace { packet: number, source, destination, ports, stream: None }
    }

    /// Returns the place of a finding in a stream.
    fn from_stream(found: &StreamFinding) -> Option<PacketPlace> {
        let (flow, stream) = (found.flow, Some(found.stream? + 1));
        let (source, destination, ports) = (flow.source, flow.destination, Some(flow.ports));
        Some(PacketPlace { packet: found.packet, source, destination, ports, stream })
    }
}

impl fmt::Display for PacketPlace {
    /// Formats source and destination, with their ports if there are any, and the stream.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ports {
            Some((from, to)) => {
                write!(
                    f,
                    "{}\t{}",
                    SocketAddr::new(self.source, from),
                    SocketAddr::new(self.destination, to)
                )?;
            }
            None => write!(f, "{}\t{}", self.source, self.destination)?,
        }
        self.stream.map_or(Ok(()), |stream| write!(f, "\tstream {stream}"))
    }
}
