//! The report of a filter in shards: that of the whole filter, and a row for each shard.

use super::{Columns, FilterReport, percent};
use anyhow::{Context, Result};
use serde::Serialize;
use std::fmt;
use umbel::Stats;
use umbel::file::Info;
use umbel::sharded::{Manifest, shard_name, total_stats};

/// The report of a filter in shards, with the names of [`FilterReport`].
#[derive(Debug, Serialize)]
pub struct ShardsReport {
    #[serde(flatten)]
    whole: FilterReport,
    shards: Vec<ShardReport>,
    #[serde(skip)]
    total: Stats,
}

#[derive(Debug, Serialize)]
struct ShardReport {
    file: String,
    /// The number of insertions, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// The number of distinct keys, estimated from the bits; missing when the shard is saturated.
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_count: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_count_error: Option<f64>,
    fill: f64,
    fpr_now: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_bytes: Option<u64>,
}

impl ShardsReport {
    /// Describes a filter by its manifest and the measurements of its shards.
    pub fn new(manifest: &Manifest, shards: &[Stats]) -> Result<ShardsReport> {
        let total = total_stats(manifest, shards).context("a filter has at least one shard")?;
        let row = |(shard, stats): (usize, &Stats)| {
            let estimate = stats.estimate.estimate();
            ShardReport {
                file: shard_name(shard),
                count: stats.inserted,
                estimated_count: estimate.map(|estimate| estimate.value),
                estimated_count_error: estimate.map(|estimate| estimate.standard_error),
                fill: stats.fill(),
                fpr_now: stats.rate_now,
                file_bytes: None,
            }
        };
        let whole = FilterReport::from_shards(&total, manifest.hash());
        Ok(ShardsReport { whole, shards: shards.iter().enumerate().map(row).collect(), total })
    }

    /// Adds the information about the files.
    pub fn with_files(mut self, path: String, files: &[Info]) -> ShardsReport {
        for (shard, file) in self.shards.iter_mut().zip(files) {
            shard.file_bytes = Some(file.file_len);
        }
        self.whole = self.whole.with_files(path, files);
        self
    }

    /// Returns the number of checksums in all files.
    pub fn checksums(&self) -> usize {
        self.whole.checksums.unwrap_or_default()
    }

    /// Returns the measurements of the whole filter.
    pub fn total(&self) -> &Stats {
        &self.total
    }

    /// Returns the report in one line, as [`FilterReport::summary`] does.
    pub fn summary(&self) -> String {
        format!("{}, in {} shards", self.whole.summary(), self.shards.len())
    }
}

impl fmt::Display for ShardsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.whole.fmt(f)?;
        let mut table = Columns::new(&["shard", "keys", "fill", "rate now"]);
        for shard in &self.shards {
            let keys = shard.estimated_count.map_or("saturated".to_string(), |keys| format!("{keys:.0}"));
            let fill = format!("{:.2} %", 100.0 * shard.fill);
            table.add(vec![shard.file.clone(), keys, fill, percent(shard.fpr_now)]);
        }
        table.fmt(f)
    }
}
