//! What can be said about a filter, for people and for programs.

use crate::filters::sketch_command;
use crate::terminal::size;
use anstyle::Style;
use bstr::ByteSlice;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use umbel::any::Stored;
use umbel::file::{Examined, Meta};
use umbel::hash::Strength;
use umbel::kind::{Capabilities, Category};
use umbel::sizing::space_code::{coverage, sampling};
use umbel::{Kind, Plan, Stats};

/// The facts of a filter, by the names that scripts rely on.
#[derive(Debug, Serialize)]
pub struct Facts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub kind: String,
    /// A set, a map, a multiset or a sketch.
    #[serde(serialize_with = "display")]
    pub holds: Category,
    /// Bits, counters or slots that keys can land on.
    pub cells: u64,
    pub hashes: u32,
    /// Bits of all cells and what else is kept about them.
    pub bits: u64,
    pub bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// For the keys of its capacity; of a filter that has grown, for those it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_key: Option<f64>,
    #[serde(skip)]
    grows: bool,
    /// Whether it is made for the keys it has, and no others.
    #[serde(skip)]
    pub fixed: bool,
    /// The largest value of a map, exactly.
    #[serde(skip)]
    largest: Option<u64>,
    /// Insertions, if they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Different keys, from the bits; missing when the filter is saturated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_count: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_count_error: Option<f64>,
    pub fill: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fpr_target: Option<f64>,
    pub fpr_now: f64,
    /// Keys that still fit; below zero when there are too many, missing when nobody can tell how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom: Option<i64>,
    pub hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_tag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_embedded: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksums: Option<usize>,
    /// What there is to say only of this kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<&'static str, f64>,
    pub meta: Meta,
}

impl Facts {
    fn of(stats: &Stats) -> Facts {
        let estimate = stats.estimate.estimate();
        // There are no more different keys than insertions, whatever the bits suggest.
        let held = estimate.map(|keys| (keys.value.round() as u64).min(stats.inserted.unwrap_or(u64::MAX)));
        let grows = stats.kind.capabilities().grow;
        let holds = stats.kind.category();
        // A multiset is made for so many recordings, and its bits tell nothing of keys.
        let (estimate, held) =
            if holds == Category::Multiset { (None, stats.inserted) } else { (estimate, held) };
        let room = stats.capacity.filter(|_| !grows).zip(held);
        let keys =
            stats.capacity.map(|capacity| if grows { capacity.max(held.unwrap_or(0)) } else { capacity });
        Facts {
            kind: stats.kind.to_string(),
            holds,
            cells: stats.cells,
            hashes: stats.hashes,
            bits: stats.bits,
            bytes: stats.bytes,
            capacity: stats.capacity,
            // The names of a map's values are not in its cells.
            bits_per_key: keys.map(|keys| {
                let bits = if stats.kind.category() == Category::Map { stats.bytes * 8 } else { stats.bits };
                bits as f64 / keys as f64
            }),
            grows,
            fixed: stats.kind.capabilities().fixed,
            largest: None,
            count: stats.inserted,
            estimated_count: estimate.map(|estimate| estimate.value),
            estimated_count_error: estimate.map(|estimate| estimate.standard_error),
            fill: stats.fill(),
            fpr_target: stats.rate_target,
            fpr_now: stats.rate_now,
            details: details(stats),
            headroom: room.map(headroom),
            path: None,
            hash: String::new(),
            seed: None,
            key_tag: None,
            key_embedded: None,
            file_bytes: None,
            checksums: None,
            meta: Meta::default(),
        }
    }

    /// The facts of a filter in memory.
    pub fn of_filter(filter: &Stored, meta: Meta) -> Facts {
        let family = match filter {
            Stored::Literature(filter) => Some(filter.scheme().family().to_string()),
            _ => None,
        };
        let largest = match filter {
            Stored::Map(map) => Some(map.largest_value()),
            _ => None,
        };
        Facts { meta, largest, ..Facts::of(&filter.stats()) }.with_hash(filter.hash_id(), family)
    }

    /// The facts of a file.
    pub fn of_file(path: String, examined: &Examined) -> Facts {
        let info = &examined.info;
        Facts {
            path: Some(path),
            key_embedded: info.hash.filter(|id| id.strength != Strength::Fast).map(|_| info.embedded_key),
            file_bytes: Some(info.file_len),
            checksums: Some(info.chunks + 1),
            largest: examined.largest_value(),
            meta: info.meta.clone(),
            ..Facts::of(&examined.stats())
        }
        .with_hash(info.hash, info.family.map(|family| family.to_string()))
    }

    fn with_hash(self, id: Option<umbel::hash::HashId>, family: Option<String>) -> Facts {
        let hash = id.map(|id| id.strength.to_string()).or(family).unwrap_or_default();
        let seed = id.filter(|id| id.strength == Strength::Fast).map(|id| id.value);
        let key_tag = id.filter(|id| id.strength != Strength::Fast).map(|id| format!("{:016x}", id.value));
        Facts { hash, seed, key_tag, ..self }
    }
}

/// What is told of the values of a map in a row of its own.
const VALUES: [&str; 2] = ["values", "code book bytes"];

impl Facts {
    /// What its capacity is counted in.
    fn unit(&self) -> &'static str {
        if self.holds == Category::Multiset { "recording" } else { "key" }
    }

    /// The values of a map, in words.
    fn values(&self) -> String {
        let [count, book] = VALUES.map(|name| self.details.get(name).copied());
        match book {
            Some(bytes) => {
                let count = count.unwrap_or_default();
                format!("one of {count:.0} for each key; their names take {}", size(bytes as u64))
            }
            None => format!("an integer from 0 to {} for each key", self.largest.unwrap_or_default()),
        }
    }

    /// The rate now, and the one that was asked for.
    fn rates(&self) -> String {
        match self.fpr_target {
            Some(target) if self.holds == Category::Map => {
                let (now, target) = (percent(self.fpr_now), percent(target));
                format!("{now} of keys that are not in the map get a value, and {target} was asked for")
            }
            Some(target) if self.grows => {
                format!("{} now, at most {}", percent(self.fpr_now), percent(target))
            }
            Some(target) if self.fixed => {
                format!("{}, and {} was asked for", percent(self.fpr_now), percent(target))
            }
            Some(target) => format!("{} now, {} at capacity", percent(self.fpr_now), percent(target)),
            None => format!("{} now", percent(self.fpr_now)),
        }
    }
}

/// What there is to say only of this kind.
fn details(stats: &Stats) -> BTreeMap<&'static str, f64> {
    let mut details: BTreeMap<_, _> = stats.details.iter().copied().collect();
    if let (Some(&groups), Some(&levels)) = (details.get("groups"), details.get("levels"))
        && let Ok(most) = coverage(groups as u32, groups as u32)
    {
        details.insert("counts up to about", (most / sampling(levels as u32 - 1)).round());
    }
    details
}

fn display<S: Serializer>(value: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// What is left of a capacity. A file may claim any.
fn headroom((capacity, held): (u64, u64)) -> i64 {
    let left = i128::from(capacity) - i128::from(held);
    left.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = Rows::default();
        let bold = Style::new().bold();
        if let Some(path) = &self.path {
            writeln!(f, "{bold}{path}{bold:#}")?;
        }
        let cells = if self.cells == self.bits {
            format!("{} bits", self.bits)
        } else {
            format!("{} cells in {} bits", self.cells, self.bits)
        };
        rows.add("kind", format!("{}, {cells}, {} per key", self.kind, self.hashes));
        let each = self.bits_per_key.map(|bits| format!(", {bits:.2} bits per {}", self.unit()));
        rows.add("memory", format!("{}{}", size(self.bytes), each.unwrap_or_default()));
        rows.add(
            "hash",
            match (&self.seed, &self.key_tag) {
                (Some(seed), _) => format!("{}, seed {seed}", self.hash),
                (_, Some(tag)) => {
                    let embedded =
                        if self.key_embedded == Some(true) { ", the secret is in the file" } else { "" };
                    format!("{}, secret {tag}{embedded}", self.hash)
                }
                _ => self.hash.clone(),
            },
        );
        if let Some(count) = self.count.filter(|_| !self.fixed) {
            rows.add(if self.holds == Category::Multiset { "recordings" } else { "insertions" }, count);
        }
        if self.holds != Category::Multiset {
            rows.add(
                "keys",
                match (self.estimated_count, self.estimated_count_error) {
                    (Some(keys), Some(0.0)) if self.count.is_some() => format!("{keys:.0}"),
                    (Some(keys), Some(error)) => format!("{keys:.0} ± {error:.0}, estimated from the bits"),
                    _ if self.holds == Category::Sketch => "too many to tell".to_string(),
                    _ => "too many to tell: the filter is saturated".to_string(),
                },
            );
        }
        if let Some(capacity) = self.capacity.filter(|_| !self.fixed) {
            let room = match self.headroom {
                None if self.grows => "and it grows".to_string(),
                Some(more @ 1..) => format!("room for {more} more"),
                Some(0) => "full".to_string(),
                Some(less) => format!("{} above", less.unsigned_abs()),
                None => "far above".to_string(),
            };
            rows.add("capacity", format!("{capacity}, {room}"));
        }
        if !self.fixed {
            rows.add("fill", format!("{:.2} %", 100.0 * self.fill));
        }
        if self.holds == Category::Map {
            rows.add("values", self.values());
        }
        for (name, value) in self.details.iter().filter(|(name, _)| !VALUES.contains(name)) {
            // Counts are whole, shares have four digits.
            rows.add(name, (value * 1e4).round() / 1e4);
        }
        let rate = match self.holds {
            Category::Multiset => Some("noise"),
            // A sketch does not tell members from strangers.
            Category::Sketch => None,
            _ => Some("rate"),
        };
        if let Some(name) = rate {
            rows.add(name, self.rates());
        }
        if let Some(command) = self.kind.parse().ok().and_then(sketch_command) {
            rows.add("read by", command);
        }
        if let (Some(bytes), Some(checksums)) = (self.file_bytes, self.checksums) {
            rows.add("file", format!("{}, all {checksums} checksums hold", size(bytes)));
        }
        for (name, value) in &self.meta {
            rows.add("meta", format!("{}={}", shown(name), shown(value)));
        }
        rows.fmt(f)
    }
}

/// What a plan leads to, by the names that scripts rely on.
#[derive(Debug, Serialize)]
pub struct PlanFacts {
    pub kind: String,
    pub capacity: u64,
    /// The exact m, before it is rounded up to whole words or lines.
    pub bits: u64,
    pub hashes: u32,
    pub bytes: u64,
    /// The rate predicted at capacity.
    pub fpr: f64,
    pub fpr_target: f64,
    pub bits_per_key: f64,
    pub lines_touched: u32,
    pub can: Able,
}

/// What a kind of filter can do beside being asked.
#[derive(Debug, Serialize)]
pub struct Able {
    pub add: bool,
    /// Give a key of a map another value.
    pub change: bool,
    pub remove: bool,
    pub grow: bool,
    pub forget: bool,
    pub union: bool,
    pub intersect: bool,
    pub fold: bool,
}

impl From<&Plan> for PlanFacts {
    fn from(plan: &Plan) -> PlanFacts {
        PlanFacts {
            kind: plan.kind.to_string(),
            capacity: plan.capacity,
            bits: plan.bits,
            hashes: plan.hashes,
            bytes: plan.bytes,
            fpr: plan.rate,
            fpr_target: plan.rate_asked,
            bits_per_key: plan.bits as f64 / plan.capacity as f64,
            lines_touched: plan.lines_touched,
            can: plan.kind.into(),
        }
    }
}

impl From<Kind> for Able {
    fn from(kind: Kind) -> Able {
        let Capabilities { fixed, remove, grow, forget, union, intersect, fold, .. } = kind.capabilities();
        let change = kind == Kind::BloomierMutable;
        Able { add: !fixed, change, remove, grow, forget, union, intersect, fold }
    }
}

impl Able {
    /// In words, for instance "union, fold".
    pub fn words(&self) -> String {
        let all = [
            (self.change, "change values"),
            (self.remove, "remove"),
            (self.grow, "grow"),
            (self.forget, "forget"),
            (self.union, "union"),
            (self.intersect, "intersect"),
            (self.fold, "fold"),
        ];
        let able: Vec<_> = all.iter().filter(|(can, _)| *can).map(|(_, word)| *word).collect();
        if able.is_empty() && !self.add { "answer only".to_string() } else { able.join(", ") }
    }
}

/// Names and values, one below the other.
#[derive(Default)]
pub struct Rows(Vec<(String, String)>);

impl Rows {
    pub fn add(&mut self, name: &str, value: impl ToString) {
        self.0.push((name.to_string(), value.to_string()));
    }
}

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0) + 2;
        let dim = Style::new().dimmed();
        for (name, value) in &self.0 {
            writeln!(f, "{dim}{name:<width$}{dim:#}{value}")?;
        }
        Ok(())
    }
}

/// Columns under a heading; all but the first are flush right.
pub struct Columns {
    rows: Vec<Vec<String>>,
}

impl Columns {
    pub fn new(heading: &[&str]) -> Columns {
        Columns { rows: vec![heading.iter().map(ToString::to_string).collect()] }
    }

    pub fn add(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows[0].len();
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (i, row) in self.rows.iter().enumerate() {
            let style = if i == 0 { Style::new().dimmed() } else { Style::new() };
            write!(f, "{style}")?;
            for (column, cell) in row.iter().enumerate() {
                let width = widths[column];
                match column {
                    0 => write!(f, "{cell:<width$}")?,
                    _ => write!(f, "  {cell:>width$}")?,
                }
            }
            writeln!(f, "{style:#}")?;
        }
        Ok(())
    }
}

/// Text from elsewhere as it is, unless a terminal might take it for something else.
pub fn shown(text: impl AsRef<[u8]>) -> String {
    quoted(shortened(text.as_ref()))
}

/// The whole of a text from elsewhere, in quotes and with escapes if a terminal or whoever reads lines might take it for
/// something else.
pub fn quoted(text: impl AsRef<[u8]>) -> String {
    let text = text.as_ref();
    match text.to_str() {
        Ok(text) if !text.contains(char::is_control) => text.to_owned(),
        _ => format!("{:?}", text.as_bstr()),
    }
}

/// As much of a text as fits into a message.
pub fn shortened(text: &[u8]) -> Cow<'_, [u8]> {
    const MOST: usize = 300;
    if text.len() <= MOST {
        return text.into();
    }
    // Not in the middle of a character.
    let end = (MOST - 3..=MOST).rev().find(|end| text[*end] & 0xc0 != 0x80).unwrap_or(MOST);
    [&text[..end], "…".as_bytes()].concat().into()
}

/// A rate as people read it: `1 %`, `0.0402 %`, `1.2e-7`.
pub fn percent(rate: f64) -> String {
    if rate != 0.0 && rate < 1e-5 {
        let text = format!("{rate:.3e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'));
    }
    // Four digits that count, and no zeros at the end.
    let digits = (3 - (100.0 * rate).max(1e-9).log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{:.digits$}", 100.0 * rate);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_claim_of_a_file_is_too_large_to_subtract_from() {
        assert_eq!((headroom((10, 4)), headroom((4, 10))), (6, -6));
        for capacity in [1 << 63, (1 << 63) + 5, u64::MAX] {
            assert_eq!(headroom((capacity, 0)), i64::MAX);
            assert!(headroom((capacity, 1000)) > 1 << 62, "{capacity}");
        }
        assert_eq!(headroom((0, u64::MAX)), i64::MIN);
    }

    #[test]
    fn rates_are_short_and_exact_enough() {
        for (rate, text) in [
            (0.01, "1 %"),
            (0.0402212, "4.022 %"),
            (0.000_402_2, "0.04022 %"),
            (0.5, "50 %"),
            (1.0, "100 %"),
            (0.0, "0 %"),
            (1.25e-7, "1.25e-7"),
            (1e-6, "1e-6"),
        ] {
            assert_eq!(percent(rate), text);
        }
    }
}
