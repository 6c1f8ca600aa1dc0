//! The report of `umbel net attribute --document`: which parts of a document passed, or left the
//! network.

use super::findings::{count, pair_columns, probability, sum};
use crate::report::Columns;
use crate::terminal::output;
use anyhow::Result;
use serde_json::{Value, json};
use std::ops::Range;
use umbel_net::attribution::{Answer, Part, Parts, Searched, Trust, united};
use umbel_net::network::Prefix;
use umbel_net::rfc3339;

/// A part of the document, and how far its source can be trusted, if the local networks are known.
struct PartLine<'a> {
    searched: &'a Searched<Parts>,
    part: &'a Part,
    trust: Option<Trust>,
}

/// Prints the parts that were found, the longest first; returns whether there are any.
pub fn print(answer: &Answer<Parts>, length: usize, local: &[Prefix], json: bool) -> Result<bool> {
    let mut lines = Vec::new();
    let mut inside = 0;
    for searched in &answer.searched {
        let local = if local.is_empty() { &searched.local } else { local };
        let is_local = |part: &Part| {
            local.iter().any(|net| part.listed.pair.destination.is_some_and(|to| net.covers(to)))
        };
        for part in &searched.found.parts {
            if is_local(part) {
                inside += 1;
            } else {
                let trust = (!local.is_empty()).then(|| Trust::for_pair(&part.listed.pair, local));
                lines.push(PartLine { searched, part, trust });
            }
        }
    }
    lines.sort_by_key(|line| std::cmp::Reverse(bytes(&line.part.ranges)));
    let all = united(lines.iter().flat_map(|line| line.part.ranges.iter().cloned()).collect());
    let least = answer.searched.iter().map(|searched| searched.found.least).max().unwrap_or(0);
    let expected = sum(answer.searched.iter().map(|searched| searched.found.expected));
    if json {
        output::json(&json!({
            "findings": lines.iter().map(PartLine::to_json).collect::<Vec<_>>(), "stayed_inside": inside,
            "document_bytes": length, "passed_bytes": bytes(&all), "passed": pairs(&all), "least_bytes": least,
            "expected_by_chance": expected, "epochs_searched": answer.searched.len(),
            "epochs_unread": answer.unread.len(),
        }))?;
        return Ok(!lines.is_empty());
    }
    let with_trust = inside > 0 || lines.iter().any(|line| line.trust.is_some());
    let mut headings = vec!["source", "destination", "from", "to", "bytes", "of the document"];
    headings.extend(with_trust.then_some("trust"));
    let mut table = Columns::new(&headings);
    for line in &lines {
        let mut row = pair_columns(&line.part.listed);
        row.extend([bytes(&line.part.ranges).to_string(), format_ranges(&line.part.ranges)]);
        row.extend(with_trust.then(|| line.trust.map_or("?".into(), |trust| trust.to_string())));
        table.add(row);
    }
    if !lines.is_empty() {
        output::text(table)?;
    }
    let left = if with_trust { "left the network" } else { "passed" };
    let stayed =
        if inside > 0 { format!("; {} stayed inside", count(inside, "finding")) } else { String::new() };
    let always = match answer.searched.len() {
        0 => "there is no epoch of this time".into(),
        _ => format!("parts of {least} bytes and more are always found"),
    };
    output::message(format_args!(
        "{} of {length} bytes of the document {left}, in {}{stayed}; {always}, {} to be expected by chance",
        bytes(&all),
        count(lines.len(), "finding"),
        probability(expected)
    ));
    Ok(!lines.is_empty())
}

impl PartLine<'_> {
    fn to_json(&self) -> Value {
        let listed = &self.part.listed;
        json!({
            "source": listed.pair.source, "destination": listed.pair.destination,
            "from": rfc3339::format(listed.first), "to": rfc3339::format(listed.last),
            "bytes": bytes(&self.part.ranges), "ranges": pairs(&self.part.ranges),
            "trust": self.trust.map(|trust| trust.to_string()),
            "epoch": self.searched.path.file_name().map(|name| name.to_string_lossy()),
        })
    }
}

fn bytes(ranges: &[Range<usize>]) -> usize {
    ranges.iter().map(ExactSizeIterator::len).sum()
}

fn pairs(ranges: &[Range<usize>]) -> Vec<[usize; 2]> {
    ranges.iter().map(|range| [range.start, range.end]).collect()
}

/// Formats the first few ranges, each from its first to its last byte.
fn format_ranges(ranges: &[Range<usize>]) -> String {
    const MAX_RANGES: usize = 4;
    let shown = ranges.iter().take(MAX_RANGES).map(|range| format!("{}-{}", range.start, range.end - 1));
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if ranges.len() > MAX_RANGES {
        text += &format!(", and {} more", ranges.len() - MAX_RANGES);
    }
    text
}
