//! The report: a page without anything from elsewhere, another one about the slips of the source documents, and beside them, for each
//! experiment, its figures as CSV and JSON and its pictures as SVG.

mod page;
mod textbooks;

use crate::criterion::short;
use crate::{About, Criterion, Error, Findings, Lab, Outcome, Result, Scale, Table};
use page::{escaped, page, prose, row};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

/// Writes everything into a folder, which is made if it is not there.
///
/// # Errors
///
/// [`Error::Report`] if a file cannot be written, or a picture or table cannot be made.
pub fn report(folder: &Path, lab: &Lab, outcomes: &[Outcome]) -> Result<()> {
    write(folder, lab, outcomes).map_err(|source| Error::Report { folder: folder.to_owned(), source })
}

fn write(folder: &Path, lab: &Lab, outcomes: &[Outcome]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut content = contents(lab, outcomes);
    for outcome in outcomes {
        let own = folder.join(outcome.about.id);
        fs::create_dir_all(&own)?;
        content.push_str(&story(outcome, lab, &own)?);
        verdicts(outcome, lab, &own)?;
    }
    fs::write(folder.join("textbooks.html"), textbooks::textbooks(outcomes))?;
    fs::write(folder.join("index.html"), page("umbel lab", &content))
}

/// The summary and the table of contents.
fn contents(lab: &Lab, outcomes: &[Outcome]) -> String {
    let held = outcomes.iter().filter(|outcome| outcome.holds()).count();
    let mut content = format!(
        "<h1>umbel lab</h1><p>The tables, curves and claims of the literature on Bloom filters, reproduced. {held} of {} experiments \
         hold. <span class=\"faint\">A {} run with the seed {}{}.</span></p><p><a href=\"textbooks.html\">What the textbooks get \
         wrong</a></p>{WORDS}<ol>",
        outcomes.len(),
        scale(lab),
        lab.seed,
        lab.changed().iter().fold(String::new(), |told, (name, value)| told + &format!(", {name} = {value}"))
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
    content + "</ol>"
}

/// Glossary of the page.
const WORDS: &str = "<details><summary>Words</summary><p>A <b>member</b> is a key that was inserted, a <b>stranger</b> one that was \
    not. The <b>rate</b> is the share of strangers that a filter says yes to. A <b>build</b> is one filter with its own hash, its own \
    members and its own strangers; figures are means of several. The <b>tolerance</b> of a criterion is what is stated for it, or four \
    standard errors: what <b>chance</b> does once in sixteen thousand times. A count of rare events is judged by its exact law at the \
    same confidence. <b>Printed</b> is what stands in a source.</p></details>";

fn scale(lab: &Lab) -> &'static str {
    if lab.scale == Scale::Full { "full" } else { "quick" }
}

fn verdict(holds: bool) -> (&'static str, &'static str, &'static str) {
    if holds { ("holds", "✓", "holds") } else { ("fails", "✗", "does not hold") }
}

/// One experiment: its tables and pictures, and its part of the page.
fn story(outcome: &Outcome, lab: &Lab, folder: &Path) -> io::Result<String> {
    let About { id, title, source, claim, set_up, .. } = outcome.about;
    let (class, mark, word) = verdict(outcome.holds());
    let mut story = format!(
        "<section id=\"{id}\"><h2>{id}: {} <small class=\"{class}\">{mark} {word}</small></h2>\
         <p><b>Claim.</b> {} <cite>({})</cite></p><p><b>Set-up.</b> {}</p>",
        prose(title),
        prose(claim),
        prose(source),
        prose(set_up)
    );
    story.push_str(&parameters(outcome, lab));
    match &outcome.findings {
        Err(error) => {
            let error = escaped(&format!("{error:#}"));
            let _ = write!(story, "<p class=\"fails\">It could not be run: {error}</p>");
        }
        Ok(findings) => {
            for chart in &findings.charts {
                let svg = chart.to_svg().map_err(io::Error::other)?;
                story.push_str(&picture(folder, &chart.name, &chart.title, &svg)?);
            }
            for trace in &findings.traces {
                let svg = trace.to_svg().map_err(io::Error::other)?;
                story.push_str(&picture(folder, trace.name, trace.title, &svg)?);
            }
            // The conclusion assumes that everything holds.
            let failed = "Not everything holds that should: see the criteria below.";
            let verdict = if outcome.holds() { &findings.verdict } else { failed };
            let _ = write!(story, "<p><b>Verdict.</b> {}</p>", prose(verdict));
            story.push_str(&criteria(findings));
            for table in &findings.tables {
                let csv = table.to_csv().map_err(io::Error::other)?;
                fs::write(folder.join(format!("{}.csv", table.name)), csv)?;
                story.push_str(&figures(id, table));
            }
        }
    }
    Ok(story + "</section>")
}

/// The parameters of this run, if it has some.
fn parameters(outcome: &Outcome, lab: &Lab) -> String {
    let told = outcome.about.parameters.iter().map(|parameter| {
        format!("{} {} = {}", parameter.meaning, parameter.name, short(lab.number(parameter)))
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() {
        return String::new();
    }
    format!("<p class=\"faint\">In this run: {}.</p>", prose(&told.join("; ")))
}

/// The criteria; unfolded if one does not hold.
fn criteria(findings: &Findings) -> String {
    let all = &findings.criteria;
    let held = all.iter().filter(|criterion| criterion.holds).count();
    let open = if held < all.len() { " open" } else { "" };
    let mut told = format!(
        "<details{open}><summary>{held} of {} criteria hold</summary><div class=\"wide\"><table>\
         <tr><th></th><th>criterion</th><th>measured</th><th>expected</th></tr>",
        all.len()
    );
    for criterion in all {
        let (class, mark, _) = verdict(criterion.holds);
        let (claim, expected) = (prose(&criterion.claim), prose(&criterion.expected));
        let _ = write!(
            told,
            "<tr><td class=\"{class}\">{mark}</td><td>{claim}</td><td>{}</td><td>{expected}</td></tr>",
            criterion.measured_text()
        );
    }
    told + "</table></div></details>"
}

/// A table, folded, and where it is as CSV.
fn figures(id: &str, table: &Table) -> String {
    let (name, rows) = (escaped(&table.name), table.rows.len());
    let head = row("th", table.columns.iter().map(String::as_str));
    let body: String = table.rows.iter().map(|cells| row("td", cells.iter().map(String::as_str))).collect();
    format!(
        "<details><summary>{name}, {rows} rows</summary><p class=\"faint\">{id}/{name}.csv</p>\
         <div class=\"wide\"><table>{head}{body}</table></div></details>"
    )
}

/// A picture, as a file and in the page.
fn picture(folder: &Path, name: &str, title: &str, svg: &str) -> io::Result<String> {
    fs::write(folder.join(format!("{name}.svg")), svg)?;
    Ok(format!("<figure role=\"img\" aria-label=\"{}\">{svg}</figure>", escaped(title)))
}

/// Writes the verdicts of the criteria as JSON. Times differ from run to run, so they have a file of their own.
fn verdicts(outcome: &Outcome, lab: &Lab, folder: &Path) -> io::Result<()> {
    let About { id, title, source, .. } = outcome.about;
    let head = json!({
        "id": id, "title": title, "source": source, "seed": lab.seed,
        "scale": scale(lab),
        "parameters": lab.changed(),
    });
    let write = |name: String, holds: bool, key: &str, told: Value| {
        let mut all = head.clone();
        all["holds"] = holds.into();
        all[key] = told;
        fs::write(folder.join(name), format!("{all:#}\n"))
    };
    let findings = match &outcome.findings {
        Ok(findings) => findings,
        Err(error) => return write(format!("{id}.json"), false, "error", format!("{error:#}").into()),
    };
    let (times, others): (Vec<_>, Vec<_>) = findings.criteria.iter().partition(|criterion| criterion.timed);
    let hold = |criteria: &[&Criterion]| criteria.iter().all(|criterion| criterion.holds);
    if !times.is_empty() {
        write(format!("{id}_time.json"), hold(&times), "criteria", json!(times))?;
    }
    write(format!("{id}.json"), hold(&others), "criteria", json!(others))
}
