//! The page "what the textbooks get wrong": each slip beside what is right, and what the run has measured of it.

use super::page::{page, prose};
use crate::{Criterion, ERRATA, Erratum, Outcome};
use std::fmt::Write as _;

/// What one source says and another denies.
const CONTRADICTIONS: [&str; 6] = [
    "k is rounded up in the second seminar paper and to the nearest in the third: the nearest is right (e14).",
    "Strong hashes are needless for the first and the third seminar paper; for the slides it depends on what is in the filter, and \
     that is so (e03).",
    "Counting filters are the remedy for the short article; the slides show their limits (e43, e54).",
    "One zero bit is enough for a no everywhere but in the short article, which wants all of them (e40).",
    "The number of keys cannot be told, says the second seminar paper; the formulas for the set bits that others print tell it (e12).",
    "There are no false negatives, says the first seminar paper; after a deletion there can be, say the slides, and both are right.",
];

/// The page.
pub fn textbooks(outcomes: &[Outcome]) -> String {
    let mut content = String::from(
        "<p><a href=\"index.html\">umbel lab</a></p><h1>What the textbooks get wrong</h1>\
         <p>Five introductions to Bloom filters stand behind this project: three seminar papers, a short article and a set of \
         lecture slides. They are good introductions, and nobody writes so much without a slip. Here is each one that was \
         found, what is right instead, and, where an experiment of this report shows it, what was measured.</p>",
    );
    let mut source = "";
    for erratum in ERRATA {
        if erratum.source != source {
            if !source.is_empty() {
                content.push_str("</dl>");
            }
            source = erratum.source;
            let _ = write!(content, "<h2>In {source}</h2><dl>");
        }
        let Erratum { number, says, truth, .. } = erratum;
        let _ = write!(
            content,
            "<dt id=\"{number}\"><span class=\"faint\">{number}</span> {}</dt><dd>{}",
            prose(says),
            prose(truth)
        );
        for (id, criterion) in shown(outcomes, number) {
            let (class, measured) = (class(criterion), criterion.told());
            let _ = write!(
                content,
                "<br><span class=\"{class}\">●</span> <a href=\"index.html#{id}\">{id}</a> <span class=\"faint\">{}: {measured}</span>",
                prose(&criterion.claim)
            );
        }
        content.push_str("</dd>");
    }
    content.push_str("</dl><h2>Where they contradict each other</h2><ul>");
    for contradiction in CONTRADICTIONS {
        let _ = write!(content, "<li>{}</li>", prose(contradiction));
    }
    content.push_str("</ul>");
    page("What the textbooks get wrong", &content)
}

/// The criteria of a run that show a slip, each with its experiment.
fn shown<'a>(
    outcomes: &'a [Outcome],
    number: &'a str,
) -> impl Iterator<Item = (&'static str, &'a Criterion)> {
    outcomes.iter().flat_map(move |outcome| {
        let criteria = outcome.findings.iter().flat_map(|findings| &findings.criteria);
        let of = criteria.filter(move |criterion| criterion.shows == Some(number));
        of.map(|criterion| (outcome.about.id, criterion))
    })
}

fn class(criterion: &Criterion) -> &'static str {
    if criterion.holds { "holds" } else { "fails" }
}
