//! The page "What the textbooks get wrong": each error of a source document, the correction, and
//! the measurements that show it.

use super::citation;
use super::page::{escaped, page, prose};
use crate::{Criterion, ERRATA, Erratum, Outcome, Reference};
use std::fmt::Write as _;

/// Claims on which the source documents disagree.
const CONTRADICTIONS: [&str; 6] = [
    "Werren and Suter 2024 round k up, Schierz 2022 rounds it to the nearest whole number. The \
     nearest is right (e14).",
    "Jambura et al. 2026 and Schierz 2022 do not require cryptographic hashes. According to \
     Honoroff 2006 it depends on the content of the filter, which is right (e03).",
    "The untitled article presents counting filters as the remedy; Honoroff 2006 shows their \
     limits (e43, e54).",
    "One zero bit is enough for a no, except in the untitled article, which requires all of them \
     to be zero (e40).",
    "Werren and Suter 2024 say that the number of keys cannot be found. It follows from the \
     formulas for the set bits that others print (e12).",
    "Jambura et al. 2026 say that there are no false negatives; Honoroff 2006 says that a deletion \
     can cause them. Both are right.",
];

/// Returns the page.
pub fn textbooks(outcomes: &[Outcome]) -> String {
    let mut content = String::from(
        "<p><a href=\"index.html\">umbel lab</a></p><h1>What the textbooks get wrong</h1><p>This \
         project began with five introductions to Bloom filters: three papers, an untitled article \
         and a set of lecture slides. They are good introductions, and no long text is free of \
         errors. This page lists each error that was found, the correction, and the measurements \
         of this report that show it.</p>",
    );
    let mut source: Option<Reference> = None;
    for erratum in ERRATA {
        if source != Some(erratum.source) {
            if source.is_some() {
                content.push_str("</dl>");
            }
            source = Some(erratum.source);
            let link = citation("index.html", &erratum.source);
            let _ = write!(content, "<h2>In {link}</h2><dl>");
        }
        let Erratum { number, says, truth, .. } = erratum;
        let _ = write!(
            content,
            "<dt id=\"{number}\"><span class=\"faint\">{number}</span> {}</dt><dd>{}",
            prose(says),
            prose(truth)
        );
        for (id, criterion) in shown(outcomes, number) {
            let (class, measured) = (class(criterion), escaped(criterion.measured_text()));
            let _ = write!(
                content,
                "<br><span class=\"{class}\">●</span> <a href=\"index.html#{id}\">{id}</a> <span class=\"faint\">{}: {measured}</span>",
                prose(&criterion.claim)
            );
        }
        content.push_str("</dd>");
    }
    content.push_str("</dl><h2>Contradictions between the documents</h2><ul>");
    for contradiction in CONTRADICTIONS {
        let _ = write!(content, "<li>{}</li>", prose(contradiction));
    }
    content.push_str("</ul>");
    page("What the textbooks get wrong", &content)
}

/// Returns the criteria of a run that show an error, each with the id of its experiment.
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
