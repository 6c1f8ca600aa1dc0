//! The report of `umbel net attribute --excerpt`: which pairs carried an excerpt, and when.

use crate::report::Columns;
use crate::terminal::output::{self, warn};
use anyhow::Result;
use serde_json::{Value, json};
use std::net::IpAddr;
use umbel_net::attribution::{Answer, ExcerptFindings, Finding, Listed, Pair, Searched, Trust, WINDOW};
use umbel_net::capture::Timestamp;
use umbel_net::network::Prefix;
use umbel_net::rfc3339;

/// Prints the findings, those that are least likely by chance first; returns whether there are any.
pub fn print(answer: &Answer<ExcerptFindings>, local: &[Prefix], json: bool) -> Result<bool> {
    let mut lines: Vec<FindingLine<'_>> = lines(answer, local).collect();
    lines.sort_by(|one, other| one.finding.chance.total_cmp(&other.finding.chance));
    let expected = sum(answer.searched.iter().map(|searched| searched.found.expected));
    if json {
        output::json(&json!({
            "findings": lines.iter().map(FindingLine::to_json).collect::<Vec<_>>(), "expected_by_chance": expected,
            "epochs_searched": answer.searched.len(), "epochs_unread": answer.unread.len(),
        }))?;
    } else {
        print_table(&lines, answer, expected)?;
    }
    Ok(!lines.is_empty())
}

/// A pair that carried the excerpt, and the trust in its source.
struct FindingLine<'a> {
    searched: &'a Searched<ExcerptFindings>,
    finding: &'a Finding,
    /// The trust in the source, if the local networks are known.
    trust: Option<Trust>,
}

fn lines<'a>(
    answer: &'a Answer<ExcerptFindings>,
    local: &'a [Prefix],
) -> impl Iterator<Item = FindingLine<'a>> {
    answer.searched.iter().flat_map(move |searched| {
        let local = if local.is_empty() { &searched.local[..] } else { local };
        searched.found.findings.iter().map(move |finding| {
            let trust = (!local.is_empty()).then(|| Trust::for_pair(&finding.listed.pair, local));
            FindingLine { searched, finding, trust }
        })
    })
}

fn print_table(lines: &[FindingLine<'_>], answer: &Answer<ExcerptFindings>, expected: f64) -> Result<()> {
    let with_trust = lines.iter().any(|line| line.trust.is_some());
    let mut headings =
        vec!["source", "destination", "from", "to", "offset", "blocks", "not compared", "by chance"];
    headings.extend(with_trust.then_some("trust"));
    let mut table = Columns::new(&headings);
    for line in lines {
        let Finding { listed, blocks, not_compared, chance, .. } = line.finding;
        let mut row = pair_columns(listed);
        row.extend([
            line.offset(),
            blocks.to_string(),
            format!("{not_compared} bytes"),
            probability(*chance),
        ]);
        row.extend(with_trust.then(|| line.trust.map_or("?".into(), |trust| trust.to_string())));
        table.add(row);
    }
    if !lines.is_empty() {
        output::text(table)?;
    }
    let epochs = answer.searched.len();
    if expected >= 0.5 {
        warn(format_args!("the excerpt is short: about {expected:.0} pairs are named by chance alone"));
    }
    output::message(format_args!(
        "{} in {}; {} to be expected by chance",
        count(lines.len(), "finding"),
        count(epochs, "epoch"),
        probability(expected)
    ));
    Ok(())
}

impl FindingLine<'_> {
    fn is_cyclic(&self) -> bool {
        self.searched.about.longest > WINDOW
    }

    fn cycle(&self) -> u64 {
        WINDOW * self.searched.about.block as u64
    }

    fn offset(&self) -> String {
        match self.finding.position() {
            Some(position) if self.is_cyclic() => format!("{position} mod {}", self.cycle()),
            Some(position) => position.to_string(),
            None => "?".into(),
        }
    }

    fn to_json(&self) -> Value {
        let Finding { listed, blocks, not_compared, places, chance, .. } = self.finding;
        json!({
            "source": listed.pair.source, "destination": listed.pair.destination,
            "from": rfc3339::format(listed.first), "to": rfc3339::format(listed.last),
            "offset": self.finding.position(), "modulo": self.is_cyclic().then(|| self.cycle()), "places": places,
            "blocks": blocks, "not_compared": not_compared, "by_chance": chance,
            "trust": self.trust.map(|trust| trust.to_string()),
            "epoch": self.searched.path.file_name().map(|name| name.to_string_lossy()),
        })
    }
}

/// Returns the first columns of a line: source, destination, and the first and last time of the
/// pair.
pub fn pair_columns(listed: &Listed) -> Vec<String> {
    let host = |host: Option<IpAddr>| host.map_or("unlisted".into(), |host| host.to_string());
    let Pair { source, destination } = listed.pair;
    vec![
        host(source),
        host(destination),
        whole_seconds(listed.first, 0),
        whole_seconds(listed.last, 999_999_999),
    ]
}

/// Formats a time in seconds after adding `nanos`: decimals would suggest more than is known.
pub fn whole_seconds(time: Timestamp, nanos: u64) -> String {
    let text = rfc3339::format(Timestamp::from_nanos(time.nanos().saturating_add(nanos)));
    format!("{}Z", text.split('.').next().unwrap_or_default())
}

/// Adds numbers. The sum of none is 0, and not -0 as from `Iterator::sum`.
pub fn sum(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(0.0, |sum, number| sum + number)
}

/// Formats an expected number of findings by chance.
pub fn probability(chance: f64) -> String {
    match chance {
        0.0 => "0".into(),
        chance if chance < 1e-3 => format!("{chance:.1e}"),
        chance if chance < 10.0 => format!("{chance:.3}"),
        chance => format!("{chance:.0}"),
    }
}

/// Returns a number and its noun, such as `1 epoch` or `2 epochs`.
pub fn count(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
