//! Documents compared by filters of their words, shingles or chunks: a matrix of a few, or the most
//! similar pairs of many.

use crate::input::{is_stdin, name, open_bytes, plain_name};
use crate::report::{Columns, Rows, escaped, size};
use crate::terminal::exit::found;
use crate::terminal::{Progress, output};
use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use umbel::Standard;
use umbel::internals::Layout;
use umbel_text::similarity::{
    By, Collection, Elements, Likeness, Sketch, compare, each_file, files_of, fill, fitting,
};

/// The maximum number of files that are shown as a matrix.
pub const MAX_MATRIX_FILES: usize = 32;

/// How documents are compared and reported.
pub struct Options<'a> {
    pub by: By,
    /// The name of the elements, for reports.
    pub elements: &'a str,
    /// The bits and hashes of each filter of a matrix; `None` if they fit the largest document.
    pub shape: Option<(u64, u32)>,
    /// The similarity from which pairs are listed.
    pub at_least: f64,
    /// The maximum number of pairs that are listed.
    pub top: usize,
    pub json: bool,
}

/// Files to compare, and those that could not be read.
pub struct Documents {
    pub paths: Vec<PathBuf>,
    /// The files that could not be read, with the reasons.
    pub skipped: Vec<(PathBuf, String)>,
}

/// A document that was read.
struct Document {
    name: String,
    /// The number of distinct elements.
    elements: usize,
    sketch: Sketch,
}

impl Documents {
    /// Finds the files in these paths.
    pub fn find(paths: &[PathBuf]) -> Result<Documents> {
        if paths.iter().filter(|path| is_stdin(path)).count() > 1 {
            bail!("only one of the files can be standard input");
        }
        let (paths, unreached) = files_of(paths);
        let mut documents = Documents { paths, skipped: Vec::new() };
        for (path, error) in unreached {
            let failed = format!("cannot read {}", name(&path));
            documents.skip(path, &anyhow!(error).context(failed));
        }
        Ok(documents)
    }

    fn skip(&mut self, path: PathBuf, error: &anyhow::Error) {
        output::error(format_args!("{error:#}"));
        self.skipped.push((path, format!("{error:#}")));
    }

    /// Reads all documents, and returns the names and the results of `keep` for those that have an
    /// element.
    fn read<T: Send>(
        &mut self,
        by: By,
        keep: impl Fn(Elements) -> Result<T> + Sync,
    ) -> Result<Vec<(String, T)>> {
        let done = Arc::new(AtomicU64::new(0));
        let bar = Progress::of_files(Arc::clone(&done), self.paths.len() as u64);
        let read = each_file(&self.paths, |path| {
            let elements = read_elements(path, by);
            done.fetch_add(1, Relaxed);
            let elements = elements?;
            if elements.is_empty() { Ok(None) } else { keep(elements).map(Some) }
        });
        bar.finish();
        let mut kept = Vec::new();
        for (path, read) in self.paths.clone().into_iter().zip(read) {
            match read {
                Ok(Some(document)) => kept.push((plain_name(&path), document)),
                Ok(None) => output::warn(format_args!("{} is empty, and is left out", name(&path))),
                Err(error) => self.skip(path, &error),
            }
        }
        if kept.len() < 2 {
            let count = if kept.is_empty() { "no document" } else { "one document only" };
            bail!("there is nothing to compare: {count} could be read");
        }
        Ok(kept)
    }

    /// Compares a few documents each with each, in filters of the same size.
    pub fn print_matrix(&mut self, options: &Options<'_>) -> Result<ExitCode> {
        let read = self.read(options.by, Ok)?;
        let largest = read.iter().map(|(_, elements)| elements.len()).max().unwrap_or(0);
        let layout = match options.shape {
            Some((bits, hashes)) => Standard::new(bits, hashes)?,
            None => fitting(largest)?,
        };
        let mut documents = Vec::new();
        for (name, elements) in read {
            documents.push(Document { name, elements: elements.len(), sketch: elements.filter(layout)? });
        }
        let mut pairs = Vec::new();
        for (right, two) in documents.iter().enumerate() {
            for (left, one) in documents[..right].iter().enumerate() {
                pairs.push((left, right, compare(&one.sketch, &two.sketch)?));
            }
        }
        if pairs.iter().any(|(_, _, likeness)| likeness.jaccard().is_none()) {
            output::warn("some filters are too full to be compared: give -m more bits, or leave it out");
        }
        if options.json {
            sort_by_similarity(&mut pairs);
            output::json(&self.to_json(options, &documents, &pairs))?;
        } else if let ([one, two], [(_, _, likeness)]) = (&documents[..], &pairs[..]) {
            output::text(describe(one, two, likeness, options))?;
        } else {
            output::text(table(&documents, &pairs, options))?;
            let mut contained = String::new();
            for (left, right, likeness) in &pairs {
                if let Some(sentence) =
                    containment(likeness, &(left + 1).to_string(), &(right + 1).to_string())
                {
                    contained += &format!("{sentence}\n");
                }
            }
            output::text(contained)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Lists the most similar pairs of many documents, each in a filter that fits it.
    pub fn list_pairs(&mut self, options: &Options<'_>) -> Result<ExitCode> {
        let keep = |elements: Elements| Ok((elements.len(), elements.filter(fitting(elements.len())?)?));
        let mut collection = Collection::default();
        let mut names = Vec::new();
        for (name, (elements, sketch)) in self.read(options.by, keep)? {
            names.push(name);
            collection.add_sketch(elements, sketch);
        }
        let at_least = options.at_least;
        let nearest = collection.nearest(at_least, options.top)?;
        let pairs: Vec<_> = nearest.pairs.iter().map(|pair| (pair.left, pair.right, pair.likeness)).collect();
        if options.json {
            let mut report = self.to_json(options, &[], &[]);
            report["document_count"] = names.len().into();
            report["documents"] = names.iter().map(|name| json!({ "path": name })).collect();
            report["pair_count"] = nearest.count.into();
            report["pairs"] = pairs
                .iter()
                .map(|(left, right, likeness)| pair_json(&names[*left], &names[*right], likeness))
                .collect();
            output::json(&report)?;
        } else {
            let mut lines = String::new();
            for (left, right, likeness) in &pairs {
                let jaccard =
                    likeness.jaccard().map_or_else(|| "?".into(), |jaccard| format!("{:.4}", jaccard.value));
                lines += &format!("{jaccard}\t{}\t{}\n", escaped(&names[*left]), escaped(&names[*right]));
            }
            output::bytes(lines.as_bytes())?;
            let listed = match nearest.count > pairs.len() as u64 {
                true => format!("; the first {} are listed, --top lists more", pairs.len()),
                false => String::new(),
            };
            let all = names.len() as u64 * (names.len() as u64 - 1) / 2;
            output::message(format_args!(
                "{} of the {all} pairs of {} documents are similar by {at_least} or more{listed}; filters of {}, {} laid over each other",
                nearest.count,
                names.len(),
                size(collection.bytes()),
                nearest.compared
            ));
        }
        Ok(found(nearest.count > 0))
    }

    fn to_json(
        &self,
        options: &Options<'_>,
        documents: &[Document],
        pairs: &[(usize, usize, Likeness)],
    ) -> Value {
        let document = |document: &Document| {
            json!({
                "path": document.name, "elements": document.elements,
                "bits": document.sketch.layout().bits(), "fill": fill(&document.sketch),
            })
        };
        let named = |at: &usize| &documents[*at].name;
        json!({
            "by": options.elements,
            "document_count": documents.len(),
            "documents": documents.iter().map(document).collect::<Value>(),
            "pair_count": pairs.len(),
            "pairs": pairs.iter().map(|(left, right, likeness)| pair_json(named(left), named(right), likeness)).collect::<Value>(),
            "skipped": self.skipped.iter().map(|(path, why)| json!({ "path": plain_name(path), "why": why })).collect::<Value>(),
        })
    }
}

/// Sorts pairs, the most similar first.
fn sort_by_similarity(pairs: &mut [(usize, usize, Likeness)]) {
    let jaccard = |likeness: &Likeness| likeness.jaccard().map_or(-1.0, |jaccard| jaccard.value);
    pairs.sort_by(|a, b| jaccard(&b.2).total_cmp(&jaccard(&a.2)));
}

/// Reads the elements of a document.
fn read_elements(path: &Path, by: By) -> Result<Elements> {
    let ends =
        |ending: &str| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(OsStr::new(ending)));
    let html = ["html", "htm", "xhtml"].into_iter().any(ends);
    Elements::read(open_bytes(path)?, by, html).with_context(|| format!("cannot compare {}", name(path)))
}

/// Describes a pair as JSON, with the names that scripts rely on.
fn pair_json(left: &str, right: &str, likeness: &Likeness) -> Value {
    let jaccard = likeness.jaccard();
    let overlap = likeness.overlap.filter(|_| jaccard.is_some());
    json!({
        "left": left,
        "right": right,
        "jaccard": jaccard.map(|jaccard| jaccard.value),
        "jaccard_error": jaccard.map(|jaccard| jaccard.standard_error),
        "left_and": likeness.left_and,
        "right_and": likeness.right_and,
        "left_in_right": overlap.map(|overlap| overlap.left_in_right.value),
        "right_in_left": overlap.map(|overlap| overlap.right_in_left.value),
        "left_contained": jaccard.map(|_| likeness.left_inside),
        "right_contained": jaccard.map(|_| likeness.right_inside),
    })
}

/// Describes two documents in full.
fn describe(one: &Document, two: &Document, likeness: &Likeness, options: &Options<'_>) -> String {
    let mut rows = Rows::default();
    let [first, second] = [one, two].map(|document| escaped(&document.name));
    rows.add(&first, format!("{} {}", one.elements, options.elements));
    rows.add(&second, format!("{} {}", two.elements, options.elements));
    match (likeness.jaccard(), likeness.overlap) {
        (Some(jaccard), Some(overlap)) => {
            rows.add("in both", format!("{:.0}", overlap.intersection));
            rows.add("Jaccard", format!("{jaccard:.4}"));
            rows.add("first in second", format!("{:.4}", overlap.left_in_right));
            rows.add("second in first", format!("{:.4}", overlap.right_in_left));
        }
        _ => rows.add("Jaccard", "unknown: the filters are too full"),
    }
    let and =
        |score: f64, other: &Document| format!("{score:.4} (nothing in common: {:.4})", fill(&other.sketch));
    rows.add("AND score, first", and(likeness.left_and, two));
    rows.add("AND score, second", and(likeness.right_and, one));
    let mut text = rows.to_string();
    if let Some(sentence) = containment(likeness, &first, &second) {
        text += &format!("{sentence}\n");
    }
    text
}

/// Returns a sentence if one document seems to be contained in the other.
fn containment(likeness: &Likeness, one: &str, two: &str) -> Option<String> {
    // A full filter seems to contain everything.
    likeness.jaccard()?;
    match (likeness.left_inside, likeness.right_inside) {
        (true, true) => Some(format!("{one} and {two} have the same elements, as far as the filters tell")),
        (true, false) => Some(format!("{one} is contained in {two}, as far as the filters tell")),
        (false, true) => Some(format!("{two} is contained in {one}, as far as the filters tell")),
        (false, false) => None,
    }
}

/// Returns the matrix of similarities.
fn table(documents: &[Document], pairs: &[(usize, usize, Likeness)], options: &Options<'_>) -> Columns {
    let numbers: Vec<String> = (1..=documents.len()).map(|number| number.to_string()).collect();
    let heading: Vec<&str> =
        ["Jaccard", options.elements].into_iter().chain(numbers.iter().map(String::as_str)).collect();
    let mut table = Columns::new(&heading);
    for (i, document) in documents.iter().enumerate() {
        let mut row = vec![format!("{} {}", i + 1, escaped(&document.name)), document.elements.to_string()];
        for j in 0..documents.len() {
            let pair = pairs.iter().find(|(left, right, _)| (*left, *right) == (i.min(j), i.max(j)));
            row.push(match pair {
                None => "1.0000".into(),
                Some((_, _, likeness)) => likeness
                    .jaccard()
                    .map_or_else(|| "full".into(), |jaccard| format!("{:.4}", jaccard.value)),
            });
        }
        table.add(row);
    }
    table
}
