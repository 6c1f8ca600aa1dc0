//! The results: tables for people, JSON for programs.

use crate::measure::{Row, Samples};
use serde_json::{Map, Value, json};

/// The filter that the ratios are relative to.
const REFERENCE: &str = "fastbloom foldhash";

type Section = (&'static str, fn(&Row) -> &Samples);

const SECTIONS: [Section; 4] = [
    ("insert", |row| &row.insert),
    ("hit", |row| &row.hit),
    ("miss", |row| &row.miss),
    ("mixed", |row| &row.mixed),
];

/// Returns a list of objects, one per contestant; missing values are null.
pub fn json(rows: &[Row], threads: usize) -> String {
    let rows = rows.iter().map(|row| {
        let mut object = Map::new();
        object.insert("filter".into(), json!(row.name));
        for (name, samples) in SECTIONS {
            object.insert(format!("{name}_ns"), json!(samples(row).median()));
            object.insert(format!("{name}_best_ns"), json!(samples(row).best()));
        }
        object.insert("bits_per_key".into(), json!(row.bits_per_key));
        object.insert("fpr".into(), json!(row.rate));
        object.insert("huge_pages".into(), json!(row.huge_pages));
        if let Some(one) = row.one_thread.median() {
            object.insert("insert_1t_ns".into(), json!(one));
            object.insert(format!("insert_{threads}t_ns"), json!(row.threads.median()));
        }
        Value::Object(object)
    });
    serde_json::to_string_pretty(&Value::Array(rows.collect())).expect("numbers and strings are valid JSON")
}

/// Returns the main table, and one for concurrent insert if it was measured.
pub fn table(rows: &[Row], threads: usize) -> String {
    let reference = rows.iter().find(|row| row.name == REFERENCE);
    let mut cells = vec![vec!["filter".to_string()]];
    cells[0].extend(SECTIONS.iter().map(|(name, _)| format!("{name} ns")));
    cells[0].extend(["bits/key", "false pos."].map(String::from));
    cells[0].extend(SECTIONS.iter().map(|(name, _)| format!("x {name}")));
    cells[0].push("huge pages".into());
    for row in rows {
        let mut line = vec![row.name.to_string()];
        line.extend(SECTIONS.iter().map(|(_, samples)| time(samples(row))));
        line.push(format!("{:.2}", row.bits_per_key));
        line.push(row.rate.map_or("-".into(), |rate| format!("{:.4} %", rate * 100.0)));
        line.extend(SECTIONS.iter().map(|(_, samples)| {
            reference
                .and_then(|reference| samples(reference).median())
                .zip(samples(row).median())
                .map_or("-".into(), |(theirs, own)| format!("{:.2}", theirs / own))
        }));
        line.push(row.huge_pages.map_or("-".into(), |part| format!("{:.0} %", part * 100.0)));
        cells.push(line);
    }
    let mut text = align(&cells);
    text += &format!("x: how many times as fast as {REFERENCE}. Times: median (best).\n");

    let mut cells =
        vec![vec!["concurrent insert".into(), "1 thread ns".into(), format!("{threads} threads ns")]];
    for row in rows.iter().filter(|row| row.one_thread.median().is_some()) {
        cells.push(vec![row.name.into(), time(&row.one_thread), time(&row.threads)]);
    }
    if cells.len() > 1 {
        text += &format!("\n{}Wall time over all keys.\n", align(&cells));
    }
    text
}

fn time(samples: &Samples) -> String {
    samples
        .median()
        .zip(samples.best())
        .map_or("-".into(), |(median, best)| format!("{median:.1} ({best:.1})"))
}

/// Aligns the columns, the first to the left, the others to the right.
fn align(cells: &[Vec<String>]) -> String {
    let widths: Vec<usize> = (0..cells[0].len())
        .map(|column| cells.iter().map(|line| line[column].len()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for line in cells {
        let mut padded = format!("{:<1$}", line[0], widths[0]);
        for (cell, width) in line.iter().zip(&widths).skip(1) {
            padded += &format!("  {cell:>width$}");
        }
        text += padded.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_a_list_with_null_for_missing_values() {
        let rows = [Row { name: "physical limit", bits_per_key: 10.0, ..Row::default() }];
        let value: Value = serde_json::from_str(&json(&rows, 1)).unwrap();
        assert_eq!(value[0]["filter"], "physical limit");
        assert!(value[0]["insert_ns"].is_null() && value[0]["fpr"].is_null());
        assert!(value[0].get("insert_1t_ns").is_none());
    }

    #[test]
    fn columns_line_up() {
        let cells = [["a", "b"], ["ccc", "10.0"]].map(|line| line.map(String::from).to_vec());
        assert_eq!(align(&cells), "a       b\nccc  10.0\n");
    }
}
