//! The report of a filter that another program wrote.

use super::{Rows, percent, size};
use crate::terminal::style::{BOLD, Styled};
use serde::Serialize;
use std::f64::consts::LN_2;
use std::fmt;
use umbel::foreign::{Facts, ForeignFilter, Format};
use umbel::sizing::Estimate;
use umbel::sizing::estimate::Shape;
use umbel::sizing::rate;

/// The report of a filter of another program, as `umbel info` prints it. Its names mean the same as
/// in the report of a filter of umbel.
#[derive(Debug, Serialize)]
pub struct ForeignReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub format: String,
    holds: &'static str,
    pub bits: u64,
    pub hashes: u32,
    pub bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// The number of keys, if the format stores it.
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
    hash: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    /// The number of filters in a chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<u64>,
}

impl ForeignReport {
    /// Describes a filter in memory.
    pub fn new(filter: &ForeignFilter) -> ForeignReport {
        let facts = filter.facts();
        let estimate = estimate(&facts);
        ForeignReport {
            path: None,
            format: facts.format.to_string(),
            holds: "set",
            bits: facts.bits,
            hashes: facts.hashes,
            bytes: facts.bits.div_ceil(8),
            capacity: facts.design.map(|design| design.capacity),
            count: facts.keys,
            estimated_count: estimate.map(|estimate| estimate.value),
            estimated_count_error: estimate.map(|estimate| estimate.standard_error),
            fill: facts.fill,
            fpr_target: facts.design.map(|design| design.rate),
            fpr_now: facts.rate_now,
            hash: facts.format.hash_name(),
            seed: facts.seed,
            links: (facts.format == Format::RedisBloom).then_some(facts.links),
            remark: facts.remark,
            file_bytes: None,
        }
    }

    /// Describes the filter in a file.
    pub fn from_file(path: String, filter: &ForeignFilter) -> ForeignReport {
        let file_bytes = std::fs::metadata(&path).ok().map(|found| found.len());
        ForeignReport { path: Some(path), file_bytes, ..ForeignReport::new(filter) }
    }

    /// Returns the number of keys in the filter, as it is stored or else as it is estimated.
    pub fn keys(&self) -> Option<u64> {
        self.count.or(self.estimated_count.map(|keys| keys.round() as u64))
    }

    /// Returns the capacity and the rate that the filter was made for. If the format does not store
    /// them, they are those of the best filter with as many bits and hash functions; the number of
    /// hash functions of `sbbf` is fixed, so for that format they are the present ones.
    pub fn design(&self) -> Option<(u64, f64)> {
        if let Some(design) = self.capacity.zip(self.fpr_target) {
            return Some(design);
        }
        if self.format == Format::Sbbf.name() {
            return self.keys().map(|keys| (keys.max(1), self.fpr_now)).filter(|(_, rate)| *rate > 0.0);
        }
        let keys = (self.bits as f64 * LN_2 / f64::from(self.hashes)).round() as u64;
        rate::expected(self.bits, keys, self.hashes).ok().map(|rate| (keys, rate))
    }

    /// Returns the report in one line, such as `1000 keys, guava filter of 1.25 KiB, rate 1 %`.
    pub fn summary(&self) -> String {
        let (size, now) = (size(self.bytes), percent(self.fpr_now));
        let keys = self.keys().map_or("too many keys".to_string(), |keys| format!("about {keys} keys"));
        format!("{keys}, {} filter of {size}, rate {now}", self.format)
    }
}

/// Estimates the number of keys from the bits of a single filter.
fn estimate(facts: &Facts) -> Option<Estimate> {
    let Facts { bits, bits_set, hashes, .. } = *facts;
    let shape = match facts.format {
        // Its links have different shapes, and it stores the number of keys.
        Format::RedisBloom => return None,
        // A key sets one bit in each of the eight words of a block.
        Format::Sbbf => Shape::Partitioned { slice_bits: bits / 8, hashes: 8 },
        _ => Shape::Standard { bits, hashes },
    };
    shape.cardinality(bits_set).ok()?.estimate()
}

impl fmt::Display for ForeignReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = Rows::default();
        if let Some(path) = &self.path {
            writeln!(f, "{}", Styled(BOLD, path))?;
        }
        let links = match self.links {
            Some(1) => ", a chain of one link".to_string(),
            Some(links) => format!(", a chain of {links} links"),
            None => String::new(),
        };
        rows.add("format", format!("{}, {} bits, {} per key{links}", self.format, self.bits, self.hashes));
        if let Some(remark) = &self.remark {
            rows.add("remark", remark);
        }
        rows.add("memory", size(self.bytes));
        let seed = self.seed.map(|seed| format!(", seed {seed}")).unwrap_or_default();
        rows.add("hash", format!("{}{seed}", self.hash));
        if let Some(count) = self.count {
            rows.add("insertions", count);
        }
        if self.links.is_none() {
            let estimate = self.estimated_count.zip(self.estimated_count_error);
            rows.add(
                "keys",
                match estimate {
                    Some((value, standard_error)) => {
                        format!("{}, estimated from the bits", Estimate { value, standard_error })
                    }
                    None => "unknown: the filter is saturated".to_string(),
                },
            );
        }
        if let Some(capacity) = self.capacity {
            rows.add("capacity", capacity);
        }
        rows.add("fill", format!("{:.2} %", 100.0 * self.fill));
        let now = percent(self.fpr_now);
        rows.add(
            "rate",
            match self.fpr_target {
                Some(target) => format!("{now} now, {} at capacity", percent(target)),
                None => format!("{now} now"),
            },
        );
        if let Some(bytes) = self.file_bytes {
            rows.add("file", format!("{}, without checksums", size(bytes)));
        }
        rows.fmt(f)
    }
}
