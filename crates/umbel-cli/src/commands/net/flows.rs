//! `umbel net flows`: counts the packets of flows.

use crate::args::{headings, number};
use crate::filters::{DEFAULT_NOISE, TransientHashArgs, capacity_for, new_distinct};
use crate::packets::captures::{add_rows, each_packet};
use crate::report::{Columns, Rows, percent, size};
use crate::system::random_seed;
use crate::terminal::exit::found;
use crate::terminal::output::{self, warn};
use anyhow::Result;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use umbel::sizing::Given;
use umbel::spec::KindOptions;
use umbel::{Hasher, Key, Spec};
use umbel_net::capture::{Counts, Reader};
use umbel_net::flows::{By, Comparison, Errors, Measured, Meter};

/// Estimate the number of packets of each flow, and list the largest flows.
///
/// A multi-resolution space-code filter counts the packets in a few bits per flow: from five
/// packets on, half of the estimates are within 10 % to 18 %, and each has a 95 % interval. The
/// filter stores no flows, so the listed ones come from 2048 counters beside it, which hold every
/// flow with more than one packet in 1024. A capture file is read twice, first to size the filter
/// for its packets and flows.
///
/// --key src/24 takes the network of IPv4 addresses and leaves IPv6 addresses whole, src/64 is the
/// other way round, and src/24/64 takes both networks. In the name of a flow, `4711:53` are the
/// ports of source and destination, `4711:` and `:53` one of them; they are 0 if there are none.
///
/// The hash has a random secret, so senders cannot choose flows that collide, and estimates differ
/// from run to run within their limits; --seed makes a run repeatable.
///
/// --exact also counts the packets of every flow exactly, which takes memory for each flow. The
/// listed flows are then certainly the largest, and errors are reported by the size of flows: mean
/// and standard deviation of the relative errors of the filter, and the share of flows that are
/// within their interval. For comparison, the errors of a 1 % sample of the packets are shown, and
/// those of a table of exact counters with as much memory as the filter, 16 bytes per flow; it does
/// not count flows that arrive when it is full.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel net flows capture.pcap
  umbel net flows --key src --exact --top 20 capture.pcapng.gz
  umbel net flows --key src/24,proto,dport capture.pcap
  tcpdump -w - | umbel net flows --memory 1MiB --key pair -")]
pub struct Args {
    /// Capture in pcap or pcapng format, may be compressed with gzip; `-` means standard input
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,

    /// Features that the packets of a flow share: a list of src, dst, proto, sport and dport, or
    /// 5tuple for all, or pair for both addresses
    #[arg(long, value_name = "FEATURES", default_value_t = By::FiveTuple, help_heading = headings::KEYS)]
    key: By,

    /// Size of the filter (default: as needed for its noise)
    #[arg(long, value_name = "BYTES", value_parser = number::bytes, help_heading = headings::FILTER)]
    memory: Option<u64>,

    /// Number of packets to size the filter for (default: the packets in a file; a million for a
    /// pipe)
    #[arg(short = 'n', long, value_name = "N", value_parser = number::count, help_heading = headings::FILTER)]
    packets: Option<u64>,

    /// Noise: the share of groups that are found without having been recorded (default: 0.005, or
    /// as --memory allows)
    #[arg(short = 'p', long, value_name = "NOISE", value_parser = number::rate, help_heading = headings::FILTER)]
    noise: Option<f64>,

    #[command(flatten)]
    hashing: TransientHashArgs,

    /// Count exactly too, and report the errors
    #[arg(long, help_heading = headings::OUTPUT)]
    exact: bool,

    /// Number of flows to list
    #[arg(
        long,
        value_name = "N",
        value_parser = number::count,
        default_value = "10",
        help_heading = headings::OUTPUT
    )]
    top: u64,

    /// Print JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

/// The number of packets that the filter is made for if it is unknown.
const DEFAULT_PACKETS: u64 = 1_000_000;

pub fn run(args: &Args) -> Result<ExitCode> {
    let meter = Meter::new(args.key, &args.spec()?)?;
    let mut meter = if args.exact { meter.with_exact() } else { meter };
    let counts = each_packet(&args.capture, |packet| {
        meter.record(packet)?;
        Ok(ControlFlow::Continue(()))
    })?;
    let planned = meter.filter().stats().capacity.unwrap_or(u64::MAX);
    if meter.packets() > planned {
        let noise = percent(meter.filter().stats().rate_now);
        warn(format_args!(
            "{} packets are more than the {planned} that the filter was made for: its noise is {noise}, and small flows \
             are counted too high; see -n and --memory",
            meter.packets()
        ));
    }
    let largest = meter.largest(usize::try_from(args.top).unwrap_or(usize::MAX));
    let comparison = meter.comparison();
    if args.json {
        output::json(&to_json(&meter, &counts, &largest, comparison.as_ref()))?;
    } else {
        print(&meter, &counts, &largest, comparison.as_ref())?;
    }
    Ok(found(meter.packets() > 0))
}

impl Args {
    /// Returns the spec of the filter, from the options and a first pass through the file.
    fn spec(&self) -> Result<Spec> {
        let hasher = self.hashing.hasher()?;
        let (packets, flows) = match self.packets {
            Some(packets) => (Some(packets), None),
            None if self.capture.is_file() => {
                let (packets, flows) = self.count_flows(&hasher)?;
                (Some(packets), Some(flows))
            }
            None => (None, None),
        };
        let given = match self.memory {
            Some(bytes) => {
                let n = packets.filter(|_| self.noise.is_none());
                let p = if n.is_none() { self.noise.or(Some(DEFAULT_NOISE)) } else { None };
                // Each level ends with a whole cache line.
                let lines = u64::from(KindOptions::default().space_code.levels) * 64;
                let bytes = bytes.saturating_sub(lines).max(1);
                Given { m: Some(bytes.saturating_mul(8)), n, p, ..Given::default() }
            }
            None => {
                let (n, p) = (packets.unwrap_or(DEFAULT_PACKETS), self.noise.unwrap_or(DEFAULT_NOISE));
                Given { n: Some(n), p: Some(p), ..Given::default() }
            }
        };
        let mut options = KindOptions::default();
        options.space_code.keys = flows;
        options.space_code.seed = self.hashing.seed.map_or_else(random_seed, Ok)?;
        Ok(Spec::from_given(given)?.with_options(options).with_hasher(hasher))
    }

    /// Counts the packets, and estimates the number of flows.
    fn count_flows(&self, hasher: &Hasher) -> Result<(u64, u64)> {
        let mut distinct = new_distinct()?;
        let mut reader = Reader::open(&self.capture)?;
        while let Some(packet) = reader.next()? {
            distinct.insert_digest(self.key.flow(&packet).digest(hasher));
        }
        let packets = reader.counts().packets;
        Ok((packets.max(1), capacity_for(packets, &distinct)))
    }
}

fn print(
    meter: &Meter,
    counts: &Counts,
    largest: &[Measured],
    comparison: Option<&Comparison>,
) -> Result<()> {
    let mut headings = vec!["flow", "packets", "from", "to"];
    headings.extend(comparison.map(|_| "exactly"));
    let mut table = Columns::new(&headings);
    for Measured { flow, estimate, exact } in largest {
        let high = if estimate.high.is_finite() { format!("{:.0}", estimate.high) } else { "?".into() };
        let mut row =
            vec![meter.by().name(flow), format!("{estimate:.0}"), format!("{:.0}", estimate.low), high];
        row.extend(exact.map(|exact| exact.to_string()));
        table.add(row);
    }
    output::text(table)?;
    let stats = meter.filter().stats();
    let mut rows = Rows::default();
    add_rows(&mut rows, &[*counts]);
    rows.add("filter", format!("{}, with a noise of {}", size(stats.bytes), percent(stats.rate_now)));
    if let Some(comparison) = comparison {
        let Comparison { flows, exact_bytes, sampled, counters, .. } = comparison;
        rows.add("flows", flows);
        rows.add("hash table", format!("{}, to count all flows exactly", size(*exact_bytes)));
        rows.add("sample of 1 %", format!("{}, of {} flows", size(sampled.1), sampled.0));
        let enough = if counters >= flows { ": one for each flow, so that they would do" } else { "" };
        rows.add("as many bytes", format!("{counters} exact counters{enough}"));
    }
    output::text(format_args!("\n{rows}"))?;
    match comparison {
        Some(comparison) => output::text(format_args!("\n{}", decades(comparison))),
        None => Ok(()),
    }
}

/// Returns the table of errors by decade.
fn decades(comparison: &Comparison) -> Columns {
    let mut table = Columns::new(&[
        "packets",
        "flows",
        "bias",
        "spread",
        "in limits",
        "sample bias",
        "spread",
        "table bias",
        "spread",
        "counted",
    ]);
    let signed = |share: f64| format!("{:+.1} %", 100.0 * share);
    let share = |share: f64| format!("{:.1} %", 100.0 * share);
    for decade in comparison.decades.iter().filter(|decade| decade.flows > 0) {
        let both = |errors: Errors| [signed(errors.bias), share(errors.spread)];
        let mut row = vec![format!("{} to {}", decade.from, decade.from * 10 - 1), decade.flows.to_string()];
        row.extend(both(decade.filter));
        row.push(share(decade.inside));
        row.extend(both(decade.sample));
        row.extend(both(decade.table));
        row.push(share(decade.counted));
        table.add(row);
    }
    table
}

fn to_json(meter: &Meter, counts: &Counts, largest: &[Measured], comparison: Option<&Comparison>) -> Value {
    let stats = meter.filter().stats();
    let flows: Vec<Value> = largest
        .iter()
        .map(|Measured { flow, estimate, exact }| {
            json!({
                "flow": meter.by().name(flow), "packets": estimate.value, "low": estimate.low,
                "high": estimate.high.is_finite().then_some(estimate.high), "saturated": estimate.saturated,
                "exact": exact,
            })
        })
        .collect();
    let errors = |errors: Errors| json!({ "bias": errors.bias, "spread": errors.spread });
    let comparison = comparison.map(|comparison| {
        let decades: Vec<Value> = comparison
            .decades
            .iter()
            .map(|decade| {
                json!({
                    "from": decade.from, "flows": decade.flows, "filter": errors(decade.filter),
                    "inside": decade.inside, "sample": errors(decade.sample), "table": errors(decade.table),
                    "counted": decade.counted,
                })
            })
            .collect();
        json!({
            "flows": comparison.flows, "hash_table_bytes": comparison.exact_bytes,
            "sampled_flows": comparison.sampled.0, "sample_bytes": comparison.sampled.1,
            "counters": comparison.counters, "decades": decades,
        })
    });
    json!({
        "key": meter.by().to_string(), "packets": meter.packets(), "skipped": counts.skipped.total(),
        "clock_backwards": counts.backwards,
        "bytes": stats.bytes, "noise": stats.rate_now, "largest": flows, "comparison": comparison,
    })
}
