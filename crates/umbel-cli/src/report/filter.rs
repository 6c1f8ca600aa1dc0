//! The report of a filter: kind, size, keys, fill, rate, hash, metadata.

use super::{Rows, percent, printable, size};
use crate::filters::sketch_command;
use crate::terminal::style::{BOLD, Styled};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use umbel::any::Stored;
use umbel::file::{Examined, Info, Meta};
use umbel::hash::{HashId, Strength};
use umbel::kind::Category;
use umbel::sizing::Estimate;
use umbel::sizing::space_code::{coverage, sampling};
use umbel::{Kind, Stats};

/// The report of a filter, as `umbel info` prints it, with the names that scripts rely on.
#[derive(Debug, Serialize)]
pub struct FilterReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// `umbel`, as opposed to the formats of other programs.
    format: &'static str,
    pub kind: String,
    /// Whether the filter is a set, a map, a multiset or a sketch.
    #[serde(rename = "holds", serialize_with = "display")]
    pub category: Category,
    /// The number of bits, counters or slots that keys can land on.
    pub cells: u64,
    pub hashes: u32,
    /// The number of bits of all cells, with the bookkeeping of the kind.
    pub bits: u64,
    pub bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// Bits per key at capacity, or for the present keys of a filter that has grown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_key: Option<f64>,
    #[serde(skip)]
    grows: bool,
    /// Whether the filter was constructed from all its keys and takes no more.
    #[serde(skip)]
    pub fixed: bool,
    /// The largest value of a map.
    #[serde(skip)]
    largest: Option<u64>,
    /// The number of insertions, if the filter counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The number of distinct keys, estimated from the bits; missing when the filter is saturated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_count: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_count_error: Option<f64>,
    pub fill: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fpr_target: Option<f64>,
    pub fpr_now: f64,
    /// The number of keys that still fit; negative above capacity, missing when the number of keys
    /// is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom: Option<i64>,
    /// The standard error of the headroom; 0 if at least that many keys fit.
    #[serde(skip)]
    headroom_error: f64,
    pub hash: String,
    /// Whether anyone can compute the hash, and so craft keys that collide.
    pub public_hash: bool,
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
    /// Figures that only this kind has.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<&'static str, f64>,
    pub meta: Meta,
}

impl FilterReport {
    fn from_stats(stats: &Stats) -> FilterReport {
        let grows = stats.kind.capabilities().grow;
        let category = stats.kind.category();
        // The bits of a multiset do not count keys.
        let estimate = stats.estimate.estimate().filter(|_| category != Category::Multiset);
        let held = Held::from_stats(stats);
        let room = stats.capacity.filter(|_| !grows).zip(held);
        let keys = stats
            .capacity
            .map(|capacity| if grows { capacity.max(held.map_or(0, |held| held.keys)) } else { capacity });
        FilterReport {
            format: "umbel",
            kind: stats.kind.to_string(),
            category,
            cells: stats.cells,
            hashes: stats.hashes,
            bits: stats.bits,
            bytes: stats.bytes,
            capacity: stats.capacity,
            // The code book of a map is not part of its cells.
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
            headroom: room.map(|(capacity, held)| headroom((capacity, held.keys))),
            headroom_error: held.map_or(0.0, |held| held.error),
            path: None,
            hash: String::new(),
            public_hash: true,
            seed: None,
            key_tag: None,
            key_embedded: None,
            file_bytes: None,
            checksums: None,
            meta: Meta::default(),
        }
    }

    /// Describes a filter in memory.
    pub fn from_filter(filter: &Stored, meta: Meta) -> FilterReport {
        let family = match filter {
            Stored::Literature(filter) => Some(filter.scheme().family().to_string()),
            _ => None,
        };
        let largest = match filter {
            Stored::Map(map) => Some(map.largest_value()),
            _ => None,
        };
        FilterReport { meta, largest, ..FilterReport::from_stats(&filter.stats()) }
            .with_hash(filter.hash_id(), family)
    }

    /// Describes the filter in a file.
    pub fn from_file(path: String, examined: &Examined) -> FilterReport {
        let info = &examined.info;
        FilterReport {
            path: Some(path),
            key_embedded: info.hash.filter(|id| id.strength != Strength::Fast).map(|_| info.embedded_key),
            file_bytes: Some(info.file_len),
            checksums: Some(info.chunks + 1),
            largest: examined.largest_value(),
            meta: info.meta.clone(),
            ..FilterReport::from_stats(&examined.stats())
        }
        .with_hash(info.hash, info.family.map(|family| family.to_string()))
    }

    /// Describes a filter in shards by the sum of their measurements.
    pub(super) fn from_shards(total: &Stats, hash: HashId) -> FilterReport {
        FilterReport::from_stats(total).with_hash(Some(hash), None)
    }

    /// Adds the information about the files of a filter in shards.
    pub(super) fn with_files(self, path: String, files: &[Info]) -> FilterReport {
        let is_embedded = files.iter().all(|file| file.embedded_key);
        FilterReport {
            path: Some(path),
            key_embedded: self.key_tag.as_ref().map(|_| is_embedded),
            file_bytes: Some(files.iter().map(|file| file.file_len).fold(0, u64::saturating_add)),
            // With that of the manifest.
            checksums: Some(files.iter().map(|file| file.chunks + 1).sum::<usize>() + 1),
            ..self
        }
    }

    /// Returns the report in one line, such as `1000 lines, blocked filter of 1.25 KiB, rate 1 %`.
    pub fn summary(&self) -> String {
        // A filter that was constructed at once holds every key once, however many lines there
        // were.
        let unit = if self.fixed { "keys" } else { "lines" };
        let (noun, rate) = match self.category {
            Category::Map => ("map", "rate"),
            Category::Multiset => ("multiset", "noise"),
            _ => ("filter", "rate"),
        };
        let (count, kind) = (self.count.unwrap_or_default(), &self.kind);
        let (size, now) = (size(self.bytes), percent(self.fpr_now));
        format!("{count} {unit}, {kind} {noun} of {size}, {rate} {now}")
    }

    fn with_hash(self, id: Option<HashId>, family: Option<String>) -> FilterReport {
        let hash = id.map(|id| id.strength.to_string()).or(family).unwrap_or_default();
        let seed = id.filter(|id| id.strength == Strength::Fast).map(|id| id.value);
        let key_tag = id.filter(|id| id.strength != Strength::Fast).map(|id| format!("{:016x}", id.value));
        FilterReport { hash, public_hash: key_tag.is_none(), seed, key_tag, ..self }
    }
}

/// The keys that take up room in a filter.
#[derive(Clone, Copy)]
struct Held {
    keys: u64,
    /// The standard error of `keys`; 0 if there are no more than that.
    error: f64,
}

impl Held {
    /// Returns the number of keys to subtract from the capacity; `None` if the filter is saturated.
    fn from_stats(stats: &Stats) -> Option<Held> {
        let inserted = stats.inserted.map(|keys| Held { keys, error: 0.0 });
        // A multiset counts recordings, and fingerprints take a slot for every copy of a key.
        if stats.kind.category() == Category::Multiset || matches!(stats.kind, Kind::Cuckoo | Kind::Quotient)
        {
            return inserted;
        }
        let Estimate { value, standard_error } = stats.estimate.estimate()?;
        // If the estimate allows that all insertions were of different keys, the filter holds at
        // most as many. Otherwise many keys were repeated, and only the bits show how many.
        let repeated = |held: &Held| held.keys as f64 - value > REPEATED * standard_error;
        let estimated = Held { keys: value.round() as u64, error: standard_error };
        Some(inserted.filter(|held| !repeated(held)).unwrap_or(estimated))
    }
}

/// The number of standard errors by which insertions exceed the estimate if keys were repeated.
const REPEATED: f64 = 4.0;

/// What a public hash does not promise, and the remedy.
const PUBLIC_HASH: &str = "public hash: anyone can craft colliding keys";
const HOSTILE_INPUT: &str = "use --key-file for hostile input";

/// The details of a map's values, which have a row of their own.
const VALUES: [&str; 2] = ["values", "code book bytes"];

impl FilterReport {
    /// Returns the unit of the capacity.
    fn unit(&self) -> &'static str {
        if self.category == Category::Multiset { "recording" } else { "key" }
    }

    /// Describes the values of a map.
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

    /// Describes how many keys still fit.
    fn room(&self) -> String {
        let about = if self.headroom_error > 0.0 { "about " } else { "" };
        match self.headroom {
            None if self.grows => "and it grows".to_string(),
            None => "far above".to_string(),
            Some(left) if left == 0 || (left.unsigned_abs() as f64) < self.headroom_error => {
                format!("{about}full")
            }
            Some(more @ 1..) => format!("room for {about}{more} more"),
            Some(less) => format!("{about}{} above", less.unsigned_abs()),
        }
    }

    /// Describes the present rate and the one that was requested.
    fn rates(&self) -> String {
        match self.fpr_target {
            Some(target) if self.category == Category::Map => {
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

/// Returns the figures that only this kind has.
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

/// Returns the capacity that is left. A file may claim any capacity, so the difference is clamped.
fn headroom((capacity, held): (u64, u64)) -> i64 {
    let left = i128::from(capacity) - i128::from(held);
    left.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

impl fmt::Display for FilterReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = Rows::default();
        if let Some(path) = &self.path {
            writeln!(f, "{}", Styled(BOLD, path))?;
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
                (Some(seed), _) => format!("{}, seed {seed} ({PUBLIC_HASH}; {HOSTILE_INPUT})", self.hash),
                (_, Some(tag)) => {
                    let embedded =
                        if self.key_embedded == Some(true) { ", the secret is in the file" } else { "" };
                    format!("{}, secret {tag}{embedded}", self.hash)
                }
                _ => format!("{} ({PUBLIC_HASH})", self.hash),
            },
        );
        if let Some(count) = self.count.filter(|_| !self.fixed) {
            rows.add(if self.category == Category::Multiset { "recordings" } else { "insertions" }, count);
        }
        if self.category != Category::Multiset {
            rows.add(
                "keys",
                match (self.estimated_count, self.estimated_count_error) {
                    (Some(keys), Some(0.0)) => format!("{keys:.0}"),
                    (Some(value), Some(standard_error)) => {
                        let from = if self.grows && self.count.is_some() { "" } else { " from the bits" };
                        format!("{}, estimated{from}", Estimate { value, standard_error })
                    }
                    _ if self.category == Category::Sketch => "too many to tell".to_string(),
                    _ => "unknown: the filter is saturated".to_string(),
                },
            );
        }
        if let Some(capacity) = self.capacity.filter(|_| !self.fixed) {
            rows.add("capacity", format!("{capacity}, {}", self.room()));
        }
        if !self.fixed {
            rows.add("fill", format!("{:.2} %", 100.0 * self.fill));
        }
        if self.category == Category::Map {
            rows.add("values", self.values());
        }
        for (name, value) in self.details.iter().filter(|(name, _)| !VALUES.contains(name)) {
            // Counts are integers, shares have four digits.
            rows.add(name, (value * 1e4).round() / 1e4);
        }
        let rate = match self.category {
            Category::Multiset => Some("noise"),
            // A sketch does not answer membership queries.
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
            rows.add("meta", format!("{}={}", printable(name), printable(value)));
        }
        rows.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_of_any_size_can_be_subtracted_from() {
        assert_eq!((headroom((10, 4)), headroom((4, 10))), (6, -6));
        for capacity in [1 << 63, (1 << 63) + 5, u64::MAX] {
            assert_eq!(headroom((capacity, 0)), i64::MAX);
            assert!(headroom((capacity, 1000)) > 1 << 62, "{capacity}");
        }
        assert_eq!(headroom((0, u64::MAX)), i64::MIN);
    }
}
