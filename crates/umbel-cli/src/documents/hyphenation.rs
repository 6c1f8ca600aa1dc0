//! Hyphenators with exceptions of one's own, and the reads of the list that they saved.

use crate::input::{name, read_whole};
use crate::report::{Rows, percent, size};
use crate::terminal::output;
use anyhow::{Context, Result, anyhow};
use std::path::PathBuf;
use umbel_text::hyphenation::{Counts, Hyphenator, Language};

/// Opens the hyphenator of a language, with the exceptions of these files.
pub fn open_hyphenator(language: Language, exceptions: &[PathBuf]) -> Result<Hyphenator> {
    let mut hyphenator = Hyphenator::new(language)?;
    for path in exceptions {
        let text = String::from_utf8(read_whole(path)?)
            .map_err(|_| anyhow!("{} is not UTF-8: it should have one word per line", name(path)))?;
        hyphenator.add_exceptions(&text).with_context(|| name(path))?;
    }
    Ok(hyphenator)
}

/// Prints the counts of words and of reads to standard error.
pub fn report_counts(hyphenator: &Hyphenator, counts: Counts) {
    let mut rows = Rows::default();
    rows.add("exceptions in the list", hyphenator.exceptions());
    rows.add("filter", size(hyphenator.filter().stats().bytes));
    rows.add("words", counts.words);
    rows.add("list reads saved", format!("{} ({})", counts.saved(), percent(share(counts))));
    rows.add("list reads, filter said yes", counts.read);
    rows.add("of which false positives", counts.wasted());
    output::message(rows.to_string().trim_end());
}

/// Returns the share of words for which the list was not read.
fn share(counts: Counts) -> f64 {
    counts.saved() as f64 / counts.words.max(1) as f64
}
