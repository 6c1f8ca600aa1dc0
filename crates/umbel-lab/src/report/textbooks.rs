//! The page "what the textbooks get wrong": each slip beside what is right, and what the run has measured of it.

use super::page::{page, prose};
use crate::{Criterion, ERRATA, Erratum, Outcome};
use std::fmt::Write as _;

/// Claims on which the source documents disagree.
const CONTRADICTIONS: [&str; 6] = [
    "k is rounded up in Werren and Suter 2024 and to the nearest in Schierz 2022: the nearest is right (e14).",
    "Strong hashes are not needed in Jambura et al. 2026 and Schierz 2022; in Honoroff 2006 it depends on what is in the filter, and \
     that is right (e03).",
    "Counting filters are the remedy in the untitled article; Honoroff 2006 shows their limits (e43, e54).",
    "One zero bit is enough for a no everywhere but in the untitled article, which wants all of them (e40).",
    "The number of keys cannot be found, say Werren and Suter 2024; it follows from the formulas for the set bits that others \
     print (e12).",
    "There are no false negatives, say Jambura et al. 2026; after a deletion there can be, says Honoroff 2006, and both are right.",
];

/// The page.
pub fn textbooks(outcomes: &[Outcome]) -> String {
    let mut content = String::from(
        "<p><a href=\"index.html\">umbel lab</a></p><h1>What the textbooks get wrong</h1>\
         <p>Five introductions to Bloom filters stand behind this project: three papers, an untitled article and a set of lecture \
         slides, listed by title in docs/references.md. They are good introductions, and nobody writes so much without a slip. \
         Here is each one that was found, what is right instead, and, where an experiment of this report shows it, what was measured.</p>",
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
            let (class, measured) = (class(criterion), criterion.measured_text());
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
