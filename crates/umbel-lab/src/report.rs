//! The report: one page without anything from elsewhere, and beside it, for each experiment, its figures as CSV and JSON
//! and its pictures as SVG.

use crate::{About, Criterion, Drawing, Lab, Outcome, Scale, Table};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

/// Writes everything into a folder, which is made if it is not there.
pub fn report(folder: &Path, lab: &Lab, outcomes: &[Outcome]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut page = String::new();
    for outcome in outcomes {
        let own = folder.join(outcome.about.id);
        fs::create_dir_all(&own)?;
        story(&mut page, outcome, lab, &own)?;
    }
    fs::write(folder.join("index.html"), html(outcomes, &page))
}

/// One experiment: its files, and its part of the page.
fn story(page: &mut String, outcome: &Outcome, lab: &Lab, folder: &Path) -> io::Result<()> {
    let About { id, title, source, claim, set_up, .. } = outcome.about;
    let (class, verdict) = if outcome.holds() { ("holds", "holds") } else { ("fails", "does not hold") };
    let _ = write!(
        page,
        "<section id=\"{id}\"><h2>{id} <small class=\"{class}\">{verdict}</small></h2><h3>{}</h3>\
         <p><b>Claim.</b> {} <cite>{}</cite></p><p><b>Set-up.</b> {}</p>",
        escaped(title),
        escaped(claim),
        escaped(source),
        escaped(set_up)
    );
    match &outcome.findings {
        Err(error) => {
            let _ =
                write!(page, "<p class=\"fails\">It could not be run: {}</p>", escaped(&error.to_string()));
        }
        Ok(findings) => {
            for chart in &findings.charts {
                let svg = chart.to_svg().map_err(|error| io::Error::other(error.to_string()))?;
                picture(page, folder, &chart.name, &chart.title, &svg)?;
            }
            for Drawing { name, title, svg } in &findings.drawings {
                picture(page, folder, name, title, svg)?;
            }
            page.push_str("<table><tr><th>criterion</th><th>measured</th><th>expected</th><th></th></tr>");
            for criterion in &findings.criteria {
                let (class, mark) = if criterion.holds { ("holds", "✓") } else { ("fails", "✗") };
                let _ = write!(
                    page,
                    "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"{class}\">{mark}</td></tr>",
                    escaped(&criterion.claim),
                    criterion.told(),
                    escaped(&criterion.expected)
                );
            }
            page.push_str("</table>");
            for table in &findings.tables {
                fs::write(
                    folder.join(&table.name).with_extension("csv"),
                    table.to_csv().map_err(io::Error::other)?,
                )?;
                figures(page, table);
            }
            let _ = write!(page, "<p><b>Verdict.</b> {}</p>", escaped(&findings.verdict));
        }
    }
    page.push_str("</section>");
    verdicts(outcome, lab, folder)
}

/// What held and what did not, as JSON. Times differ from run to run, so they have a file of their own.
fn verdicts(outcome: &Outcome, lab: &Lab, folder: &Path) -> io::Result<()> {
    let About { id, title, source, .. } = outcome.about;
    let head = json!({
        "id": id, "title": title, "source": source, "seed": lab.seed,
        "scale": if lab.scale == Scale::Full { "full" } else { "quick" },
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
        Err(error) => return write(format!("{id}.json"), false, "error", error.to_string().into()),
    };
    let (times, others): (Vec<_>, Vec<_>) = findings.criteria.iter().partition(|criterion| criterion.timed);
    let hold = |criteria: &[&Criterion]| criteria.iter().all(|criterion| criterion.holds);
    if !times.is_empty() {
        write(format!("{id}_time.json"), hold(&times), "criteria", json!(times))?;
    }
    write(format!("{id}.json"), hold(&others), "criteria", json!(others))
}

fn picture(page: &mut String, folder: &Path, name: &str, title: &str, svg: &str) -> io::Result<()> {
    let _ = write!(page, "<figure role=\"img\" aria-label=\"{}\">{svg}</figure>", escaped(title));
    fs::write(folder.join(name).with_extension("svg"), svg)
}

fn figures(page: &mut String, table: &Table) {
    let _ = write!(
        page,
        "<details><summary>{} ({} rows)</summary><table>",
        escaped(&table.name),
        table.rows.len()
    );
    row(page, "th", &table.columns);
    table.rows.iter().for_each(|cells| row(page, "td", cells));
    page.push_str("</table></details>");
}

fn row(page: &mut String, cell: &str, cells: &[String]) {
    page.push_str("<tr>");
    for text in cells {
        let _ = write!(page, "<{cell}>{}</{cell}>", escaped(text));
    }
    page.push_str("</tr>");
}

fn html(outcomes: &[Outcome], stories: &str) -> String {
    let mut list = String::new();
    for outcome in outcomes {
        let class = if outcome.holds() { "holds" } else { "fails" };
        let About { id, title, .. } = outcome.about;
        let _ = write!(
            list,
            "<li><a href=\"#{id}\">{id}</a> <span class=\"{class}\">●</span> {}</li>",
            escaped(title)
        );
    }
    let held = outcomes.iter().filter(|outcome| outcome.holds()).count();
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>umbel lab</title>\
         <style>{STYLE}</style></head><body><h1>umbel lab</h1>\
         <p>{held} of {} experiments hold.</p><ul>{list}</ul>{stories}</body></html>\n",
        outcomes.len()
    )
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:auto;padding:1rem;color:#222}\
    h1{font-size:1.6rem}h2{font-size:1.3rem;margin-top:3rem}h3{font-weight:normal;margin:0}\
    figure{margin:1rem 0}svg{max-width:100%;height:auto}table{border-collapse:collapse;font-size:.9rem;display:block;overflow-x:auto}\
    td,th{padding:.1rem .6rem;text-align:right;border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}\
    .holds{color:#00734f}.fails{color:#b34000}cite{color:#666}ul{list-style:none;padding:0}\
    @media print{section{break-inside:avoid}details{display:none}}";

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
