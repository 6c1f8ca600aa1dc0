//! A new filter saved to a file or standard output, and reported.

use super::{Secrets, Target, warn_if_overfull_by};
use crate::args::headings;
use crate::args::meta::{self, entry};
use crate::report::{FilterReport, ForeignReport, ShardsReport};
use crate::terminal::output;
use anyhow::{Result, bail};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use umbel::any::Stored;
use umbel::file::{Meta, Options};
use umbel::foreign::ForeignFilter;
use umbel::sharded::ShardedBuilder;

/// The options of commands that build a filter: where it goes, its metadata, and whether to report
/// it as JSON.
#[derive(clap::Args)]
pub struct SaveArgs {
    #[command(flatten)]
    target: Target,

    /// Store a name and a value with the filter (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = entry, help_heading = headings::OUTPUT)]
    meta: Vec<(String, String)>,

    /// Print a description of the filter as JSON
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

impl SaveArgs {
    /// Returns the path of the file; `None` for standard output.
    pub fn path(&self) -> Option<&Path> {
        self.target.path()
    }

    /// Fails early if the filter could not be saved later; returns the metadata.
    pub fn check(&self, inputs: &[PathBuf], secrets: &Secrets) -> Result<Meta> {
        if self.json && self.target.path().is_none() {
            bail!("--json prints to standard output, where the filter would go: name a file with -o");
        }
        self.target.check(inputs, secrets)?;
        meta::collect(&self.meta)
    }

    /// Returns whether the filter is to have metadata.
    pub fn has_meta(&self) -> bool {
        !self.meta.is_empty()
    }

    /// Saves the filter and reports it.
    pub fn write(&self, built: &Stored, meta: Meta, embed_key: bool) -> Result<()> {
        self.save(built, meta.clone(), embed_key)?;
        self.report(built, meta)
    }

    /// Saves the filter.
    pub fn save(&self, built: &Stored, meta: Meta, embed_key: bool) -> Result<()> {
        self.target.save(built, Options { meta, embed_key, create_new: false })
    }

    /// Returns the directory of a filter in shards; fails early if it could not be written later.
    pub fn check_shards(&self) -> Result<&Path> {
        self.target.check_shards()
    }

    /// Saves a filter in shards, warns if it is overfull, and reports it.
    pub fn write_shards(&self, built: &ShardedBuilder, embed_key: bool) -> Result<()> {
        let manifest = self.target.save_shards(|folder| Ok(built.save_locked(folder, embed_key)?))?;
        let is_overfull = built.inserted() > manifest.capacity();
        if !(is_overfull || self.json || std::io::stderr().is_terminal()) {
            return Ok(());
        }
        let stats = built.stats();
        let report = ShardsReport::new(&manifest, &stats)?;
        warn_if_overfull_by(report.total());
        self.print_shards(&report)
    }

    /// Reports a filter in shards as [`SaveArgs::report`] does others.
    pub fn print_shards(&self, report: &ShardsReport) -> Result<()> {
        if self.json {
            output::json(report)?;
        } else if std::io::stderr().is_terminal() {
            output::message(report.summary());
        }
        Ok(())
    }

    /// Saves a filter in the format of another program, and reports it.
    pub fn write_foreign(&self, built: &ForeignFilter) -> Result<()> {
        self.target.save_foreign(built)?;
        if self.json {
            output::json(&ForeignReport::new(built))?;
        } else if std::io::stderr().is_terminal() {
            output::message(ForeignReport::new(built).summary());
        }
        Ok(())
    }

    /// Reports the filter, as JSON on standard output or in one line on a terminal.
    pub fn report(&self, built: &Stored, meta: Meta) -> Result<()> {
        if self.json {
            output::json(&FilterReport::from_filter(built, meta))?;
        } else if std::io::stderr().is_terminal() {
            output::message(FilterReport::from_filter(built, meta).summary());
        }
        Ok(())
    }
}
