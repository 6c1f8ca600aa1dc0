//! `umbel net simulate loops`: detects packets in a loop by a filter in their header.

use crate::args::{headings, number};
use crate::packets::network::{self, NetworkArgs, comparison_json, hops_json};
use crate::report::{Rows, size};
use anyhow::Result;
use serde_json::{Value, json};
use std::process::ExitCode;
use umbel_net::loops::Allowance;
use umbel_net::simulate::loops::{Example, Fault, Options, Report, TIME_TO_LIVE, run as simulate};
use umbel_net::topology::Graph;

/// Detect packets in a loop by a filter in their header (Icarus).
///
/// Every interface sets a few bits in the header of a packet. If they were all set already, the
/// packet may be in a loop. It then spends a reprieve, or else a failure, which empties the filter;
/// without either it is dropped.
///
/// Packets first go over shortest paths: false alarms and drops are chance. Then links fail that
/// only half of the routers know of, and routers send packets to a wrong neighbour. All packets in
/// the loops that result are caught within a bound, and are compared with a time to live of 64.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel net simulate loops --topology net.txt
  umbel net simulate loops --topology net.txt --bits 32 --svg loops.svg")]
pub struct Args {
    #[command(flatten)]
    network: NetworkArgs,

    /// Bits in the header: 32, 64, 128, 256, 512 or 1024
    #[arg(long, value_name = "BITS", default_value_t = 256, help_heading = headings::FILTER)]
    bits: u32,

    /// Number of times that the filter of a packet may be emptied, from 0 to 15
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = headings::FILTER)]
    failures: u8,

    /// Number of alarms that are ignored before each failure, from 0 to 15
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = headings::FILTER)]
    reprieves: u8,

    /// Number of packets on shortest paths
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        value_parser = number::count,
        default_value = "10000",
        help_heading = headings::EXPERIMENT
    )]
    packets: u64,

    /// Size of a packet without the filter, for its share of the bandwidth
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = number::bytes,
        default_value = "500",
        help_heading = headings::EXPERIMENT
    )]
    packet_bytes: u64,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let graph = args.network.open()?;
    let allowance = Allowance { failures: args.failures, reprieves: args.reprieves };
    let options = Options { bits: args.bits, allowance, packets: args.packets, seed: args.network.seed };
    let report = simulate(&graph, &options).map_err(|error| args.network.explain(error))?;
    args.network.finish(&report.picture(&graph), &args.json(&graph, &report), args.text(&graph, &report))?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn text(&self, graph: &Graph, report: &Report) -> String {
        let mut rows = Rows::default();
        rows.add("network", network::extent(graph));
        rows.add("packets", format!("{}, with {}", report.hops.paths(), network::hops(&report.hops)));
        rows.add("header", network::header(report.header_bits, self.packet_bytes));
        let interfaces = 2 * graph.links();
        rows.add("memory", format!("{} for the masks of {interfaces} interfaces", size(report.memory_bytes)));
        let mut table = network::comparisons();
        table.add(network::shares("false alarms", &report.alarms));
        table.add(network::shares("dropped by chance", &report.dropped));
        format!("{rows}\n{table}\n{}", self.loops(graph, report))
    }

    fn loops(&self, graph: &Graph, report: &Report) -> Rows {
        let loops = &report.loops;
        let mut rows = Rows::default();
        if loops.packets == 0 {
            let problem = "none: whatever routers believe, packets of this network arrive or are stuck";
            rows.add("loops", format!("{problem} ({} packets)", loops.sent));
            return rows;
        }
        rows.add(
            "loops",
            format!(
                "{} of {} packets while routers disagree; loops of {}",
                loops.packets,
                loops.sent,
                network::hops(&loops.lengths)
            ),
        );
        rows.add(
            "caught",
            format!(
                "{} of {}, after {:.2} links in the loop on average, {} at most; the bound is {}",
                loops.caught,
                loops.packets,
                loops.within.mean(),
                loops.within.most(),
                loops.bound
            ),
        );
        rows.add(
            "time to live",
            format!(
                "{TIME_TO_LIVE} links for each of them without the filter; {:.2} with it",
                loops.crossed.mean()
            ),
        );
        if let Some(example) = &report.example {
            rows.add("example", sentence(graph, example));
        }
        rows
    }

    fn json(&self, graph: &Graph, report: &Report) -> Value {
        let loops = &report.loops;
        let example = report.example.as_ref().map(|example| {
            let name = |node: &usize| graph.name(*node).to_owned();
            let (fault, link) = match example.fault {
                Fault::FailedLink(link) => ("failed link", link),
                Fault::WrongHop(link) => ("wrong neighbour", link),
            };
            json!({
                "fault": fault, "link": link.each_ref().map(name), "target": name(&example.target),
                "path": example.route.nodes.iter().map(name).collect::<Vec<_>>(),
                "loop_links": example.route.loop_length(), "links_crossed": example.crossed,
            })
        });
        json!({
            "network": network::extent_json(graph), "seed": self.network.seed,
            "bits": self.bits, "failures": self.failures, "reprieves": self.reprieves,
            "packets": report.hops.paths(), "hops": hops_json(&report.hops),
            "header_bits": report.header_bits,
            "bandwidth_share": network::header_share(report.header_bits, self.packet_bytes),
            "memory_bytes": report.memory_bytes,
            "false_alarms": comparison_json(&report.alarms), "dropped": comparison_json(&report.dropped),
            "loops": {
                "sent": loops.sent, "packets": loops.packets, "caught": loops.caught,
                "lengths": hops_json(&loops.lengths), "hops_in_loop": hops_json(&loops.within),
                "bound": loops.bound, "hops_with_filter": hops_json(&loops.crossed),
                "time_to_live": TIME_TO_LIVE,
            },
            "example": example,
        })
    }
}

/// Describes a packet in a loop.
fn sentence(graph: &Graph, example: &Example) -> String {
    let name = |node: usize| network::path(graph, [node]);
    let [a, b] = match example.fault {
        Fault::FailedLink(link) | Fault::WrongHop(link) => link.map(name),
    };
    let fault = match example.fault {
        Fault::FailedLink(_) => format!("the link of {a} and {b} failed"),
        Fault::WrongHop(_) => format!("{a} sends packets for {} to {b}", name(example.target)),
    };
    let back = example.route.entry.map(|entry| example.route.nodes[entry]);
    let way = network::path(graph, example.route.nodes.iter().copied().chain(back));
    format!("{fault}: {way} and so on, dropped after {} links", example.crossed)
}
