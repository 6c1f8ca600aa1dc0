//! `umbel net flows`: how many packets each flow has.

use crate::args::{names, number};
use crate::filters::{DEFAULT_NOISE, capacity_for, new_distinct};
use crate::packets::captures::{add_rows, each_packet};
use crate::report::{Columns, Rows, percent, size};
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

/// Count the packets of flows in a few bits for each, and list the largest.
///
/// The counts are estimates of a multi-resolution space-code filter: half of them are within 10 % to 18 % from five packets on, and each
/// comes with the limits between which the number lies in 95 of 100 cases. The filter keeps no names, so that the flows to be listed
/// come from 2048 counters beside it, which hold every flow that has more than one packet in 1024. A
/// capture that is a file is read twice: first to see for how many packets and flows the filter has to be made.
///
/// With --exact the packets of every flow are also counted exactly, which takes memory for each of them. Then the flows listed are the largest
/// without doubt, and the errors are told by size: mean and standard deviation of the filter's relative errors, and the share of
/// flows that are within their limits. Beside them stand those of a sample of 1 % of the packets, and those of a
/// table of exact counters that takes as much memory as the filter, 16 bytes each; flows that come when it is full are
/// not counted there.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel net flows capture.pcap
  umbel net flows capture.pcapng.gz --key src --exact --top 20
  tcpdump -w - | umbel net flows - --memory 1MiB --key pair")]
pub struct Args {
    /// The capture: pcap or pcapng, compressed with gzip or not; `-` is standard input
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,

    /// What the packets of a flow have in common: addresses, ports and protocol; the source; the destination; both addresses
    #[arg(long, value_name = "KEY", default_value_t = By::FiveTuple, value_parser = names::flow_key())]
    key: By,

    /// Count exactly too, and tell the errors
    #[arg(long)]
    exact: bool,

    /// List so many flows
    #[arg(long, value_name = "N", value_parser = number::count, default_value = "10")]
    top: u64,

    /// Make the filter so large (default: as large as its noise demands)
    #[arg(long, value_name = "BYTES", value_parser = number::bytes)]
    memory: Option<u64>,

    /// Make the filter for so many packets (default: as many as there are in a file; a million from a pipe)
    #[arg(short = 'n', long, value_name = "N", value_parser = number::count)]
    packets: Option<u64>,

    /// The noise: the share of groups that are found without having been hit (default: 0.005, or what --memory leads to)
    #[arg(short = 'p', long, value_name = "NOISE", value_parser = number::rate)]
    noise: Option<f64>,

    /// Print JSON
    #[arg(long)]
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
        let (packets, flows) = match self.packets {
            Some(packets) => (Some(packets), None),
            None if self.capture.is_file() => {
                let (packets, flows) = self.count_flows()?;
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
        Ok(Spec::from_given(given)?.with_options(options))
    }

    /// Counts the packets, and estimates the number of flows.
    fn count_flows(&self) -> Result<(u64, u64)> {
        let hasher = Hasher::default();
        let mut distinct = new_distinct()?;
        let mut reader = Reader::open(&self.capture)?;
        while let Some(packet) = reader.next()? {
            distinct.insert_digest(self.key.flow(&packet).digest(&hasher));
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
        "key": meter.by().as_str(), "packets": meter.packets(), "skipped": counts.skipped.total(),
        "clock_backwards": counts.backwards,
        "bytes": stats.bytes, "noise": stats.rate_now, "largest": flows, "comparison": comparison,
    })
}
