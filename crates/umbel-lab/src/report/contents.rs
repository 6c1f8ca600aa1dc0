//! The frame of the page: its first screen, the table of contents, the headings of chapters and the
//! list of references.

use super::page::{escaped, prose};
use super::{chapters, scale, verdict};
use crate::criterion::short;
use crate::references::SOURCE_DOCUMENTS;
use crate::{About, Chapter, Chart, Lab, Outcome, Reference};
use std::fmt::Write as _;
use std::io;

/// The most telling charts: experiment, chart and caption.
const FEATURED: [(&str, &str, &str); 10] = [
    ("E1", "rates", "False-positive rate by hash functions: theory and measurement agree"),
    ("E1c", "ratio", "The classic formula is too low for small filters"),
    ("E11", "bits_per_key", "Bits per key of Bloom, cuckoo, quotient and fuse filters"),
    ("E18", "rates", "Rate of filters that get more keys than they were made for"),
    ("E9", "estimates", "Sizes of flows, estimated from a few bits per packet"),
    ("E16", "times_by_bits", "Lookups slow down where a filter outgrows the caches"),
    ("E8c", "lengths", "Wrong attributions become rarer with longer excerpts"),
    ("E12-hyphen", "bloom", "Hyphenation, the first use of the filter: disk reads saved"),
    ("E12-caches", "delay", "Web caches that share summaries lose hardly any hits"),
    ("E12-vault", "read", "Words that a server reads from a plain filter and from a keyed index"),
];

/// Number of small pictures on the first screen.
const PICTURES: usize = FEATURED.len();

/// Returns the first screen and the table of contents.
pub fn opening(lab: &Lab, outcomes: &[Outcome]) -> io::Result<String> {
    let changed = lab
        .changed()
        .iter()
        .fold(String::new(), |text, (name, value)| text + &format!(", {name} = {}", short(*value)));
    let mut content = format!(
        "<h1>umbel lab</h1><p>Tables, curves and claims of the literature on Bloom filters, \
         reproduced with umbel's own filters.</p><p class=\"verdict\">{} <span class=\"faint\">A \
         {} run with seed {}{changed}.</span></p>",
        summary(outcomes),
        scale(lab),
        lab.seed,
    );
    content.push_str(&pictures(outcomes)?);
    content
        .push_str("<nav aria-label=\"Contents\"><h2 id=\"contents\">Contents</h2><div class=\"contents\">");
    for (chapter, outcomes) in chapters(outcomes) {
        let _ = write!(
            content,
            "<div><h4><a href=\"#chapter-{}\">{}</a></h4><ul>",
            chapter.id(),
            chapter.title()
        );
        for outcome in outcomes {
            let About { id, title, .. } = outcome.about;
            let (class, mark, _) = verdict(outcome.holds());
            let title = prose(title);
            let _ = write!(
                content,
                "<li><span class=\"{class}\">{mark}</span> <a href=\"#{id}\">{id}</a> {title}</li>"
            );
        }
        content.push_str("</ul></div>");
    }
    content.push_str(
        "<div><h4>Appendix</h4><ul><li><a href=\"textbooks.html\">What the textbooks get \
         wrong</a></li><li><a href=\"#references\">References</a></li></ul></div></div></nav>",
    );
    Ok(content + TERMS)
}

/// Returns the verdict in one sentence.
fn summary(outcomes: &[Outcome]) -> String {
    let criteria = || outcomes.iter().flat_map(|outcome| &outcome.findings).flat_map(|found| &found.criteria);
    let (held, all) = (criteria().filter(|criterion| criterion.holds).count(), criteria().count());
    let experiments = outcomes.iter().filter(|outcome| outcome.holds()).count();
    if experiments == outcomes.len() {
        let (class, mark, _) = verdict(true);
        let each =
            if outcomes.len() == 1 { "experiment".into() } else { format!("{experiments} experiments") };
        return format!("<b class=\"{class}\">{mark} All {all} criteria of the {each} hold.</b>");
    }
    let (class, mark, _) = verdict(false);
    format!(
        "<b class=\"{class}\">{mark} {held} of {all} criteria hold, and {experiments} of {} experiments.</b>",
        outcomes.len()
    )
}

/// Returns small pictures that link to their experiments: the featured charts, and others if fewer
/// of those were run.
fn pictures(outcomes: &[Outcome]) -> io::Result<String> {
    let charts = || {
        outcomes.iter().flat_map(|outcome| {
            let charts = outcome.findings.iter().flat_map(|findings| &findings.charts);
            charts.map(|chart| (outcome.about.id, chart))
        })
    };
    let featured = FEATURED.iter().filter_map(|(wanted, name, caption)| {
        let mut all = charts();
        let (id, chart) = all.find(|(id, chart)| id == wanted && chart.name == *name)?;
        Some((id, chart, *caption))
    });
    let mut shown: Vec<(&str, &Chart, &str)> = featured.collect();
    let is_new = |(id, _): &(&str, &Chart)| !FEATURED.iter().any(|featured| featured.0 == *id);
    // One chart of each of the other experiments.
    let mut others: Vec<(&str, &Chart)> = charts().filter(is_new).collect();
    others.dedup_by_key(|(id, _)| *id);
    shown.extend(others.into_iter().map(|(id, chart)| (id, chart, &chart.title[..])));
    shown.truncate(PICTURES);
    let mut cards = String::from("<div class=\"cards\">");
    for (id, chart, caption) in shown {
        let svg = chart.to_thumbnail().map_err(io::Error::other)?;
        let caption = prose(caption);
        let _ = write!(cards, "<a class=\"card\" href=\"#{id}\">{svg}<span>{caption}</span></a>");
    }
    Ok(cards + "</div>")
}

/// Returns the heading of a chapter.
pub fn heading(chapter: Chapter) -> String {
    format!(
        "<h2 id=\"chapter-{}\">{}</h2><p class=\"faint\">{} <a href=\"#contents\">Contents</a></p>",
        chapter.id(),
        chapter.title(),
        chapter.question()
    )
}

/// Returns the list of the cited works and of the source documents, in the order of their authors.
pub fn references(outcomes: &[Outcome]) -> String {
    let cited = outcomes.iter().flat_map(|outcome| outcome.about.sources).copied();
    let mut all: Vec<Reference> = cited.chain(SOURCE_DOCUMENTS).collect();
    all.sort_unstable_by_key(|reference| reference.cite.to_lowercase());
    all.dedup();
    let mut list = String::from(
        "<h2 id=\"references\">References</h2><p class=\"faint\">docs/references.md lists these \
         works by subject, with their DOIs.</p><ul>",
    );
    for Reference { key, cite, entry } in all {
        let (cite, entry) = (escaped(cite), escaped(entry));
        let _ = write!(list, "<li id=\"ref-{key}\"><b>{cite}.</b> {entry}</li>");
    }
    list + "</ul>"
}

/// Glossary of the page.
const TERMS: &str = "<details><summary>Terms</summary><p>A <b>member</b> is a key that was \
    inserted, a <b>stranger</b> is one that was not. The <b>rate</b> is the share of strangers \
    that a filter says yes to. A <b>build</b> is one filter with its own hash, members and \
    strangers; figures are means of several builds. The <b>tolerance</b> of a criterion is stated \
    with it, or is four standard errors: <b>chance</b> exceeds it once in sixteen thousand runs. \
    Counts of rare events are judged by their exact law at the same confidence. <b>Printed</b> \
    values are those of a source.</p></details>";
