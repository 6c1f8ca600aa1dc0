//! The report: an HTML page that loads nothing, a second page about the errors of the source
//! documents, and a folder for each experiment with its tables as CSV, its criteria as JSON and its
//! pictures as SVG.
//!
//! The page opens with the verdict, ten small pictures and the table of contents. The experiments
//! follow chapter by chapter, and the works that they cite come last.

mod contents;
mod page;
mod textbooks;

use crate::criterion::short;
use crate::{About, Chapter, Criterion, Error, Findings, Lab, Outcome, Reference, Result, Scale, Table};
use page::{escaped, page, prose, row};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use umbel::file::{self, Placing};

/// Writes the report into a folder, which is created if it does not exist.
///
/// # Errors
///
/// [`Error::Report`] if a file cannot be written, or a picture or table cannot be produced.
pub fn report(folder: &Path, lab: &Lab, outcomes: &[Outcome]) -> Result<()> {
    write(folder, lab, outcomes).map_err(|source| Error::Report { folder: folder.to_owned(), source })
}

fn write(folder: &Path, lab: &Lab, outcomes: &[Outcome]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut content = contents::opening(lab, outcomes)?;
    for (chapter, outcomes) in chapters(outcomes) {
        content.push_str(&contents::heading(chapter));
        for outcome in outcomes {
            let own = folder.join(outcome.about.id);
            fs::create_dir_all(&own)?;
            content.push_str(&experiment(outcome, lab, &own)?);
            write_criteria(outcome, lab, &own)?;
        }
    }
    content.push_str(&contents::references(outcomes));
    save(&folder.join("textbooks.html"), textbooks::textbooks(outcomes))?;
    save(&folder.join("index.html"), page("umbel lab", &content))
}

/// Writes a file of the report completely or not at all.
fn save(path: &Path, contents: impl AsRef<[u8]>) -> io::Result<()> {
    file::save_bytes(path, contents.as_ref(), Placing::default()).map(drop).map_err(io::Error::other)
}

/// Returns the chapters that have outcomes, each with its outcomes.
fn chapters(outcomes: &[Outcome]) -> impl Iterator<Item = (Chapter, Vec<&Outcome>)> {
    let of = |chapter| {
        let own: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.about.chapter == chapter).collect();
        (chapter, own)
    };
    Chapter::ALL.into_iter().map(of).filter(|(_, own)| !own.is_empty())
}

fn scale(lab: &Lab) -> &'static str {
    if lab.scale == Scale::Full { "full" } else { "quick" }
}

/// Returns the class, the mark and the words for a verdict.
fn verdict(holds: bool) -> (&'static str, &'static str, &'static str) {
    if holds { ("holds", "✓", "holds") } else { ("fails", "✗", "does not hold") }
}

/// Returns a link to the entry of a work in the list of references, which is on this page (`""`) or
/// on another one.
fn citation(page: &str, Reference { key, cite, .. }: &Reference) -> String {
    format!("<a href=\"{page}#ref-{key}\">{}</a>", escaped(cite))
}

/// Returns the section of an experiment, and writes its tables and pictures.
fn experiment(outcome: &Outcome, lab: &Lab, folder: &Path) -> io::Result<String> {
    let About { id, title, sources, claim, set_up, advice, command, .. } = outcome.about;
    let (class, mark, words) = verdict(outcome.holds());
    let sources: Vec<String> = sources.iter().map(|source| citation("", source)).collect();
    let mut section = format!(
        "<section id=\"{id}\"><h3><a href=\"#{id}\">{id}</a> {} \
         <small class=\"{class}\">{mark} {words}</small></h3>\
         <p><b>Claim.</b> {} <cite>[{}]</cite></p><p><b>Set-up.</b> {}</p>",
        prose(title),
        prose(claim),
        sources.join("; "),
        prose(set_up)
    );
    section.push_str(&settings(outcome, lab));
    match &outcome.findings {
        Err(error) => {
            let error = escaped(&format!("{error:#}"));
            let _ = write!(section, "<p class=\"fails\">The experiment could not run: {error}</p>");
        }
        Ok(findings) => {
            for chart in &findings.charts {
                let svg = chart.to_svg().map_err(io::Error::other)?;
                section.push_str(&picture(folder, &chart.name, &chart.title, &svg)?);
            }
            for trace in &findings.traces {
                let svg = trace.to_svg().map_err(io::Error::other)?;
                section.push_str(&picture(folder, trace.name, &trace.title, &svg)?);
            }
            // The conclusion and the advice assume that all criteria hold.
            if outcome.holds() {
                let _ = write!(
                    section,
                    "<p><b>Verdict.</b> {}</p><p class=\"advice\"><b>In practice.</b> {}</p>",
                    prose(&findings.verdict),
                    prose(advice)
                );
            } else {
                section.push_str("<p><b>Verdict.</b> Some criteria do not hold: see below.</p>");
            }
            let _ = write!(section, "<p><b>Try it</b> with {}.</p>", prose(command));
            section.push_str(&criteria(findings));
            for table in &findings.tables {
                let csv = table.to_csv().map_err(io::Error::other)?;
                save(&folder.join(format!("{}.csv", table.name)), csv)?;
                section.push_str(&figures(id, table));
            }
        }
    }
    Ok(section + "</section>")
}

/// Returns the parameters of this run: `n = 1000 (keys in a filter)`.
fn settings(outcome: &Outcome, lab: &Lab) -> String {
    let settings: Vec<String> = outcome
        .about
        .parameters
        .iter()
        .map(|parameter| {
            format!("{} = {} ({})", parameter.name, short(lab.number(parameter)), parameter.meaning)
        })
        .collect();
    if settings.is_empty() {
        return String::new();
    }
    format!("<p class=\"faint\"><b>Settings.</b> {}.</p>", prose(&settings.join("; ")))
}

/// Returns the table of criteria, which is unfolded if one does not hold.
fn criteria(findings: &Findings) -> String {
    let all = &findings.criteria;
    let held = all.iter().filter(|criterion| criterion.holds).count();
    let open = if held < all.len() { " open" } else { "" };
    let mut table = format!(
        "<details{open}><summary>{held} of {} criteria hold</summary><div class=\"wide\"><table>\
         <tr><th></th><th>criterion</th><th>measured</th><th>expected</th></tr>",
        all.len()
    );
    for criterion in all {
        let (class, mark, _) = verdict(criterion.holds);
        let (claim, expected) = (prose(&criterion.claim), prose(&criterion.expected));
        let _ = write!(
            table,
            "<tr><td class=\"{class}\">{mark}</td><td>{claim}</td><td>{}</td><td>{expected}</td></tr>",
            escaped(criterion.measured_text())
        );
    }
    table + "</table></div></details>"
}

/// Returns a folded table with a link to its CSV file, which has all digits.
fn figures(id: &str, table: &Table) -> String {
    let (file, rows) = (escaped(&table.name), table.rows.len());
    let name = spaced(&table.name);
    let head = row("th", table.columns.iter().map(|column| spaced(column)));
    let body: String =
        table.rows.iter().map(|cells| row("td", cells.iter().map(|cell| rounded(cell)))).collect();
    let rows = if rows == 1 { "1 row".into() } else { format!("{rows} rows") };
    format!(
        "<details><summary>Table: {name}, {rows}</summary><p class=\"faint\">\
         <a href=\"{id}/{file}.csv\">{id}/{file}.csv</a></p>\
         <div class=\"wide\"><table>{head}{body}</table></div></details>"
    )
}

/// Returns the name of a column or table as words.
fn spaced(name: &str) -> String {
    name.replace('_', " ")
}

/// Rounds a decimal fraction to four significant digits; leaves any other text as it is.
fn rounded(text: &str) -> String {
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let Some((whole, fraction)) = unsigned.split_once('.') else { return text.into() };
    let Some(value) = text.parse::<f64>().ok().filter(|_| digits(whole) && digits(fraction)) else {
        return text.into();
    };
    if value == 0.0 {
        return "0".into();
    }
    let places = (3 - value.abs().log10().floor() as i32).clamp(0, fraction.len() as i32) as usize;
    if text.starts_with('+') { format!("{value:+.places$}") } else { format!("{value:.places$}") }
}

/// Writes a picture to a file and returns it as a figure of the page.
fn picture(folder: &Path, name: &str, title: &str, svg: &str) -> io::Result<String> {
    save(&folder.join(format!("{name}.svg")), svg)?;
    Ok(format!("<figure role=\"img\" aria-label=\"{}\">{svg}</figure>", escaped(title)))
}

/// Writes the criteria as JSON. Times differ from run to run, so they have a file of their own.
fn write_criteria(outcome: &Outcome, lab: &Lab, folder: &Path) -> io::Result<()> {
    let About { id, title, .. } = outcome.about;
    let head = json!({
        "id": id, "title": title, "source": outcome.about.source(), "seed": lab.seed,
        "scale": scale(lab),
        "parameters": lab.changed(),
    });
    let write = |name: String, holds: bool, key: &str, value: Value| {
        let mut all = head.clone();
        all["holds"] = holds.into();
        all[key] = value;
        save(&folder.join(name), format!("{all:#}\n"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_rounded_and_other_cells_are_not() {
        for (cell, shown) in [
            ("0.393469", "0.3935"),
            ("0.0000118", "0.0000118"),
            ("129.8672", "129.9"),
            ("72134.75", "72135"),
            ("+0.00904", "+0.00904"),
            ("-1.23456", "-1.235"),
            ("0.000000", "0"),
            ("0.50", "0.50"),
            ("1000000", "1000000"),
            ("1.014e-2", "1.014e-2"),
            ("1.2.3.4", "1.2.3.4"),
            ("plain counters, 4 bits", "plain counters, 4 bits"),
            ("", ""),
        ] {
            assert_eq!(rounded(cell), shown);
        }
    }
}
