//! Networks for simulations, and what all reports about them have in common.

use crate::args::headings;
use crate::filters;
use crate::report::{Columns, count, percent};
use crate::terminal::output;
use anyhow::{Result, bail};
use serde_json::{Value, json};
use std::fmt::Display;
use std::path::PathBuf;
use umbel::file::{self, Placing};
use umbel_net::simulate::{Comparison, Hops};
use umbel_net::topology::Graph;
use umbel_net::topology::picture::{MAX_PICTURE_NODES, Picture};

/// The network of a simulation, and where its results go.
#[derive(clap::Args)]
pub struct NetworkArgs {
    /// Network: an edge list with lines `A B [LENGTH]`, or GraphML
    #[arg(long, value_name = "FILE", help_heading = headings::INPUT)]
    topology: PathBuf,

    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = headings::EXPERIMENT)]
    pub seed: u64,

    /// Draw the network into FILE, with an example
    #[arg(long, value_name = "FILE", help_heading = headings::OUTPUT)]
    svg: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(short, long, requires = "svg", help_heading = headings::OUTPUT)]
    force: bool,

    /// Print JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    pub json: bool,
}

impl NetworkArgs {
    /// Reads the network.
    pub fn open(&self) -> Result<Graph> {
        let graph = Graph::open(&self.topology)?;
        if self.svg.is_some() && graph.len() > MAX_PICTURE_NODES {
            bail!(
                "a picture has at most {MAX_PICTURE_NODES} nodes, and {} has {}; leave out --svg",
                self.topology.display(),
                graph.len()
            );
        }
        Ok(graph)
    }

    /// Names the network in an error about it.
    pub fn explain(&self, error: umbel_net::Error) -> anyhow::Error {
        match error {
            umbel_net::Error::Topology { path, line, problem } if path.as_os_str().is_empty() => {
                umbel_net::Error::Topology { path: self.topology.clone(), line, problem }.into()
            }
            other => other.into(),
        }
    }

    /// Draws the network, if that was asked for, and prints the report.
    pub fn finish(&self, picture: &Picture<'_>, value: &Value, text: impl Display) -> Result<()> {
        if let Some(path) = &self.svg {
            let placing = Placing { create_new: !self.force, ..Placing::default() };
            file::save_bytes(path, picture.to_svg()?.as_bytes(), placing)
                .map_err(|error| filters::explain_exists(error, path))?;
        }
        if self.json { output::json(value) } else { output::text(text) }
    }
}

/// Returns the size of a network in words.
pub fn extent(graph: &Graph) -> String {
    let parts = part_count(graph);
    let connected = match parts {
        1 => "connected".to_owned(),
        parts => format!("in {parts} parts that are not connected with each other"),
    };
    format!("{}, {}, {connected}", count(graph.len(), "node"), count(graph.links(), "link"))
}

/// Returns the number of parts that are not connected with each other.
fn part_count(graph: &Graph) -> usize {
    graph.parts().iter().max().map_or(0, |last| last + 1)
}

/// Returns the size of a network for JSON.
pub fn extent_json(graph: &Graph) -> Value {
    json!({ "nodes": graph.len(), "links": graph.links(), "parts": part_count(graph) })
}

/// Returns the names of nodes on a path.
pub fn path(graph: &Graph, nodes: impl IntoIterator<Item = usize>) -> String {
    let names: Vec<String> =
        nodes.into_iter().map(|node| crate::report::printable(graph.name(node))).collect();
    names.join(" > ")
}

/// Returns the lengths of paths in words.
pub fn hops(hops: &Hops) -> String {
    format!("{:.2} links on average, {} at most", hops.mean(), hops.most())
}

/// Returns the lengths of paths for JSON.
pub fn hops_json(hops: &Hops) -> Value {
    json!({ "paths": hops.paths(), "mean": hops.mean(), "most": hops.most() })
}

/// Returns the bits of a header in words, and their share of a packet with this many other bytes.
pub fn header(bits: u32, packet_bytes: u64) -> String {
    let share = percent(header_share(bits, packet_bytes));
    format!("{bits} bits, {share} of a packet with {packet_bytes} other bytes")
}

/// Returns the share of a packet that a header takes.
pub fn header_share(bits: u32, packet_bytes: u64) -> f64 {
    let bytes = f64::from(bits.div_ceil(8));
    bytes / (bytes + packet_bytes as f64)
}

/// Returns a table for comparisons.
pub fn comparisons() -> Columns {
    Columns::new(&["", "measured", "theory", "deviation"])
}

/// Returns a row with a comparison of shares.
pub fn shares(name: &str, comparison: &Comparison) -> Vec<String> {
    let [measured, theory] = [comparison.measured(), comparison.expected()].map(percent);
    vec![name.to_owned(), measured, theory, deviation(comparison)]
}

/// Returns the difference from theory in standard errors.
pub fn deviation(comparison: &Comparison) -> String {
    let deviations = comparison.deviations();
    // Without a sign if nothing is left after rounding.
    if deviations.abs() < 0.05 { "0.0".to_owned() } else { format!("{deviations:+.1}") }
}

/// Returns a comparison for JSON.
pub fn comparison_json(comparison: &Comparison) -> Value {
    let deviations = Some(comparison.deviations()).filter(|deviations| deviations.is_finite());
    json!({
        "trials": comparison.trials(), "measured": comparison.measured(), "theory": comparison.expected(),
        "deviation": deviations,
    })
}
