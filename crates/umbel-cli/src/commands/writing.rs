//! What was built goes into a file, or to standard output, and is told about.

use crate::args::meta::{self, entry};
use crate::facts::{Facts, percent};
use crate::filters::{Secrets, Target};
use crate::terminal::{output, size};
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
            output::json(&Facts::of_filter(built, meta))?;
        } else if std::io::stderr().is_terminal() {
            output::say(summary(&Facts::of_filter(built, meta)));
        }
        Ok(())
    }
}

/// What there is in a line.
pub fn summary(facts: &Facts) -> String {
    let Facts { count, kind, bytes, fpr_now, holds, fixed, .. } = facts;
    // What is made at once has every key once, however many lines there were.
    let what = if *fixed { "keys" } else { "lines" };
    let (built, rate) = match holds {
        Category::Map => ("map", "rate"),
        Category::Multiset => ("multiset", "noise"),
        _ => ("filter", "rate"),
    };
    let (count, size, now) = (count.unwrap_or_default(), size(*bytes), percent(*fpr_now));
    format!("{count} {what}, {kind} {built} of {size}, {rate} {now}")
}
