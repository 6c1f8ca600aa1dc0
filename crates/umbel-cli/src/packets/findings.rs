//! The report of `umbel net attribute --excerpt`: which pairs carried an excerpt, and when.

use super::store_report::{FoundPair, StoreReport, pair_headings, probability, sum};
use crate::report::{Columns, count};
use crate::terminal::output::{self, warn};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use umbel_net::attribution::{Answer, ExcerptFindings, Finding, Searched, WINDOW};
use umbel_net::network::Prefix;

/// The pairs that carried an excerpt.
#[derive(Default, Serialize, Deserialize)]
pub struct ExcerptReport {
    findings: Vec<FindingRow>,
    expected_by_chance: f64,
    epochs_searched: usize,
    epochs_unread: usize,
    /// The number of alignments that block filters excluded. Older programs do not send it.
    #[serde(default)]
    alignments_excluded: u64,
}

/// A pair that carried the excerpt.
#[derive(Serialize, Deserialize)]
struct FindingRow {
    #[serde(flatten)]
    pair: FoundPair,
    /// The byte of the payload at which the excerpt begins.
    offset: Option<u64>,
    /// The number of bytes up to a multiple of which the offset is known.
    modulo: Option<u64>,
    places: u64,
    blocks: u64,
    not_compared: usize,
    by_chance: f64,
}

impl ExcerptReport {
    /// Returns the report of a store on this machine.
    pub fn new(answer: &Answer<ExcerptFindings>, local: &[Prefix]) -> ExcerptReport {
        let rows = answer.searched.iter().flat_map(|searched| {
            searched.found.findings.iter().map(move |finding| FindingRow::new(finding, searched, local))
        });
        ExcerptReport {
            findings: rows.collect(),
            expected_by_chance: sum(answer.searched.iter().map(|searched| searched.found.expected)),
            epochs_searched: answer.searched.len(),
            epochs_unread: answer.unread.len(),
            alignments_excluded: answer.searched.iter().map(|searched| searched.found.excluded).sum(),
        }
    }

    /// Puts the findings that are least likely by chance first.
    fn sort(&mut self) {
        self.findings.sort_by(|one, other| one.by_chance.total_cmp(&other.by_chance));
    }
}

impl StoreReport for ExcerptReport {
    fn pairs(&mut self) -> impl Iterator<Item = &mut FoundPair> {
        self.findings.iter_mut().map(|finding| &mut finding.pair)
    }

    fn check(&self, _: usize) -> Result<()> {
        Ok(())
    }

    fn merge(&mut self, other: ExcerptReport) {
        self.findings.extend(other.findings);
        self.expected_by_chance += other.expected_by_chance;
        self.epochs_searched = self.epochs_searched.saturating_add(other.epochs_searched);
        self.epochs_unread = self.epochs_unread.saturating_add(other.epochs_unread);
        self.alignments_excluded = self.alignments_excluded.saturating_add(other.alignments_excluded);
    }

    fn epochs(&self) -> (usize, usize) {
        (self.epochs_searched, self.epochs_unread)
    }

    fn any(&self) -> bool {
        !self.findings.is_empty()
    }

    fn to_json(&mut self, _: usize) -> Result<Value> {
        self.sort();
        Ok(serde_json::to_value(&*self)?)
    }

    fn print(&mut self, _: usize) -> Result<()> {
        self.sort();
        let with_trust = self.findings.iter().any(|finding| finding.pair.trust.is_some());
        let with_store = self.findings.iter().any(|finding| finding.pair.store.is_some());
        let mut headings = pair_headings(with_store);
        headings.extend(["offset", "blocks", "not compared", "by chance"]);
        headings.extend(with_trust.then_some("trust"));
        let mut table = Columns::new(&headings);
        for finding in &self.findings {
            let mut row = finding.pair.columns();
            row.extend([
                finding.offset_column(),
                finding.blocks.to_string(),
                format!("{} bytes", finding.not_compared),
                probability(finding.by_chance),
            ]);
            row.extend(with_trust.then(|| finding.pair.trust_column()));
            table.add(row);
        }
        if !self.findings.is_empty() {
            output::text(table)?;
        }
        let expected = self.expected_by_chance;
        if expected >= 0.5 {
            warn(format_args!("the excerpt is short: about {expected:.0} pairs are named by chance alone"));
        }
        output::message(format_args!(
            "{} in {}; {} to be expected by chance",
            count(self.findings.len(), "finding"),
            count(self.epochs_searched, "epoch"),
            probability(expected)
        ));
        Ok(())
    }
}

impl FindingRow {
    fn new(finding: &Finding, searched: &Searched<ExcerptFindings>, local: &[Prefix]) -> FindingRow {
        let about = &searched.about;
        FindingRow {
            pair: FoundPair::new(&finding.listed, searched, local),
            offset: finding.position(),
            modulo: (about.longest > WINDOW).then_some(WINDOW * about.block as u64),
            places: finding.places,
            blocks: finding.blocks,
            not_compared: finding.not_compared,
            by_chance: finding.chance,
        }
    }

    fn offset_column(&self) -> String {
        match (self.offset, self.modulo) {
            (Some(offset), Some(modulo)) => format!("{offset} mod {modulo}"),
            (Some(offset), None) => offset.to_string(),
            (None, _) => "?".into(),
        }
    }
}
