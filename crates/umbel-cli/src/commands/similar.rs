//! `umbel similar`: how much documents have in common.

use crate::args::number;
use crate::input::{is_stdin, name, open_bytes, plain_name};
use crate::report::{Columns, Rows, escaped, size};
use crate::terminal::exit::{FAILED, found};
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

/// Tell how similar documents are, from a filter of each.
///
/// Two files are told about in full, and of up to 32 a matrix shows the similarity of each pair. In directories, or with --top
/// or --at-least, the most similar pairs are listed instead, a line with tabs for each: the Jaccard similarity, and the two files.
///
/// The Jaccard similarity is the share of all elements of both that both have, estimated from the bits of the two filters and of their
/// union. Beside it stands the AND score of the literature, the share of one's bits that the other has too: it is never below the
/// fill of the other filter, even if they share nothing, so it is the larger, the fuller the filter is.
///
/// If all bits of one are in the other, all its elements probably are, and it is said to be contained. Of HTML the visible text counts.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  umbel similar draft1.txt draft2.txt
  umbel similar --by shingles --at-least 0.5 articles/
  umbel similar --by chunks backup1.tar backup2.tar

Exit codes: 0 done, 1 no pair is similar enough, 2 something went wrong.")]
pub struct Args {
    /// Files, or directories with files; `-` is standard input. What is compressed with gzip or zstd is recognised
    #[arg(value_name = "FILE|DIR", required = true)]
    paths: Vec<PathBuf>,

    /// What is compared: words, runs of words (shingles), or chunks of about 256 bytes, of any file [default: words]
    #[arg(short, long, value_name = "ELEMENTS", value_parser = ["words", "shingles", "chunks"], hide_possible_values = true)]
    by: Option<String>,

    /// Compare shingles, of so many words each [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=64))]
    shingle: Option<u16>,

    /// List only so many pairs [default: 20]
    #[arg(long, value_name = "N", value_parser = number::count)]
    top: Option<u64>,

    /// List the pairs whose Jaccard similarity is at least so much, from 0.05 to 1 [default: 0.5]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    at_least: Option<f64>,

    /// The size of every filter, instead of one that fits the largest file
    #[arg(short = 'm', long, value_name = "BITS", value_parser = number::bits, conflicts_with_all = ["top", "at_least"])]
    bits: Option<u64>,

    /// Bits that an element sets, with --bits [default: 2]
    #[arg(short = 'k', long, value_name = "K", requires = "bits")]
    hashes: Option<u32>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Of so many files a matrix can be read.
const FEW: usize = 32;
const TOP: u64 = 20;
const AT_LEAST: f64 = 0.5;

pub fn run(args: &Args) -> Result<ExitCode> {
    if args.shingle.is_some() && args.elements() != "shingles" {
        bail!("--shingle is for shingles, and --by asks for {}", args.elements());
    }
    let mut documents = Documents::find(&args.paths)?;
    let many = args.top.is_some()
        || args.at_least.is_some()
        || args.paths.iter().any(|path| path.is_dir())
        || documents.paths.len() > FEW;
    if many && args.bits.is_some() {
        bail!("-m is for up to {FEW} files without directories: of many, each has the size that fits it");
    }
    let code = if many { documents.pairs(args) } else { documents.matrix(args) }?;
    Ok(if documents.skipped.is_empty() { code } else { ExitCode::from(FAILED) })
}

/// A similarity that pairs can be asked for.
fn share(text: &str) -> Result<f64, String> {
    let share = match text.trim_end_matches('%').parse() {
        Ok(0.0) => {
            return Err(format!(
                "that is every pair, and too many to list: a similarity from 0.05 to 1 is needed; without the option up to {FEW} files \
                 are compared each with each"
            ));
        }
        _ if text == "1" || text == "100%" => 1.0,
        _ => number::rate(text)?,
    };
    if share >= 0.05 { Ok(share) } else { Err("a similarity from 0.05 to 1 is needed".to_string()) }
}

/// Files to compare, and what is wrong with others.
struct Documents {
    paths: Vec<PathBuf>,
    skipped: Vec<(PathBuf, String)>,
}

/// A document that could be read.
struct Document {
    name: String,
    elements: usize,
    sketch: Sketch,
}

impl Documents {
    fn find(paths: &[PathBuf]) -> Result<Documents> {
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

    /// What `keep` leaves of every document that can be read and has an element.
    fn read<T: Send>(
        &mut self,
        by: By,
        keep: impl Fn(Elements) -> Result<T> + Sync,
    ) -> Result<Vec<(String, T)>> {
        let done = Arc::new(AtomicU64::new(0));
        let bar = Progress::of_files(Arc::clone(&done), self.paths.len() as u64);
        let read = each_file(&self.paths, |path| {
            let elements = elements(path, by);
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

    /// A few documents, each with each, in filters of the same size.
    fn matrix(&mut self, args: &Args) -> Result<ExitCode> {
        let read = self.read(args.by(), Ok)?;
        let largest = read.iter().map(|(_, elements)| elements.len()).max().unwrap_or(0);
        let shape = match args.bits {
            Some(bits) => Standard::new(bits, args.hashes.unwrap_or(umbel_text::similarity::HASHES))?,
            None => fitting(largest)?,
        };
        let mut documents = Vec::new();
        for (name, elements) in read {
            documents.push(Document { name, elements: elements.len(), sketch: elements.filter(shape)? });
        }
        let mut pairs = Vec::new();
        for (right, two) in documents.iter().enumerate() {
            for (left, one) in documents[..right].iter().enumerate() {
                pairs.push((left, right, compare(&one.sketch, &two.sketch)?));
            }
        }
        if pairs.iter().any(|(_, _, likeness)| likeness.jaccard().is_none()) {
            output::warn(
                "some filters are too full to tell how similar they are: give -m more bits, or leave it out",
            );
        }
        if args.json {
            sort(&mut pairs);
            output::json(&self.to_json(args, &documents, &pairs))?;
        } else if let ([one, two], [(_, _, likeness)]) = (&documents[..], &pairs[..]) {
            output::text(describe(one, two, likeness, args))?;
        } else {
            output::text(table(&documents, &pairs, args))?;
            let mut contained = String::new();
            for (left, right, likeness) in &pairs {
                if let Some(sentence) = inside(likeness, &(left + 1).to_string(), &(right + 1).to_string()) {
                    contained += &format!("{sentence}\n");
                }
            }
            output::text(contained)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The nearest pairs of many documents, each in the filter that fits it.
    fn pairs(&mut self, args: &Args) -> Result<ExitCode> {
        let keep = |elements: Elements| Ok((elements.len(), elements.filter(fitting(elements.len())?)?));
        let mut collection = Collection::default();
        let mut names = Vec::new();
        for (name, (elements, sketch)) in self.read(args.by(), keep)? {
            names.push(name);
            collection.add_sketch(elements, sketch);
        }
        let (at_least, top) = (args.at_least.unwrap_or(AT_LEAST), args.top.unwrap_or(TOP));
        let nearest = collection.nearest(at_least, usize::try_from(top).unwrap_or(usize::MAX))?;
        let pairs: Vec<_> = nearest.pairs.iter().map(|pair| (pair.left, pair.right, pair.likeness)).collect();
        if args.json {
            let mut report = self.to_json(args, &[], &[]);
            report["document_count"] = names.len().into();
            report["documents"] = names.iter().map(|name| json!({ "path": name })).collect();
            report["pair_count"] = nearest.count.into();
            report["pairs"] = pairs
                .iter()
                .map(|(left, right, likeness)| pair(&names[*left], &names[*right], likeness))
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
            output::say(format_args!(
                "{} of the {all} pairs of {} documents are similar by {at_least} or more{listed}; filters of {}, {} laid over each other",
                nearest.count,
                names.len(),
                size(collection.bytes()),
                nearest.compared
            ));
        }
        Ok(found(nearest.count > 0))
    }

    fn to_json(&self, args: &Args, documents: &[Document], pairs: &[(usize, usize, Likeness)]) -> Value {
        let document = |document: &Document| {
            json!({
                "path": document.name, "elements": document.elements,
                "bits": document.sketch.layout().bits(), "fill": fill(&document.sketch),
            })
        };
        let named = |at: &usize| &documents[*at].name;
        json!({
            "by": args.elements(),
            "document_count": documents.len(),
            "documents": documents.iter().map(document).collect::<Value>(),
            "pair_count": pairs.len(),
            "pairs": pairs.iter().map(|(left, right, likeness)| pair(named(left), named(right), likeness)).collect::<Value>(),
            "skipped": self.skipped.iter().map(|(path, why)| json!({ "path": plain_name(path), "why": why })).collect::<Value>(),
        })
    }
}

/// The most similar first.
fn sort(pairs: &mut [(usize, usize, Likeness)]) {
    let jaccard = |likeness: &Likeness| likeness.jaccard().map_or(-1.0, |jaccard| jaccard.value);
    pairs.sort_by(|a, b| jaccard(&b.2).total_cmp(&jaccard(&a.2)));
}

impl Args {
    fn elements(&self) -> &str {
        self.by.as_deref().unwrap_or(if self.shingle.is_some() { "shingles" } else { "words" })
    }

    fn by(&self) -> By {
        match self.elements() {
            "chunks" => By::Chunks,
            "shingles" => By::Shingles(self.shingle.unwrap_or(4).into()),
            _ => By::Words,
        }
    }
}

fn elements(path: &Path, by: By) -> Result<Elements> {
    let ends =
        |ending: &str| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(OsStr::new(ending)));
    let html = ["html", "htm", "xhtml"].into_iter().any(ends);
    Elements::of(open_bytes(path)?, by, html).with_context(|| format!("cannot compare {}", name(path)))
}

/// A pair, by the names that scripts rely on.
fn pair(left: &str, right: &str, likeness: &Likeness) -> Value {
    let jaccard = likeness.jaccard();
    let told = likeness.overlap.filter(|_| jaccard.is_some());
    json!({
        "left": left,
        "right": right,
        "jaccard": jaccard.map(|jaccard| jaccard.value),
        "jaccard_error": jaccard.map(|jaccard| jaccard.standard_error),
        "left_and": likeness.left_and,
        "right_and": likeness.right_and,
        "left_in_right": told.map(|overlap| overlap.left_in_right.value),
        "right_in_left": told.map(|overlap| overlap.right_in_left.value),
        "left_contained": jaccard.map(|_| likeness.left_inside),
        "right_contained": jaccard.map(|_| likeness.right_inside),
    })
}

/// Two documents in full.
fn describe(one: &Document, two: &Document, likeness: &Likeness, args: &Args) -> String {
    let mut rows = Rows::default();
    let [first, second] = [one, two].map(|document| escaped(&document.name));
    rows.add(&first, format!("{} {}", one.elements, args.elements()));
    rows.add(&second, format!("{} {}", two.elements, args.elements()));
    match (likeness.jaccard(), likeness.overlap) {
        (Some(jaccard), Some(overlap)) => {
            rows.add("in both", format!("{:.0}", overlap.intersection));
            rows.add("Jaccard", format!("{jaccard:.4}"));
            rows.add("first in second", format!("{:.4}", overlap.left_in_right));
            rows.add("second in first", format!("{:.4}", overlap.right_in_left));
        }
        _ => rows.add("Jaccard", "cannot be told: the filters are too full"),
    }
    let and =
        |score: f64, other: &Document| format!("{score:.4} (nothing in common: {:.4})", fill(&other.sketch));
    rows.add("AND score, first", and(likeness.left_and, two));
    rows.add("AND score, second", and(likeness.right_and, one));
    let mut text = rows.to_string();
    if let Some(sentence) = inside(likeness, &first, &second) {
        text += &format!("{sentence}\n");
    }
    text
}

/// Whether one seems to be a part of the other.
fn inside(likeness: &Likeness, one: &str, two: &str) -> Option<String> {
    // Everything seems to be in a filter that is full.
    likeness.jaccard()?;
    match (likeness.left_inside, likeness.right_inside) {
        (true, true) => Some(format!("{one} and {two} have the same elements, as far as the filters tell")),
        (true, false) => Some(format!("{one} is contained in {two}, as far as the filters tell")),
        (false, true) => Some(format!("{two} is contained in {one}, as far as the filters tell")),
        (false, false) => None,
    }
}

/// The similarity of each with each.
fn table(documents: &[Document], pairs: &[(usize, usize, Likeness)], args: &Args) -> Columns {
    let numbers: Vec<String> = (1..=documents.len()).map(|number| number.to_string()).collect();
    let heading: Vec<&str> =
        ["Jaccard", args.elements()].into_iter().chain(numbers.iter().map(String::as_str)).collect();
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
