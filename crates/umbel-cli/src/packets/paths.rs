//! The report of `umbel net trace ask`: the paths that a packet may have taken.

use super::captures::OnePacket;
use super::store_report::{probability, whole_seconds};
use crate::report::count;
use crate::terminal::output::{self, warn};
use anyhow::Result;
use serde_json::{Value, json};
use std::fmt::Write;
use std::ops::RangeInclusive;
use umbel_net::capture::Timestamp;
use umbel_net::rfc3339;
use umbel_net::topology::Graph;
use umbel_net::traceback::store::{PathHop, StoreTrace};

/// A question and its answer.
pub struct Inquiry<'a> {
    pub graph: &'a Graph,
    pub victim: usize,
    pub packet: &'a OnePacket,
    pub times: RangeInclusive<Timestamp>,
    pub trace: &'a StoreTrace,
}

/// Prints the paths; returns whether there are any.
pub fn print(inquiry: &Inquiry<'_>, json: bool) -> Result<bool> {
    let trace = inquiry.trace;
    let any = !trace.paths.is_empty();
    if json {
        output::json(&inquiry.to_json())?;
        return Ok(any);
    }
    let mut lines = String::new();
    for path in &trace.paths {
        let hops: Vec<String> = path.iter().map(|hop| inquiry.hop(hop)).collect();
        let _ = writeln!(lines, "{}", hops.join(" <- "));
    }
    output::text(lines)?;
    if !trace.silent.is_empty() {
        warn(format_args!(
            "{} recorded nothing from {} to {}: a path through there is not found",
            inquiry.silent_names(),
            whole_seconds(*inquiry.times.start(), 0),
            whole_seconds(*inquiry.times.end(), 999_999_999)
        ));
    }
    if !trace.is_complete {
        warn("there are too many paths, and not all of them are listed: record with a lower -p");
    }
    let summary = match any {
        true => format!(
            "{} from {}",
            count(trace.paths.len(), "path"),
            count(trace.origins().len(), "possible origin")
        ),
        false => format!("{} did not forward the packet at this time", inquiry.graph.name(inquiry.victim)),
    };
    output::message(format_args!(
        "{summary}; {} to routers, of which at most {} are answered with yes by chance",
        count(trace.questions, "question"),
        probability(trace.expected)
    ));
    Ok(any)
}

impl Inquiry<'_> {
    fn hop(&self, hop: &PathHop) -> String {
        let name = self.graph.name(hop.router);
        if hop.transforms.is_empty() {
            return name.to_owned();
        }
        let transforms: Vec<String> = hop.transforms.iter().map(ToString::to_string).collect();
        format!("{name} ({})", transforms.join(", "))
    }

    fn names<'a>(&'a self, routers: &'a [usize]) -> impl Iterator<Item = &'a str> {
        routers.iter().map(|router| self.graph.name(*router))
    }

    /// Returns the names of the routers without pages, as many as fit into a message.
    fn silent_names(&self) -> String {
        const MAX_NAMES: usize = 5;
        let silent = &self.trace.silent;
        let mut names: String = self.names(silent).take(MAX_NAMES).collect::<Vec<_>>().join(", ");
        if silent.len() > MAX_NAMES {
            let _ = write!(names, " and {} more", count(silent.len() - MAX_NAMES, "router"));
        }
        names
    }

    fn to_json(&self) -> Value {
        let trace = self.trace;
        let hop = |hop: &PathHop| {
            json!({
                "router": self.graph.name(hop.router), "by_chance": hop.chance,
                "transforms": hop.transforms.iter().map(ToString::to_string).collect::<Vec<_>>(),
            })
        };
        let names =
            |path: &Vec<PathHop>| path.iter().map(|hop| self.graph.name(hop.router)).collect::<Vec<_>>();
        json!({
            "packet": {
                "number": self.packet.number, "time": rfc3339::format(self.packet.time),
                "source": self.packet.source, "destination": self.packet.destination,
            },
            "at": self.graph.name(self.victim),
            "from": rfc3339::format(*self.times.start()), "to": rfc3339::format(*self.times.end()),
            "paths": trace.paths.iter().map(names).collect::<Vec<_>>(),
            "hops": trace.paths.iter().map(|path| path.iter().map(hop).collect()).collect::<Vec<Vec<Value>>>(),
            "routers": self.names(&trace.routers()).collect::<Vec<_>>(),
            "origins": self.names(&trace.origins()).collect::<Vec<_>>(),
            "silent": self.names(&trace.silent).collect::<Vec<_>>(),
            "questions": trace.questions, "expected_by_chance": trace.expected, "complete": trace.is_complete,
            "pages_unread": trace.unread.len(),
        })
    }
}
