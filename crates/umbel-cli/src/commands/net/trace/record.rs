//! `umbel net trace record`: records digests of the packets that a router forwards.

use crate::args::{headings, number};
use crate::input::{is_stdin, resolve};
use crate::packets::captures::{add_rows, each_packet_until_termination};
use crate::packets::sides::{Side, each_sighting};
use crate::report::{Rows, size};
use crate::system::random_seed;
use crate::terminal::output::{self, warn};
use anyhow::{Result, bail};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use umbel_net::capture::Counts;
use umbel_net::traceback::spie::Transform;
use umbel_net::traceback::store::{Recorded, Recorder, Settings, Store};

/// Record digests of the packets that a router forwards.
///
/// The directory STORE holds the pages of any number of routers. A page holds the digests of a
/// period of time in a Bloom filter with a seed of its own; it is written completely or not at all,
/// and recording again adds pages. A packet has the same digest in all routers: only fields that
/// routers do not change are hashed, and the first eight bytes after the IP header.
///
/// A router that changes packets on purpose needs captures of both sides, --in and --out. Each
/// packet that left is compared with those that entered up to two seconds before. These changes are
/// recognised: address translation, tunnels (IP in IP, GRE, VXLAN, Geneve, GTP), fragments, ICMP
/// errors, which quote the packet that they are about, and IPsec. Encrypted packets are matched by
/// time and length alone.
///
/// Captures should contain packets as they were on the wire: switch off segmentation offload of the
/// network card. The first Ctrl-C or SIGTERM ends the recording after the current packet and saves
/// it; a second one ends the program at once.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel net trace record --router R1 -o spie r1.pcap
  umbel net trace record --router NAT -o spie --in in.pcap --out out.pcap
  tcpdump -w - | umbel net trace record --router R3 -o spie --page-seconds 10 -")]
pub struct Args {
    /// Captures in pcap or pcapng format, may be compressed with gzip; `-` means standard input
    #[arg(value_name = "CAPTURE", required_unless_present = "entered")]
    captures: Vec<PathBuf>,

    /// Packets that fill a page
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        default_value = "1M",
        value_parser = number::count,
        help_heading = headings::FILTER
    )]
    packets: u64,

    /// False-positive rate of a page: the share of innocent routers that match a packet
    #[arg(
        short = 'p',
        long,
        value_name = "RATE",
        default_value = "0.1%",
        value_parser = number::rate,
        help_heading = headings::FILTER
    )]
    rate: f64,

    /// Begin a new page after this time: seconds, or a time such as 500ms, 10m or 1h
    #[arg(
        long,
        value_name = "TIME",
        default_value = "60",
        value_parser = number::time,
        help_heading = headings::FILTER
    )]
    page_seconds: Duration,

    /// Derive all seeds from this number [default: random]
    #[arg(long, value_name = "N", help_heading = headings::FILTER)]
    seed: Option<u64>,

    /// Name of the router, as in the topology
    #[arg(long, value_name = "NAME", help_heading = headings::INPUT)]
    router: String,

    /// Capture of packets that entered the router (repeatable, for several interfaces)
    #[arg(
        long = "in",
        value_name = "CAPTURE",
        requires = "left",
        conflicts_with = "captures",
        help_heading = headings::INPUT
    )]
    entered: Vec<PathBuf>,

    /// Capture of packets that left the router (repeatable)
    #[arg(long = "out", value_name = "CAPTURE", requires = "entered", help_heading = headings::INPUT)]
    left: Vec<PathBuf>,

    /// Directory of the store, created if it does not exist
    #[arg(short, long, value_name = "STORE", help_heading = headings::OUTPUT)]
    output: PathBuf,

    /// Print JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let store = Store::create(&args.output)?;
    let seed = args.seed.map_or_else(random_seed, Ok)?;
    let mut recorder = Recorder::new(store, &args.router, args.settings(), seed)?;
    let read = args.record(&mut recorder);
    // Save the page at hand even after an error.
    let saved = recorder.finish();
    if read.is_err() && recorder.totals().pages > 0 {
        warn(format_args!("what was recorded before is in {}", args.output.display()));
    }
    let counts = read?;
    saved?;
    args.report(recorder.totals(), &counts)?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn settings(&self) -> Settings {
        let packets = usize::try_from(self.packets).unwrap_or(usize::MAX);
        Settings { packets, rate: self.rate, length: self.page_seconds }
    }

    fn record(&self, recorder: &mut Recorder) -> Result<Vec<Counts>> {
        if self.entered.is_empty() {
            return each_packet_until_termination(&resolve(&self.captures)?, |packet| {
                Ok(recorder.forward(packet)?)
            });
        }
        let (entered, left) = (resolve(&self.entered)?, resolve(&self.left)?);
        if entered.iter().chain(&left).any(|capture| is_stdin(capture)) {
            bail!("--in and --out cannot be standard input: write the packets to files first");
        }
        each_sighting(&entered, &left, |side, packet| {
            match side {
                Side::In => recorder.enter(packet)?,
                Side::Out => recorder.leave(packet)?,
            }
            Ok(())
        })
    }

    fn report(&self, totals: &Recorded, counts: &[Counts]) -> Result<()> {
        let Recorded { packets, left, changed, appeared, pages, bytes, .. } = *totals;
        let changes = || Transform::ALL.iter().zip(changed).filter(|(_, count)| *count > 0);
        let skipped: u64 = counts.iter().map(|counts| counts.skipped.total()).sum();
        if self.json {
            let changed: Map<String, Value> =
                changes().map(|(how, count)| (how.to_string(), count.into())).collect();
            return output::json(&json!({
                "router": self.router, "packets": packets, "skipped": skipped, "left": left, "changed": changed,
                "appeared": appeared, "pages": pages, "store_bytes": bytes,
            }));
        }
        let mut rows = Rows::default();
        rows.add("router", &self.router);
        add_rows(&mut rows, counts);
        if !self.entered.is_empty() {
            rows.add("entered", packets);
            rows.add("left", left);
            let changed: Vec<String> = changes().map(|(how, count)| format!("{count} {how}")).collect();
            rows.add("changed", if changed.is_empty() { "0".into() } else { changed.join(", ") });
            rows.add("began here", format!("{appeared}, which left but had not entered"));
        }
        rows.add("pages", pages);
        rows.add("store", format!("{} more", size(bytes)));
        output::text(rows)
    }
}
