//! What was built goes into a file, or to standard output, and is told about.

use crate::args::meta::{self, entry};
use crate::filters::{Secrets, Target};
use crate::report::{FilterReport, percent, size};
use crate::terminal::output;
use anyhow::{Result, bail};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use umbel::any::Stored;
use umbel::file::{Meta, Options};
use umbel::kind::Category;

/// Where something new goes, with what, and whether it is told about.
#[derive(clap::Args)]
pub struct WriteArgs {
    #[command(flatten)]
    target: Target,

    /// Metadata that travels with it (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = entry)]
    meta: Vec<(String, String)>,

    /// Print its facts as JSON
    #[arg(long)]
    json: bool,
}

impl WriteArgs {
    /// The file it goes to, unless that is standard output.
    pub fn path(&self) -> Option<&Path> {
        self.target.path()
    }

    /// Refuses before the work what would be refused after it; the metadata.
    pub fn check(&self, inputs: &[PathBuf], secrets: &Secrets) -> Result<Meta> {
        if self.json && self.target.path().is_none() {
            bail!("--json prints to standard output, where the filter would go: name a file with -o");
        }
        self.target.check(inputs, secrets)?;
        meta::collect(&self.meta)
    }

    pub fn write(&self, built: &Stored, meta: Meta, embed_key: bool) -> Result<()> {
        self.save(built, meta.clone(), embed_key)?;
        self.tell(built, meta)
    }

    /// The first half: afterwards it is where it should be, and an error of the second half does not change that.
    pub fn save(&self, built: &Stored, meta: Meta, embed_key: bool) -> Result<()> {
        self.target.save(built, Options { meta, embed_key, create_new: false })
    }

    /// The second half: what there is to say about it.
    pub fn tell(&self, built: &Stored, meta: Meta) -> Result<()> {
        if self.json {
            output::json(&FilterReport::from_filter(built, meta))?;
        } else if std::io::stderr().is_terminal() {
            output::say(FilterReport::from_filter(built, meta).summary());
        }
        Ok(())
    }
}
