//! `umbel net simulate routing`: finds documents by the filters of neighbours.

use crate::args::{headings, number};
use crate::packets::network::{self, NetworkArgs, comparison_json, hops_json};
use crate::report::{Columns, Rows, percent, size};
use anyhow::Result;
use serde_json::{Value, json};
use std::process::ExitCode;
use umbel_net::routing::FilterShape;
use umbel_net::simulate::Hops;
use umbel_net::simulate::routing::{Options, Report, run as simulate};
use umbel_net::topology::Graph;

/// Find documents by the filters of neighbours (attenuated Bloom filters).
///
/// Every node has documents. For each of its links it keeps a filter with a level for each
/// distance: the documents one hop away, two hops away, and so on. A query goes where the document
/// appears to be nearest. If the filters promise nothing, or a promise was false, the query climbs
/// towards the root of the document, a node that follows from its hash, and finds a pointer on the
/// way. So every document is found.
///
/// Queries for documents that do not exist show how often the filters are wrong.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel net simulate routing --topology net.txt
  umbel net simulate routing --topology net.txt --bits 256 --svg query.svg")]
pub struct Args {
    #[command(flatten)]
    network: NetworkArgs,

    /// Bits of a level
    #[arg(long, value_name = "BITS", default_value_t = 1024, help_heading = headings::FILTER)]
    bits: u32,

    /// Number of hash functions, from 1 to 16
    #[arg(short = 'k', long, value_name = "K", default_value_t = 3, help_heading = headings::FILTER)]
    hashes: u32,

    /// Number of levels, from 1 to 16
    #[arg(long, value_name = "N", default_value_t = 3, help_heading = headings::FILTER)]
    depth: u32,

    /// Number of documents on each node
    #[arg(
        long,
        value_name = "N",
        value_parser = number::count,
        default_value = "10",
        help_heading = headings::EXPERIMENT
    )]
    documents: u64,

    /// Number of queries for documents that exist, and for documents that do not
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        value_parser = number::count,
        default_value = "2000",
        help_heading = headings::EXPERIMENT
    )]
    queries: u64,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let graph = args.network.open()?;
    let shape = FilterShape { bits: args.bits, hashes: args.hashes, depth: args.depth };
    let options =
        Options { shape, documents: args.documents, queries: args.queries, seed: args.network.seed };
    let report = simulate(&graph, &options).map_err(|error| args.network.explain(error))?;
    args.network.finish(&report.picture(&graph), &args.json(&graph, &report), args.text(&graph, &report))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the bytes of all messages about flipped bits.
fn update_bytes(report: &Report) -> u64 {
    (report.flips * u64::from(report.flip_bits)).div_ceil(8)
}

impl Args {
    fn text(&self, graph: &Graph, report: &Report) -> String {
        let mut rows = Rows::default();
        rows.add("network", network::extent(graph));
        rows.add("documents", format!("{}, {} on each node", report.documents, self.documents));
        rows.add(
            "filters",
            format!(
                "{} for {} ends of links, each {} x {} bits, k = {}",
                size(report.filter_bytes),
                2 * graph.links(),
                self.depth,
                self.bits,
                self.hashes
            ),
        );
        let bytes = update_bytes(report);
        rows.add(
            "updates",
            format!(
                "{} flipped bits sent, {}: {:.0} bytes for each document",
                report.flips,
                size(bytes),
                bytes as f64 / report.documents.max(1) as f64
            ),
        );
        rows.add(
            "fall-back",
            format!("{} pointers, published in {} messages", report.pointers, report.pointer_messages),
        );
        format!("{rows}\n{}\n{}\n{}", levels(report), queries(report), outcome(graph, report))
    }

    fn json(&self, graph: &Graph, report: &Report) -> Value {
        let levels: Vec<Value> = report
            .levels
            .iter()
            .map(|level| {
                json!({
                    "level": level.level, "documents": level.documents,
                    "fill": comparison_json(&level.fill), "false_positives": comparison_json(&level.wrong),
                })
            })
            .collect();
        let (present, absent) = (&report.present, &report.absent);
        let name = |node: &usize| graph.name(*node).to_owned();
        let example = report.example.as_ref().map(|example| {
            let fallback = example.lookup.fallback.as_ref();
            json!({
                "search": example.lookup.search.path.iter().map(name).collect::<Vec<_>>(),
                "fallback": fallback.map(|climb| climb.path.iter().map(name).collect::<Vec<_>>()),
                "holder": name(&example.holder), "root": name(&example.root),
            })
        });
        json!({
            "network": network::extent_json(graph), "seed": self.network.seed,
            "bits": self.bits, "hashes": self.hashes, "depth": self.depth,
            "documents": report.documents, "filter_bytes": report.filter_bytes,
            "flips_sent": report.flips, "update_bytes": update_bytes(report),
            "pointers": report.pointers, "pointer_messages": report.pointer_messages,
            "levels": levels,
            "present": {
                "queries": present.queries, "found": present.found, "by_filters": present.by_filters,
                "false_promises": present.false_promises, "too_far": present.too_far,
                "filter_hops": hops_json(&present.filter_hops),
                "filter_shortest": hops_json(&present.filter_shortest),
                "fallback_hops": hops_json(&present.fallback_hops),
                "fallback_shortest": hops_json(&present.fallback_shortest),
            },
            "absent": {
                "queries": absent.queries, "found": absent.found, "sent_on": absent.sent_on,
                "hops": hops_json(&absent.hops),
            },
            "example": example,
        })
    }
}

/// Returns the table of levels.
fn levels(report: &Report) -> Columns {
    let mut table = Columns::new(&[
        "level",
        "documents",
        "fill",
        "theory",
        "deviation",
        "false positives",
        "theory",
        "deviation",
    ]);
    for level in &report.levels {
        let [fill, wrong] = [&level.fill, &level.wrong]
            .map(|both| [percent(both.measured()), percent(both.expected()), network::deviation(both)]);
        let first = [level.level.to_string(), format!("{:.1}", level.documents)];
        table.add(first.into_iter().chain(fill).chain(wrong).collect());
    }
    table
}

/// Returns the table of queries.
fn queries(report: &Report) -> Columns {
    let present = &report.present;
    let mut table = Columns::new(&["queries", "number", "share", "links", "shortest"]);
    let mut add = |name: &str, number: u64, of: u64, hops: &Hops, shortest: Option<&Hops>| {
        let mean =
            |hops: &Hops| if hops.paths() > 0 { format!("{:.2}", hops.mean()) } else { "-".to_owned() };
        let share = percent(number as f64 / of.max(1) as f64);
        let shortest = shortest.map_or_else(|| "-".to_owned(), mean);
        table.add(vec![name.to_owned(), number.to_string(), share, mean(hops), shortest]);
    };
    let filters = &present.filter_hops;
    add("found by the filters", present.by_filters, present.queries, filters, Some(&present.filter_shortest));
    let fallback = present.false_promises + present.too_far;
    let hops = &present.fallback_hops;
    add("found by the fall-back", fallback, present.queries, hops, Some(&present.fallback_shortest));
    let absent = &report.absent;
    add("for absent documents", absent.queries, absent.queries, &absent.hops, None);
    table
}

/// Returns the rows below the tables.
fn outcome(graph: &Graph, report: &Report) -> Rows {
    let (present, absent) = (&report.present, &report.absent);
    let mut rows = Rows::default();
    rows.add("found", format!("{} of {} documents that exist", present.found, present.queries));
    rows.add(
        "fall-backs",
        format!("{} after a false promise, {} without any promise", present.false_promises, present.too_far),
    );
    rows.add(
        "absent",
        format!("{} of {} queries were sent on by a false promise", absent.sent_on, absent.queries),
    );
    if let Some(example) = &report.example {
        let search = network::path(graph, example.lookup.search.path.iter().copied());
        let way = match &example.lookup.fallback {
            None => format!("{search}, by the filters"),
            Some(climb) => format!(
                "{search} by the filters, then {} by the fall-back",
                network::path(graph, climb.path.iter().copied())
            ),
        };
        rows.add("example", way);
    }
    rows
}
