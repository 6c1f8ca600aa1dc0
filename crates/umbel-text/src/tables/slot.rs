//! The tables of a store in order, intact or damaged.

use super::reader::Access;
use super::secret::StoreHash;
use super::table::Table;
use crate::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};
use umbel::file::FormatError;

/// The upper limit of the numbers in file names. A file with a larger number does not belong to a
/// store.
pub(super) const MAX_FLUSHES: u64 = 1 << 48;

/// The numbers of the flushes that a table covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub first: u64,
    pub last: u64,
}

impl Span {
    pub fn file_name(self) -> String {
        format!("{:08}-{:08}.table", self.first, self.last)
    }

    /// Returns the span in the name of a file, if it is the name of a table.
    pub fn from_file_name(name: &str) -> Option<Span> {
        let (first, last) = name.strip_suffix(".table")?.split_once('-')?;
        let span = Span { first: first.parse().ok()?, last: last.parse().ok()? };
        let sound = 1 <= span.first && span.first <= span.last && span.last < MAX_FLUSHES;
        (sound && span.file_name() == name).then_some(span)
    }

    pub fn covers(self, other: Span) -> bool {
        self.first <= other.first && other.last <= self.last
    }
}

/// A table, or a description of one that cannot be used.
#[derive(Debug)]
pub(super) enum Slot {
    Table(Box<Table>),
    Damaged { span: Span, path: PathBuf, why: String },
}

impl Slot {
    pub fn span(&self) -> Span {
        match self {
            Slot::Table(table) => table.span,
            Slot::Damaged { span, .. } => *span,
        }
    }

    /// Returns the table, or an error that describes its damage.
    pub fn table(&self) -> Result<&Table> {
        match self {
            Slot::Table(table) => Ok(table),
            Slot::Damaged { path, why, .. } => Err(Error::damaged(path, why)),
        }
    }
}

/// Opens the tables of these spans, the newest first. Leaves out tables covered by a merged one,
/// and removes their files if it may; adds slots for missing tables.
pub(super) fn open_all(
    folder: &Path,
    spans: Vec<Span>,
    rate: f64,
    hash: &StoreHash,
    access: Access,
) -> Result<Vec<Slot>> {
    let mut slots: Vec<Slot> = spans
        .into_iter()
        .map(|span| {
            let path = folder.join(span.file_name());
            match Table::open(&path, span, rate, hash) {
                Ok(table) => Slot::Table(Box::new(table)),
                Err(error) => Slot::Damaged { span, why: describe(error), path },
            }
        })
        .collect();
    let whole: Vec<Span> =
        slots.iter().filter(|slot| matches!(slot, Slot::Table(_))).map(Slot::span).collect();
    slots.retain(|slot| {
        let needless = whole.iter().any(|other| *other != slot.span() && other.covers(slot.span()));
        if needless && access == Access::Write {
            let _ = fs::remove_file(folder.join(slot.span().file_name()));
        }
        !needless
    });
    // After the reversal below, a damaged table comes before the tables it covers.
    slots.sort_by_key(|slot| (slot.span().last, slot.span().last - slot.span().first));
    let (mut all, mut next) = (Vec::new(), 1);
    for slot in slots {
        let span = slot.span();
        if span.first > next {
            all.push(missing(folder, Span { first: next, last: span.first - 1 }));
        }
        if span.first < next && matches!(slot, Slot::Table(_)) {
            let what = "it overlaps with another table".into();
            let path = folder.join(span.file_name());
            return Err(Error::Format { path, problem: FormatError::Invalid { what } });
        }
        next = span.last + 1;
        all.push(slot);
    }
    all.reverse();
    Ok(all)
}

pub(super) fn missing(folder: &Path, span: Span) -> Slot {
    Slot::Damaged { span, path: folder.join(span.file_name()), why: "its file is missing".into() }
}

/// Describes an error without its path, which is reported beside it.
fn describe(error: Error) -> String {
    match error {
        Error::Format { problem, .. } => problem.to_string(),
        Error::Io { doing, source, .. } => format!("cannot {doing} it: {source}"),
        other => other.to_string(),
    }
}
