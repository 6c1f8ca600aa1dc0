//! The report of `umbel net attribute --document`: which parts of a document passed, or left the
//! network.

use super::store_report::{FoundPair, StoreReport, local_networks, pair_headings, probability, sum};
use crate::report::{Columns, count};
use crate::terminal::output;
use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::ops::Range;
use umbel_net::attribution::{Answer, Part, Parts, united};
use umbel_net::network::Prefix;

/// The parts of a document that were carried.
#[derive(Default, Deserialize)]
pub struct PartsReport {
    findings: Vec<PartRow>,
    /// The number of findings whose destination is in a local network.
    stayed_inside: usize,
    least_bytes: usize,
    expected_by_chance: f64,
    epochs_searched: usize,
    epochs_unread: usize,
}

/// The parts that a pair carried.
#[derive(Serialize, Deserialize)]
struct PartRow {
    #[serde(flatten)]
    pair: FoundPair,
    bytes: usize,
    /// The first byte of each part, and the byte after its last.
    ranges: Vec<[usize; 2]>,
}

impl PartsReport {
    /// Returns the report of a store on this machine.
    pub fn new(answer: &Answer<Parts>, local: &[Prefix]) -> PartsReport {
        let mut report = PartsReport {
            least_bytes: answer.searched.iter().map(|searched| searched.found.least).max().unwrap_or(0),
            expected_by_chance: sum(answer.searched.iter().map(|searched| searched.found.expected)),
            epochs_searched: answer.searched.len(),
            epochs_unread: answer.unread.len(),
            ..PartsReport::default()
        };
        for searched in &answer.searched {
            let is_local = |part: &&Part| {
                let covers = |net: &Prefix| part.listed.pair.destination.is_some_and(|to| net.covers(to));
                local_networks(searched, local).iter().any(covers)
            };
            let (inside, outside): (Vec<&Part>, Vec<&Part>) = searched.found.parts.iter().partition(is_local);
            report.stayed_inside += inside.len();
            report.findings.extend(outside.into_iter().map(|part| PartRow {
                pair: FoundPair::new(&part.listed, searched, local),
                bytes: bytes(&part.ranges),
                ranges: part.ranges.iter().map(|range| [range.start, range.end]).collect(),
            }));
        }
        report
    }

    /// Puts the longest findings first, and returns all parts that were found.
    fn sort(&mut self) -> Vec<Range<usize>> {
        self.findings.sort_by_key(|finding| Reverse(finding.bytes));
        united(self.findings.iter().flat_map(PartRow::ranges).collect())
    }
}

impl StoreReport for PartsReport {
    fn pairs(&mut self) -> impl Iterator<Item = &mut FoundPair> {
        self.findings.iter_mut().map(|finding| &mut finding.pair)
    }

    fn check(&self, sought: usize) -> Result<()> {
        let is_possible = |[start, end]: &[usize; 2]| start < end && *end <= sought;
        if !self.findings.iter().flat_map(|finding| &finding.ranges).all(is_possible) {
            bail!("it reports parts that are not in the document");
        }
        Ok(())
    }

    fn merge(&mut self, other: PartsReport) {
        self.findings.extend(other.findings);
        self.stayed_inside = self.stayed_inside.saturating_add(other.stayed_inside);
        self.least_bytes = self.least_bytes.max(other.least_bytes);
        self.expected_by_chance += other.expected_by_chance;
        self.epochs_searched = self.epochs_searched.saturating_add(other.epochs_searched);
        self.epochs_unread = self.epochs_unread.saturating_add(other.epochs_unread);
    }

    fn epochs(&self) -> (usize, usize) {
        (self.epochs_searched, self.epochs_unread)
    }

    fn any(&self) -> bool {
        !self.findings.is_empty()
    }

    fn to_json(&mut self, sought: usize) -> Result<Value> {
        let all = self.sort();
        let passed: Vec<[usize; 2]> = all.iter().map(|range| [range.start, range.end]).collect();
        Ok(json!({
            "findings": self.findings, "stayed_inside": self.stayed_inside, "document_bytes": sought,
            "passed_bytes": bytes(&all), "passed": passed, "least_bytes": self.least_bytes,
            "expected_by_chance": self.expected_by_chance, "epochs_searched": self.epochs_searched,
            "epochs_unread": self.epochs_unread,
        }))
    }

    fn print(&mut self, sought: usize) -> Result<()> {
        let all = self.sort();
        let inside = self.stayed_inside;
        let with_trust = inside > 0 || self.findings.iter().any(|finding| finding.pair.trust.is_some());
        let mut headings = pair_headings(self.findings.iter().any(|finding| finding.pair.store.is_some()));
        headings.extend(["bytes", "of the document"]);
        headings.extend(with_trust.then_some("trust"));
        let mut table = Columns::new(&headings);
        for finding in &self.findings {
            let mut row = finding.pair.columns();
            row.extend([finding.bytes.to_string(), finding.ranges_column()]);
            row.extend(with_trust.then(|| finding.pair.trust_column()));
            table.add(row);
        }
        if !self.findings.is_empty() {
            output::text(table)?;
        }
        let left = if with_trust { "left the network" } else { "passed" };
        let stayed =
            if inside > 0 { format!("; {} stayed inside", count(inside, "finding")) } else { String::new() };
        let always = match self.epochs_searched {
            0 => "there is no epoch of this time".into(),
            _ => format!("parts of {} bytes and more are always found", self.least_bytes),
        };
        output::message(format_args!(
            "{} of {sought} bytes of the document {left}, in {}{stayed}; {always}, {} to be expected by chance",
            bytes(&all),
            count(self.findings.len(), "finding"),
            probability(self.expected_by_chance)
        ));
        Ok(())
    }
}

impl PartRow {
    fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        self.ranges.iter().map(|[start, end]| *start..*end)
    }

    /// Formats the first few ranges, each from its first to its last byte.
    fn ranges_column(&self) -> String {
        const MAX_RANGES: usize = 4;
        let shown = self.ranges().take(MAX_RANGES).map(|range| format!("{}-{}", range.start, range.end - 1));
        let mut text = shown.collect::<Vec<_>>().join(", ");
        if self.ranges.len() > MAX_RANGES {
            text += &format!(", and {} more", self.ranges.len() - MAX_RANGES);
        }
        text
    }
}

fn bytes(ranges: &[Range<usize>]) -> usize {
    ranges.iter().map(ExactSizeIterator::len).sum()
}
