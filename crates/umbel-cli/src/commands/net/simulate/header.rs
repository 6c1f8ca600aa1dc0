//! `umbel net simulate header`: traces packets by a filter in their header.

use crate::args::{headings, number};
use crate::packets::network::{self, NetworkArgs, comparison_json, hops_json};
use crate::report::{Columns, Rows, percent};
use anyhow::Result;
use serde_json::{Value, json};
use std::process::ExitCode;
use umbel_net::simulate::header::{Options, Report, WayReport, run as simulate};
use umbel_net::topology::Graph;

/// Trace packets back to their sender by a filter in their header.
///
/// Every router sets its bits in the header of a packet. The victim goes back from neighbour to
/// neighbour, as long as their bits are set. Some routers match by chance. A sender who fills the
/// header with ones makes every router match; the generalised filter, in which routers also reset
/// bits, withstands that. By its simple rule it forgets routers; read in order, it does not.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel net simulate header --topology net.txt
  umbel net simulate header --topology net.graphml --bits 64 --svg path.svg")]
pub struct Args {
    #[command(flatten)]
    network: NetworkArgs,

    /// Bits in the header: 32, 64, 128, 256, 512 or 1024
    #[arg(long, value_name = "BITS", default_value_t = 256, help_heading = headings::FILTER)]
    bits: u32,

    /// Number of bits that a router resets in the generalised filter, from 1 to 8
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = headings::FILTER)]
    k0: u32,

    /// Number of bits that a router sets in the generalised filter, from 1 to 8
    #[arg(long, value_name = "N", default_value_t = 3, help_heading = headings::FILTER)]
    k1: u32,

    /// Number of packets to trace
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        value_parser = number::count,
        default_value = "1000",
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
    let options =
        Options { bits: args.bits, k0: args.k0, k1: args.k1, packets: args.packets, seed: args.network.seed };
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
        rows.add(
            "routers",
            format!(
                "each sets {} bits; generalised, it resets {} and sets {}",
                report.weight, self.k0, self.k1
            ),
        );
        rows.add("memory", "no packet is stored; a router has only its own bits");
        let mut table = network::comparisons();
        let set = &report.bits_set;
        let [measured, theory] = [set.measured(), set.expected()].map(|bits| format!("{bits:.2}"));
        table.add(vec!["bits set on arrival".to_owned(), measured, theory, network::deviation(set)]);
        table.add(network::shares("sender forgotten (generalised)", &report.forgotten));
        format!("{rows}\n{table}\n{}\n{}", ways(report), example(graph, report))
    }

    fn json(&self, graph: &Graph, report: &Report) -> Value {
        let ways: Vec<Value> = report
            .ways
            .iter()
            .map(|way| {
                json!({
                    "way": way.way.as_str(), "packets": way.packets, "senders_named": way.origins_found,
                    "paths_found": way.paths_found, "unfinished": way.unfinished,
                    "false_routers": way.false_routers, "false_positives": comparison_json(&way.wrong),
                })
            })
            .collect();
        let example = report.example.as_ref().map(|example| {
            let name = |node: usize| graph.name(node).to_owned();
            json!({
                "path": example.path.iter().map(|node| name(*node)).collect::<Vec<_>>(),
                "false_routers": example.false_routers().map(name).collect::<Vec<_>>(),
            })
        });
        json!({
            "network": network::extent_json(graph), "seed": self.network.seed,
            "packets": report.hops.paths(), "hops": hops_json(&report.hops),
            "header_bits": report.header_bits,
            "bandwidth_share": network::header_share(report.header_bits, self.packet_bytes),
            "weight": report.weight, "k0": self.k0, "k1": self.k1,
            "bits_set": comparison_json(&report.bits_set), "forgotten": comparison_json(&report.forgotten),
            "ways": ways, "example": example,
        })
    }
}

/// Returns the table of ways to trace a packet.
fn ways(report: &Report) -> Columns {
    let headings =
        ["filter", "sender named", "whole path", "false routers", "false positives", "theory", "deviation"];
    let mut table = Columns::new(&headings);
    for way in &report.ways {
        let WayReport { packets, wrong, .. } = way;
        let share = |count: u64| percent(count as f64 / (*packets).max(1) as f64);
        let false_routers = way.false_routers as f64 / (*packets).max(1) as f64;
        table.add(vec![
            way.way.as_str().to_owned(),
            share(way.origins_found),
            share(way.paths_found),
            format!("{false_routers:.3}"),
            percent(wrong.measured()),
            percent(wrong.expected()),
            network::deviation(wrong),
        ]);
    }
    table
}

/// Returns the row with the example.
fn example(graph: &Graph, report: &Report) -> Rows {
    let mut rows = Rows::default();
    let unfinished: u64 = report.ways.iter().map(|way| way.unfinished).sum();
    if unfinished > 0 {
        rows.add("unfinished", format!("{unfinished} searches, which have too many paths to follow"));
    }
    if let Some(example) = &report.example {
        let others: Vec<String> = example.false_routers().map(|node| network::path(graph, [node])).collect();
        let others = if others.is_empty() { "no other router".to_owned() } else { others.join(", ") };
        let path = network::path(graph, example.path.iter().copied());
        rows.add("example", format!("{path}; found by mistake: {others}"));
    }
    rows
}
